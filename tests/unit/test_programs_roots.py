"""Square roots: ranks derived by hand and compared with float64, points with roots, and programs whose roots are dependent."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from m2bridge import from_callable
from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import lower_by_minor
from m2bridge.checker import Rejected, check_lower, read_program, verify
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.families import Model
from m2bridge.linear.numeric import numeric_rank
from m2bridge.programs import parse_program, roots
from m2bridge.programs.arithmetics import FloatArithmetic, square_roots
from m2bridge.programs.jacobians import jacobian_block
from m2bridge.programs.probe import Probe
from m2bridge.programs.program import Program
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.run import Lettered
from m2bridge.questions.dimension import dimension

P = 8388593
EPS = Fraction(1, 7)


def rms(x: Any, eps: Any = 0) -> Any:
    return x / np.sqrt((x * x).mean(0, keepdims=True) + eps)


def centred(x: Any, eps: Any = 0) -> Any:
    return rms(x - x.mean(0, keepdims=True), eps)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def network(function: Callable[..., Any], weights: dict[str, Any], x: tuple[int, ...] = (3,)) -> Model:
    return from_callable(function, weights, inputs={"x": x})


NETWORKS: dict[str, tuple[Model, int]] = {
    # 6 + 9 weights; rotations of R^3 between W and V, and the scale of W
    "RMSNorm": (network(lambda x, W, V: V @ rms(W @ x), {"W": (3, 3), "V": (2, 3)}), 15 - 3 - 1),
    # eps > 0 fixes the scale
    "RMSNorm with eps": (network(lambda x, W, V: V @ rms(W @ x, EPS), {"W": (3, 3), "V": (2, 3)}), 15 - 3),
    # also the gains: with the diagonal torus they only multiply the columns of V
    "RMSNorm with gains": (
        network(lambda x, W, g, V: V @ (g * rms(W @ x, EPS)), {"W": (3, 3), "g": (3,), "V": (2, 3)}),
        18 - 3 - 3,
    ),
    # adding one number to a column of W (3), a function of the row to V (2), rotations that fix (1, 1, 1) (1), the scale (1)
    "LayerNorm": (
        network(lambda x, W, V: V @ centred(W @ x), {"W": (3, 3), "V": (2, 3)}),
        15 - 3 - 2 - 1 - 1,
    ),
    # nothing: a norm of inputs
    "norm of the input": (network(lambda x, V: V @ rms(x, EPS), {"V": (2, 3)}), 6),
    # a shift of all entries of W is seen; V 1 is not, because centred vectors add up to zero
    "LayerNorm of the input": (network(lambda x, V: V @ centred(x, EPS), {"V": (2, 3)}), 6 - 2),
    # |W x|^2 determines W^T W, a symmetric 3 x 3 matrix
    "Euclidean norm": (network(lambda x, W: np.linalg.norm(W @ x), {"W": (3, 3)}), 6),
    "nested": (network(lambda x, w: np.sqrt(x + np.sqrt(w * x)), {"w": (3,)}), 3),
    "standard deviation": (network(lambda x, w: np.std(w * x), {"w": (3,)}), 3),
    # sqrt(v) w enters as one factor
    "root of a weight": (network(lambda x, v, w: np.sqrt(v) * w * x[0], {"v": (), "w": ()}), 1),
    "square of a root": (network(lambda x, w: np.sqrt(w @ x) ** 2, {"w": (3,)}), 3),
    "half powers": (network(lambda x, w: (w * x) ** 1.5 + (w * x) ** -0.5, {"w": (3,)}), 3),
    "root of 4 and of 2": (network(lambda x, w: w * x * np.sqrt(2) + np.sqrt(w * 0 + 4), {"w": (3,)}), 3),
    # 9 + 6 weights; rotations and the scale, seen through sigmoid
    "sigmoid of a norm": (
        network(lambda x, W, V: sigmoid(V @ rms(W @ x)), {"W": (3, 3), "V": (2, 3)}),
        15 - 3 - 1,
    ),
    "norm of a sigmoid": (
        network(lambda x, W, V: V @ rms(sigmoid(W @ x), EPS), {"W": (3, 3), "V": (2, 3)}),
        15,
    ),
}


def float_rank(program: Program, samples: int) -> int | None:
    rng = np.random.default_rng(5)
    given = {n: Lettered("", rng.uniform(0.5, 2, size=s)) for n, s in program.parameters.items()}
    given |= {
        n: Lettered("N", rng.uniform(0.5, 2, size=(samples, *s))) for n, s in program.input_shapes.items()
    }
    columns = np.arange(program.parameter_count)
    return numeric_rank(jacobian_block(program, FloatArithmetic(), given, columns)).rank


@pytest.mark.parametrize("name", NETWORKS)
def test_the_rank_is_the_one_derived_by_hand_that_of_float64_and_certified(name: str) -> None:
    model, expected = NETWORKS[name]
    program = model.program
    found = generic_rank(program)
    assert (found.rank, found.heuristic) == (expected, None)
    assert float_rank(program, 2 * program.parameter_count) == expected
    document = json.loads(json.dumps(lower_by_minor(program, found)))
    assert check_lower(read_program(program.text), document) == expected
    pushed, pulled = Probe(program, P, 0).both_ways()
    assert pushed == pulled


@pytest.mark.parametrize("name", NETWORKS)
def test_dimensions_are_proved(name: str) -> None:
    model, expected = NETWORKS[name]
    result = dimension(model, engine=False)
    assert (result.image_dim, result.certainty) == (expected, Certainty.PROVED)
    assert verify(json.dumps(result.certificate))[0] == 0


def test_roots_are_the_smaller_ones() -> None:
    table = square_roots(P)
    k = np.random.default_rng(0).integers(1, P // 2, size=1000)
    assert (table[k * k % P] == k).all()
    assert (table > 0).sum() == (P - 1) // 2


def program(*lines: str) -> Program:
    body = "".join(f"%{k} = {line}\n" for k, line in enumerate(lines))
    return parse_program(f"m2bridge program 1\n{body}output y %{len(lines) - 1}\n")


START = ("weight w [2]", "input x [2]", "multiply %0 %1", "power 2 %2")
DEPENDENT = {
    "absolute value": (*START, "sqrt %3"),
    # a - sqrt(a^2) for a = 1 + (w x)^2 is zero, but not on the other component
    "zero": (
        *START, "constant [] 1", "add %3 %4", "power 2 %5", "sqrt %6", "scale -1 %7", "add %5 %8",
    ),
    "multiple of a square": (*START, "sqrt %2", "scale 4 %2", "sqrt %5", "add %4 %6"),
    "product": (*START, "sqrt %0", "sqrt %2", "multiply %0 %2", "sqrt %6", "add %4 %5", "add %7 %8"),
    "roots of different inputs are tied": (*START, "power 2 %1", "multiply %0 %4", "sqrt %5"),
    "conjugate": (  # (1 + s)^2 with s = sqrt(w x)
        *START, "sqrt %2", "constant [] 1", "add %4 %5", "power 2 %6", "sqrt %7",
    ),
    "constant": ("weight w [2]", "constant [] 2", "sqrt %1", "multiply %0 %2"),
    "zero radicand": ("weight w [2]", "scale 0 %0", "sqrt %1"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_roots_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"= sqrt %\d+: its radicand is (the square of a function|zero)"):
        generic_rank(program(*DEPENDENT[name]))


def test_many_roots_are_out_of_reach_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "MOST_DRAWS", 2000)
    tokens = network(lambda x, w: np.sqrt(w * x), {"w": (24,)}, (24,))
    with pytest.raises(OutOfReachError, match="24 square roots for one input"):
        generic_rank(tokens.program)


def test_roots_of_weights_beside_exponentials_are_a_heuristic() -> None:
    found = generic_rank(network(lambda x, v, w: np.exp(np.sqrt(v) * w * x[0]), {"v": (), "w": ()}).program)
    assert found.rank == 1
    assert found.heuristic


ALTERED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a point with the root": lambda r: r["inputs"].__setitem__(0, r["draws"][0]),
    "a draw without the root": lambda r: r["draws"].__setitem__(0, r["inputs"][0]),
    "the point of another root": lambda r: r["inputs"].reverse(),
    "a missing point": lambda r: r["inputs"].pop(),
    "no roots": lambda r: r.clear(),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_certificate_is_rejected(name: str) -> None:
    model, _ = NETWORKS["nested"]
    found = generic_rank(model.program)
    document = json.loads(json.dumps(lower_by_minor(model.program, found)))
    ALTERED[name](document["roots"])
    with pytest.raises(Rejected):
        check_lower(read_program(model.program.text), document)


def test_a_dependent_root_has_no_certificate() -> None:
    """The forged document says of sqrt((w x)^2) that it does not exist at some input: no input is accepted."""
    text = program(*DEPENDENT["absolute value"]).text
    document = {
        "kind": "minor", "prime": P, "weights": {"seed": 0, "stream": 1, "fixed": []}, "samples": 1,
        "inputs": {"seed": 0, "stream": 2, "fixed": []}, "rows": [[0, 0]], "columns": [0],
    }  # fmt: skip
    for draw in range(50):
        forged = {"draws": [0], "inputs": [draw, draw], "weights": []}
        with pytest.raises(Rejected, match="all square roots exist"):
            check_lower(read_program(text), document | {"roots": forged})
