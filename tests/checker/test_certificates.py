"""Every kind of certificate that the format knows is verified; the checker runs alone; its parts are right."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import time
from fractions import Fraction
from math import factorial
from pathlib import Path
from typing import Any

import fuzz
import makers as M  # noqa: N812
import numpy as np
import pytest
from makers import (
    closure_certificate,
    same_function_certificate,
    symmetry_certificate,
)

from m2bridge import checker, checker_families, checker_further, dimension
from m2bridge.bounds.virtual_weights import virtual_dim_lower, virtual_dim_upper
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from tests.marking import slow_except

FILE = Path(checker.__file__)
POOL = dict(fuzz.pool())


def outcome(document: Any) -> tuple[int, str]:
    code, said = checker.verify(json.dumps(document))
    return code, " ".join(said)


def alone(
    path: Path, tmp_path: Path, *, families: bool = True, further: bool = True
) -> subprocess.CompletedProcess[str]:
    """The file, perhaps with those beside it, isolated, in an empty directory and an empty environment."""
    copied = tmp_path / f"alone-{families}-{further}" / "checker.py"
    copied.parent.mkdir(exist_ok=True)
    copied.write_bytes(FILE.read_bytes())
    names = {"checker_families.py": families, "checker_further.py": further}
    for name in (name for name, wanted in names.items() if wanted):
        copied.with_name(name).write_bytes(FILE.with_name(name).read_bytes())
    command = [sys.executable, "-I", "-S", str(copied), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=copied.parent, env={})


@pytest.mark.parametrize("name", slow_except({"lightning", "softmax", "closure", "singular", "fields"}, POOL))
def test_true_certificates_are_verified_by_the_file_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(POOL[name])
    done = alone(path, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("Verified: ")
    done = alone(path, tmp_path, families=False)
    if json.loads(POOL[name]).get("upper", {}).get("kind") in ("virtual", "layers"):
        assert done.returncode == 8
        assert "checked by checker_families.py" in done.stdout
    else:
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert "This is about the program with hash" in done.stdout
        assert "both are equal" not in done.stdout


PUBLISHED = sorted((Path(__file__).parents[2] / "results" / "certificates").glob("*.json"))


QUICK_PUBLISHED = {"dimension-lightning", "dimension-mlp", "symmetries-mlp-1"}


@pytest.mark.parametrize("name", slow_except(QUICK_PUBLISHED, [path.stem for path in PUBLISHED]))
def test_published_certificates_are_verified_by_the_file_alone(name: str, tmp_path: Path) -> None:
    path = next(path for path in PUBLISHED if path.stem == name)
    done = alone(path, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "both are equal" in done.stdout
    done = alone(path, tmp_path, families=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "is not checked without checker_families.py" in done.stdout


@pytest.mark.parametrize(
    ("name", "code"), [("dimension-mlp", 0), ("dimension-softmax", 8), ("closure-lightning", 8)]
)
def test_a_missing_file_is_named(name: str, code: int, tmp_path: Path) -> None:
    path = next(path for path in PUBLISHED if path.stem == name)
    done = alone(path, tmp_path, families=False, further=False)
    assert done.returncode == code, done.stdout
    assert ("is checked by checker_further.py, which is not beside this file" in done.stdout) == (code == 8)


def test_certificates_are_published() -> None:
    assert len(PUBLISHED) >= 15


def test_the_file_imports_the_standard_library_alone() -> None:
    lines = FILE.read_text().splitlines()
    modules = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert modules <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("text", "spec", "upper"),
    [
        (M.attention_text([3, 3, 3], [1, 2], 3), "deep-lightning(d=[3,3,3],a=[1,2],t=3)", {"kind": "virtual"}),
        (M.attention_text([2, 3, 2], [2, 2], 3), "deep-lightning(d=[2,3,2],a=[2,2],t=3)", {"kind": "virtual"}),
        (M.attention_text([3, 2], [3], 1), "deep-lightning(d=[3,2],a=[3],t=1)", {"kind": "virtual"}),
        (M.attention_text([2, 2], [2], 2, heads=[3]), "deep-lightning(d=[2,2],a=[2],t=2,heads=3)", {"kind": "layers"}),
        (M.attention_text([3, 1], [3], 2, heads=[2]), "deep-lightning(d=[3,1],a=[3],t=2,heads=2)", {"kind": "layers"}),
        (M.mlp_text([2, 3, 2], 2), "mlp(widths=[2,3,2],r=2)", {"kind": "coordinates"}),
        (M.mlp_text([2, 2], 1), "mlp(widths=[2,2],r=1)", {"kind": "parameters"}),
    ],
)  # fmt: skip
def test_dimensions(text: str, spec: str, upper: dict[str, Any]) -> None:
    lower, n = M.minor(text)
    code, said = outcome(M.document(text, spec, n, lower, upper))
    assert code == 0, said
    assert f"dimension is {n}" in said
    assert f"of {spec}: both are equal" in said
    assert ("rests on the spec" in said) == (upper["kind"] in ("virtual", "layers"))


@pytest.mark.parametrize(
    ("widths", "r", "flattening", "n"),
    [([3, 5, 1], 4, ["catalecticant", 2], 14), ([5, 7, 1], 3, ["koszul"], 34), ([3, 2, 2], 2, ["catalecticant", 1], 8),
     ([3, 2, 2], 3, ["catalecticant", 1], 8)],
)  # fmt: skip
def test_flattenings(widths: list[int], r: int, flattening: Any, n: int) -> None:
    """Alexander and Hirschowitz's exceptions (4, 3, 5) and (3, 5, 7); pairs of quadrics of rank 2 in 3 variables."""
    text = M.mlp_text(widths, r)
    lower, found = M.minor(text)
    assert found == n
    weights = {"seed": 1, "stream": 2, "fixed": []}
    upper = {"kind": "flattening", "flattening": flattening, "prime": M.SMALL, "weights": weights}
    assert outcome(M.document(text, None, n, lower, upper))[0] == 0
    equal_rows = {"entries": [1] * (widths[0] * widths[1]) + list(range(1, widths[1] * widths[2] + 1))}
    low = M.document(text, None, n, lower, {**upper, "weights": equal_rows})  # where its rank is too small
    assert "does not have the rank that its terms allow" in outcome(low)[1]


def test_spans_of_a_last_layer() -> None:
    """m x M matrices of rank at most n have dimension n (m + M - n)."""
    for widths, bound in (([3, 2, 4], 2 * (4 + 6 - 2)), ([2, 5, 2], 2 * 3), ([2, 1, 3], 3 + 3 - 1)):
        program = checker.read_program(M.mlp_text(widths, 2))
        assert (
            checker.check_upper(program, {"kind": "span"}) == bound >= M.generic_rank(M.mlp_text(widths, 2))
        )
    for text in (
        M.segre_text(2, 1),
        M.attention_text([2, 2], [1], 2),
        "m2bridge program 1\n%0 = weight w [2]\noutput y %0\n",
    ):
        with pytest.raises(checker.Rejected):
            checker.check_upper(checker.read_program(text), {"kind": "span"})


@pytest.mark.parametrize(
    ("n", "m", "r", "name"),
    [
        (3, 2, 4, ["catalecticant", 2]),
        (3, 2, 3, ["catalecticant", 1]),
        (3, 1, 3, ["koszul"]),
        (5, 1, 3, ["koszul"]),
        (3, 3, 2, ["strassen"]),
    ],
)
def test_all_terms_have_one_rank_in_a_flattening(n: int, m: int, r: int, name: Any) -> None:
    """The bound uses the rank of the term x_1^r for all terms c (x) l^r; here are others."""
    table, height, width = checker_further.flattening(name, n, m, r)
    rng = random.Random(2)
    for _ in range(3):
        l, c = [rng.randrange(M.P) for _ in range(n)], [rng.randrange(M.P) for _ in range(m)]  # noqa: E741
        matrix = [[0] * width for _ in range(height)]
        for coordinate, entries in table.items():
            j, monomial = coordinate
            value = c[j] * factorial(r)
            for x in set(monomial):
                k = monomial.count(x)
                value = value * pow(l[x], k, M.P) * pow(factorial(k), -1, M.P) % M.P
            for a, b, s in entries:
                matrix[a][b] += s * value
        assert len(M.pivots(matrix, M.P)[0]) == len(table[0, (0,) * r])


@pytest.mark.parametrize(
    ("widths", "ranks", "t", "n"),
    [([3, 2], [2], 2, 14), ([3, 3, 3], [2, 2], 3, 25), ([2, 2], [2], 3, 8), ([2, 1], [1], 2, 5)],
)  # fmt: skip
def test_softmax_with_units(widths: list[int], ranks: list[int], t: int, n: int) -> None:
    """Theorem 3.9 and Equation 16 of arXiv:2408.17221; the checker knows neither."""
    text = M.attention_text(widths, ranks, t, softmax=True)
    lower, found = M.unit_minor(text)
    assert found == n == M.real_rank(text, n + 1)
    spec = f"softmax(d={M.shape_text(widths)},a={M.shape_text(ranks)},t={t})"
    upper = M.symmetries(text, M.attention_groups(widths, ranks, softmax=True))
    assert outcome(M.document(text, spec, n, lower, upper))[0] == 0
    wrong = copy.deepcopy(lower)
    wrong["rows"][0] = wrong["rows"][1]
    assert outcome(M.document(text, spec, n, wrong, upper))[0] == 7


ATTENTION = [
    (family, widths, ranks, t)
    for family in ("deep-lightning", "softmax")
    for widths, ranks, t in (
        ([2, 2], [2], 2), ([2, 2], [2], 1), ([3, 1], [2], 2), ([3, 2, 3], [2, 2], 2), ([3, 2, 3], [1, 2], 2),
        ([2, 3, 2], [2, 2], 2),
        ([3, 3, 3], [1, 3], 3), ([2, 1, 2], [2, 1], 2), ([3, 2, 2], [3, 1], 2), ([2, 2, 1], [2, 2], 1),
        ([2, 2, 2, 2], [1, 1, 1], 2),
    )
]  # fmt: skip


@pytest.mark.parametrize(("family", "widths", "ranks", "t"), ATTENTION)
def test_virtual_bounds_are_above_the_truth(family: str, widths: list[int], ranks: list[int], t: int) -> None:
    """The truth is the rank at a random point; these bounds are met except where noted."""
    text = M.attention_text(widths, ranks, t, softmax=family == "softmax")
    network = checker_families.read_spec(f"{family}(d={M.shape_text(widths)},a={M.shape_text(ranks)},t={t})")
    assert network is not None
    bound = checker_families.virtual_bound(network)
    truth = M.generic_rank(text) if family == "deep-lightning" else M.real_rank(text, bound + 1, seed=1)
    assert truth <= bound
    known = {
        ("deep-lightning", (2, 1, 2)): 1,
        ("deep-lightning", (2, 2, 1)): 1,
        ("deep-lightning", (2, 2, 2, 2)): 1,
    }
    lost = family == "softmax" and len(ranks) > 2  # float64 loses rank there
    assert bound - truth <= known.get((family, tuple(widths)), 0) or t == 1 or lost


def test_flags_of_virtual_weights_are_above_the_rank_of_the_map_to_them() -> None:
    """Two programs count; a third one ranks the differential of (Q, K, V) -> (M, L) at a point."""
    rng = random.Random(7)
    for _ in range(200):
        widths = [rng.randint(1, 6) for _ in range(rng.randint(2, 5))]
        ranks = [rng.randint(1, 4) for _ in widths[1:]]
        bound = checker_families.flags_dim(widths, ranks)
        assert bound == virtual_dim_upper(tuple(widths), tuple(ranks))
        assert bound >= virtual_dim_lower(tuple(widths), tuple(ranks), p=M.SMALL, seed=1)


def test_softmax_outside_bottlenecks_is_certified() -> None:
    """Rows of L_1 are seen by M_2 and M_3 only; neither the group nor determinantal varieties alone show this bound."""
    spec = "softmax(d=[4,3,5,4],a=[2,2,3],t=3)"
    answer = dimension(spec, engine=False)
    assert (answer.image_dim, answer.certainty, answer.conflicts) == (44, Certainty.PROVED, ())
    assert answer.certificate is not None
    assert answer.certificate["upper"] == {"kind": "virtual"}
    assert outcome(answer.certificate)[0] == 0
    answer.certificate["statement"]["dimension"] = 45
    assert outcome(answer.certificate)[0] == 7


@pytest.mark.parametrize(
    ("widths", "ranks", "t", "heads", "skip"),
    [
        ([2, 2], [1], 2, [2], False), ([2, 2], [2], 2, [3], False), ([3, 1], [3], 2, [2], False), ([2, 1], [2], 2, [2], False),
        ([2, 2], [2], 1, [2], False), ([2, 2, 2], [1, 2], 2, [2, 1], False), ([2, 2, 2], [2, 1], 2, [1, 2], True),
        ([1, 1], [1], 2, [2], False), ([1, 2, 2], [1, 3], 2, [3, 2], False), ([2, 3, 2], [2, 2], 2, [1, 2], False),
        ([3, 1, 3], [3, 2], 2, [2, 1], False), ([3, 3, 1], [3, 3], 1, [2, 1], False), ([2, 2, 2], [1, 2], 1, [2, 1], True),
        ([2, 5, 1], [1, 1], 1, [3, 1], False), ([2, 6, 1], [1, 1], 2, [3, 1], False),
    ],
)  # fmt: skip
def test_layer_bounds_are_above_the_truth(
    widths: list[int], ranks: list[int], t: int, heads: list[int], skip: bool
) -> None:
    text = M.attention_text(widths, ranks, t, heads=heads, skip=skip)
    network = checker_families.Network("deep-lightning", widths, ranks, heads, t, skip)
    assert (
        M.generic_rank(text)
        <= checker_families.layers_bound(network)
        <= checker.read_program(text).parameters
    )


def test_layer_bounds_that_are_met() -> None:
    """Two heads with d = d' = 3: 9 x 9 matrices of rank 2. Twelve heads with d = 5, d' = 20: 25 x 100 matrices of rank 12."""
    text = M.attention_text([3, 3], [3], 2, heads=[2])
    network = checker_families.Network("deep-lightning", [3, 3], [3], [2], 2)
    assert checker_families.layers_bound(network) == 2 * (9 + 9 - 2) == M.generic_rank(text)
    text = M.attention_text([3, 3], [1], 2, heads=[2])
    network = checker_families.Network("deep-lightning", [3, 3], [1], [2], 2)
    assert checker_families.layers_bound(network) == 2 * (5 + 9 - 1) == M.generic_rank(text)
    for widths, ranks, t, heads, skip, value in (
        ([2, 2], [3], 1, [2], True, 8),  # two cubic forms in two variables
        ([3, 3], [3], 1, [2], False, 2 * (6 + 9 - 2)),
        ([3, 2, 1], [2, 1], 2, [1, 2], False, (8 + 6 - 1) + 6 - 4),  # GL(2) between the layers
        ([2, 3, 2], [2, 2], 2, [1, 2], False, (4 + 4 - 1) + 12 - 4),  # one head with two rows has two outputs
        ([3, 2, 3], [1, 1], 2, [1, 2], False, (5 + 6 - 1) + 12 - 4),  # three cubic forms of one token
        ([1, 2, 2], [1, 3], 2, [3, 2], False, 1 + 2 - 1),  # one row: a multiple of |x|^2 x
    ):
        text = M.attention_text(widths, ranks, t, heads=heads, skip=skip)
        network = checker_families.Network("deep-lightning", widths, ranks, heads, t, skip)
        assert checker_families.layers_bound(network) == value == M.generic_rank(text)
    network = checker_families.Network("deep-lightning", [5, 20], [5], [12], 2)
    assert checker_families.layers_bound(network) == 12 * (25 + 100 - 12)


def test_a_network_on_its_gauge_slice() -> None:
    document, n = M.wide_attention(16, 4, 3)
    assert n == 16 * 16 + 2 * (2 * 4 * 16 - 4 * 4 - 1)
    assert outcome(document)[0] == 0
    wrong = copy.deepcopy(document)
    wrong["lower"]["columns"][0] = wrong["lower"]["columns"][1]
    assert "the minor is zero" in outcome(wrong)[1]


@pytest.mark.slow
def test_delta_64_in_under_a_minute() -> None:
    document, n = M.wide_attention(64, 4, 3)
    assert len(json.dumps(document)) < 100_000
    began = time.process_time()
    assert outcome(document)[0] == 0
    assert time.process_time() - began < 60
    assert n == 64 * 64 + 2 * (2 * 4 * 64 - 4 * 4 - 1)


def test_maps_are_compared_with_their_polynomials() -> None:
    lines = [
        "%0 = weight x [2]",
        "%1 = gather [4] 0,0,0,1 %0",
        "%2 = gather [4] 0,0,1,1 %0",
        "%3 = gather [4] 0,1,1,1 %0",
    ]
    lines += ["%4 = multiply %1 %2", "%5 = multiply %4 %3"]
    text = "\n".join(["m2bridge program 1", *lines, "output y %5"]) + "\n"
    lower, n = M.minor(text)
    for names in ("s,t", "lambda,x_(0,1)"):
        a, b = names.split(",", 1)
        spec = f"map:{names}->{a}^3;{a}^2*{b};{a}*{b}^2;{b}^3"
        code, said = outcome(M.document(text, spec, n, lower, {"kind": "parameters"}))
        assert code == 0, said
        assert "The program is that of map:" in said
    for wrong in ("s^3;s^2*t;s*t^2;2*t^3", "s^3;s^2*t;s*t^2", "s^3;s^2*t;s*t^2;u^3"):
        assert outcome(M.document(text, f"map:s,t->{wrong}", n, lower, {"kind": "parameters"}))[0] == 7
    twice = "map:t,t->t^3;t^3;t^3;t^3"  # one name for two weights
    line = text.replace("gather [4] 0,0,0,1", "gather [4] 1,1,1,1").replace(
        "gather [4] 0,0,1,1", "gather [4] 1,1,1,1"
    )
    line = line.replace("gather [4] 0,1,1,1", "gather [4] 1,1,1,1")
    assert outcome(M.document(line, twice, 1, M.minor(line)[0], {"kind": "parameters"}))[1].startswith(
        "Rejected: the program has other variables"
    )
    code, said = outcome(M.document(text, "map:s,t->(s+t)^3", n, lower, {"kind": "parameters"}))
    assert code == 0
    assert "is not supported by this checker" in said


@pytest.mark.parametrize(
    ("polynomial", "code"), [("s-t", 0), ("-t+s", 0), ("s+t", 7), ("s-2*t", 7), ("-s-t", 7)]
)
def test_signs_of_maps(polynomial: str, code: int) -> None:
    lines = [
        "m2bridge program 1",
        "%0 = weight s []",
        "%1 = weight t []",
        "%2 = scale -1 %1",
        "%3 = add %0 %2",
        "output y %3",
        "",
    ]
    text = "\n".join(lines)
    document = M.document(text, f"map:s,t->{polynomial}", 1, M.minor(text)[0], {"kind": "coordinates"})
    assert outcome(document)[0] == code


# -- statements beyond dimension --------------------------------------------------------------------------


def test_closure_with_and_without_gradings() -> None:
    text = M.segre_text(2, 1)
    gradings = [[1] * 6, [1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 0, 0]]
    for degree, chosen in ((4, []), (5, gradings)):
        code, said = outcome(
            closure_certificate(text, [fuzz.QUARTIC], degree, prime=M.SMALL, gradings=chosen)
        )
        assert code == 0, said
        assert "Not covered: equations of higher degree" in said
    assert outcome(closure_certificate(text, [], 3, prime=M.SMALL))[0] == 0
    assert outcome(closure_certificate(text, [], 4, prime=M.SMALL))[0] == 7  # the quartic is missing
    changed = {**fuzz.QUARTIC, (2, 0, 0, 0, 0, 2): 1 + M.SMALL}  # vanishes modulo p only
    assert outcome(closure_certificate(text, [changed], 4, prime=M.SMALL))[0] == 7
    wrong = [[1, 2, 1, 1, 1, 1]]  # not homogeneous: A_11 V_2 + A_21 V_1
    assert outcome(closure_certificate(text, [fuzz.QUARTIC], 4, prime=M.SMALL, gradings=wrong))[0] == 7


def test_the_skew_counterexample_to_theorem_3_7() -> None:
    """(J, N, L) and (N, J, L / det N) are one function for skew J; virtual weights, two layers, d = 2, t = 2."""
    text = M.Text()
    m1, m2, last = text("weight M1 [2,2]"), text("weight M2 [2,2]"), text("weight L [1,2]")
    x = text("input X [2,2]")
    for m in (m1, m2):
        scores = text("einsum ab,ac->bc", x, text("einsum ab,bc->ac", m, x))
        x = text("einsum ab,bc->ac", x, scores)
    program = text.done(text("einsum ab,bc->ac", last, x))
    J, N, L = [0, 1, -1, 0], [1, 2, 3, 5], [7, 11]
    pair = [[*J, *N, *L], [*N, *J, *(Fraction(v, 1 * 5 - 2 * 3) for v in L)]]
    spec = "deep-lightning(d=[2,2,1],a=[2,2],t=2,parametrization=virtual)"
    code, said = outcome(same_function_certificate(program, pair, spec=spec))
    assert code == 0, said
    assert outcome(same_function_certificate(program, [pair[0], [*N, *J, *L]], spec=spec))[0] == 7
    assert outcome(same_function_certificate(program, [pair[0], pair[0]], spec=spec))[0] == 7
    big = [[x + M.P if i == 8 else x for i, x in enumerate(pair[0])], pair[1]]  # equal modulo a prime only
    assert outcome(same_function_certificate(program, big, spec=spec))[0] == 7


def w(j: int, c: int = 1) -> dict[Any, int]:
    """c times flat weight j."""
    return {((j, 1),): c}


def test_symmetries_as_statements() -> None:
    text = M.attention_text([2, 2, 2], [2, 1], 2)
    groups = M.attention_groups([2, 2, 2], [2, 1])
    assert outcome(symmetry_certificate(text, groups))[0] == 0
    assert outcome(symmetry_certificate(text))[0] == 7
    small = M.mlp_text([2, 2, 1], 2)
    rotation = {0: w(2), 1: w(3), 2: w(0, -1), 3: w(1, -1)}  # of the neurons of W1, with W2 = (1, 1) only
    assert outcome(symmetry_certificate(small, [], [rotation]))[0] == 7
    scaling = {0: w(0), 1: w(1), 4: w(4, -2)}
    assert outcome(symmetry_certificate(small, [], [scaling]))[0] == 0


# -- arithmetic -------------------------------------------------------------------------------------------


def test_points_by_streams() -> None:
    by = {"seed": 3, "stream": 4, "fixed": [[1, [7]]]}
    assert checker.read_point(by, 3, 101) == [M.splitmix(3, 4, 3)[0] % 101, 7, M.splitmix(3, 4, 3)[2] % 101]
    assert checker.read_point({"seed": 3, "stream": 5, "fixed": []}, 2, 101) == [
        x % 101 for x in M.splitmix(3, 5, 2)
    ]


def test_backward_derivatives_agree_with_forward_ones() -> None:
    """Every polynomial instruction, with broadcasting, negative steps and repeated entries."""
    text = M.Text()
    a, b, x = text("weight A [2,3]"), text("weight B [3]"), text("input x [2,1]")
    half = text("constant [2,1] 1/2 -3")
    parts = [text("multiply", a, b), text("add", x, text("multiply", a, half)), text("power 3", a)]
    joined = text("concatenate 0", *parts)
    turned = text("slice 5:3:-2,0:2:2", joined)
    picked = text("gather [2,2] 0,5,5,1", joined)
    mixed = text("einsum ab,cb->ca", turned, picked)
    summed = text("einsum ab->b", text("scale -2/7", mixed))
    scaled = text("einsum ,a->a", text("einsum ab,ab->", a, a), summed)
    lonely = text("einsum ab,cd->ac", a, picked)  # letters that are summed in one factor alone
    program = text.done(scaled, text("einsum abc->ca", text("reshape [2,1,3]", a)), lonely)
    rng = random.Random(1)
    weights, inputs = [rng.randrange(M.P) for _ in range(9)], [rng.randrange(M.P) for _ in range(2)]
    expected = M.jacobian(program, weights, [inputs], M.P)
    read = checker.read_program(program)
    run = checker.Evaluation(read, checker.ModP(M.P))
    forms = [(0, *read.output_entries[e]) for e in range(len(expected))]
    assert checker.jacobian(run, weights, [inputs], forms, list(range(9))) == expected


def test_softmax_by_its_gate_and_by_hand() -> None:
    """exp, sum, reciprocal and product have the values and the derivatives of softmax, at the same point."""
    runs = []
    for by_hand in (False, True):
        text = M.Text()
        w, x = text("weight W [2,3]"), text("input x [3]")
        scores = text("multiply", w, x)
        if by_hand:
            powers = text("exp", scores)
            total = text("reshape [2,1]", text("reciprocal", text("einsum ab->a", powers)))
            program = text.done(text("multiply", powers, total))
        else:
            program = text.done(text("softmax 1", scores))
        read = checker.read_program(program)
        run = checker.Evaluation(read, checker.ModP(M.SMALL), units=True)
        weights, point = [300, 700, 911, 5, 1999, 1024], [512, 3, 777, 11, 12, 13, 14, 15, 16]
        forms = [(0, *read.output_entries[e]) for e in range(6)]
        table = checker.jacobian(run, weights, [point], forms, list(range(6)))
        runs.append([run.outputs(weights, point), *table])
        lower, n = M.unit_minor(program)
        assert outcome(M.document(program, None, n, lower, {"kind": "parameters"}))[0] == 0
        assert n == 6
    assert runs[0] == runs[1]
    slopes = runs[0][1:]
    assert all(slopes[i][j] == 0 for i in range(3) for j in range(3, 6))
    assert all(slopes[i][j] != 0 for i in range(3) for j in range(3))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_along_any_axis(axis: int) -> None:
    """Entries along the axis add up to one, and each is its unit divided by the sum of the units."""
    text = f"m2bridge program 1\n%0 = weight w [2,3,2]\n%1 = softmax {axis} %0\noutput y %1\n"
    run = checker.Evaluation(checker.read_program(text), checker.ModP(M.SMALL), units=True)
    units = np.arange(1, 13).reshape(2, 3, 2)
    found = np.array(run.outputs([0] * 12, units.reshape(-1).tolist())).reshape(2, 3, 2)
    assert (found.sum(axis=axis) % M.SMALL == 1).all()
    assert (found * units.sum(axis=axis, keepdims=True) % M.SMALL == units).all()


def test_elimination_with_packed_rows() -> None:
    rng = random.Random(3)
    for p in (2, 3, 101, M.SMALL, 2**63 - 25):
        for _ in range(10):
            height, width, r = rng.randrange(1, 9), rng.randrange(1, 9), rng.randrange(1, 5)
            left = [[rng.randrange(p) for _ in range(r)] for _ in range(height)]
            right = [[rng.randrange(p) for _ in range(width)] for _ in range(r)]
            matrix = [
                [sum(x * y for x, y in zip(row, c, strict=True)) % p for c in zip(*right, strict=True)]
                for row in left
            ]
            rank = len(M.pivots(matrix, p)[0])
            assert checker.rank(matrix, p) == rank
            assert checker.sparse_rank([{i: x for i, x in enumerate(row) if x} for row in matrix], p) == rank
            vectors = checker.kernel(matrix, p)
            assert len(vectors) == width - rank == checker.rank(vectors, p)
            assert not any(
                sum(x * y for x, y in zip(row, v, strict=True)) % p for row in matrix for v in vectors
            )


def test_primes() -> None:
    assert [n for n in range(60) if checker.is_prime(n)] == [
        2,
        3,
        5,
        7,
        11,
        13,
        17,
        19,
        23,
        29,
        31,
        37,
        41,
        43,
        47,
        53,
        59,
    ]
    assert checker.is_prime(2**61 - 1)
    for n in (561, 3215031751, 3825123056546413051, (2**31 - 1) ** 2):  # strong pseudoprimes
        assert not checker.is_prime(n)


def test_streams_are_splitmix64() -> None:
    """Vigna's reference: the first numbers for seed 1234567; and another writing of the streams."""
    mix = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    found = list(checker.stream(0, 0, 5))
    assert found == M.splitmix(0, 0, 5)
    start = 1234567
    assert [next(iter(_plain(start, i))) for i in range(3)] == mix


def _plain(start: int, i: int) -> list[int]:
    mask = 2**64 - 1
    z = (start + (i + 1) * 0x9E3779B97F4A7C15) & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return [z ^ (z >> 31)]


# -- records and the command line -------------------------------------------------------------------------


def record(**changes: Any) -> dict[str, Any]:
    fields = {
        "analysis": "dimension", "model": "lightning(d=2,dp=1,a=2,t=2)", "certainty": "proved", "parameters": 10,
        "image_dim": 5, "generic_fiber_dim": 5, "lower_bound": 5, "upper_bound": 5, "statement": "anything",
        "certificate": json.loads(POOL["lightning"]),
    }  # fmt: skip
    return fields | changes


def test_records_say_nothing_that_their_certificate_does_not() -> None:
    code, said = outcome(record())
    assert code == 0
    assert said.endswith("Not covered by the certificate: statement.")
    for name, value in (
        ("image_dim", 6), ("image_dim", 5.0), ("parameters", 11), ("generic_fiber_dim", 4), ("lower_bound", 4),
        ("upper_bound", 6), ("certainty", "probable"), ("model", "lightning(d=2,dp=1,a=1,t=2)"), ("analysis", "closure"),
    ):  # fmt: skip
        assert outcome(record(**{name: value}))[0] == 7, name


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    for document, code in (
        (record(), 0),
        (record(image_dim=9), 7),
        (record(certificate=None), 7),  # it calls itself proved
        ({**record(certificate=None), "certainty": "computed"}, 8),
        ({}, 8),
        ([], 7),
        ({"version": 1, "model": "x", "claim": {}, "lower": {}, "upper": {}, "sha256": ""}, 8),
        (record(certificate={"version": 1}), 8),
    ):
        path.write_text(json.dumps(document))
        assert main(["check", str(path)]) == code
        assert alone(path, tmp_path).returncode == code
    assert "format 1" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "absent.json")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert alone(tmp_path / "absent.json", tmp_path).returncode == 8
    path.write_text(json.dumps(record()))
    assert main(["check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True


def test_records_without_the_file_of_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are verified, the record is not compared; without a certificate nothing is known."""
    beside = checker.beside
    monkeypatch.setattr(checker, "beside", lambda name: None if name == "families" else beside(name))
    code, said = outcome(record(image_dim=99))
    assert (code, said.partition(".")[0]) == (9, "Verified: the dimension is 5")
    assert "Not covered: the record" in said
    assert outcome({"job": {}, "result": record()})[0] == 9
    assert outcome({"job": {}, "result": record(certificate=None)})[0] == 8
    assert outcome({"result": record()})[0] == 8  # not the record of a batch
    assert outcome(record(certificate=[]))[0] == 8


def test_without_arguments_it_says_how_to_call_it() -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(FILE)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 8
    assert "RECORD" in done.stdout


RECORDED = [
        "map:x,y->x^2;x*y;y^2", "map:x,y->(x+y)^2;x*y/2", "linear(widths=[5,2,3,4])", "mlp(widths=[3,2,2],r=2)",
        "mlp(widths=[3,5,1],r=4)", "convolution(filters=[2,2],r=2)", "softmax(d=[3,2],a=[2],t=2)", "lightning(d=2,dp=2,a=1,t=2)",
        "deep-lightning(d=[2,3,2],a=[2,2],t=2)", "deep-lightning(d=[2,2],a=[2],t=2,heads=2)",
        "deep-lightning(d=[2,2,2],a=[2,2],t=2,skip=true)",
]  # fmt: skip


@pytest.mark.parametrize("spec", slow_except({"map:x,y->x^2;x*y;y^2", "mlp(widths=[3,2,2],r=2)"}, RECORDED))
def test_records_of_the_program_are_verified(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dimension", spec, "--no-engine", "--json"]) == 0
    path = tmp_path / "record.json"
    path.write_text(capsys.readouterr().out)
    done = alone(path, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "both are equal" in done.stdout
    done = alone(path, tmp_path, families=False)
    rests = json.loads(path.read_text())["certificate"]["upper"]["kind"] in ("virtual", "layers")
    assert done.returncode == (8 if rests else 9), done.stdout
    assert rests or "Not covered: the record" in done.stdout
