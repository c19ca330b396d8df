"""A mutation fuzzer for the checker that knows the format: `python tests/checker/fuzz.py SECONDS [SEED]`,
in seconds of processor time.

It takes true certificates, changes programs, points, groups, specs and arguments in ways that keep most of them well-formed,
lets the statement follow what the checker says that the bounds show, and asks the checker. Whatever is accepted is compared
with a second computation (`makers`: the producer's parser, forward derivatives, another prime; for specs the package's own
`dimension`). An accepted falsehood, or an exception, ends the run with a traceback and the document.
"""

from __future__ import annotations

import copy
import json
import random
import re
import sys
import time
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import makers as M  # noqa: N812
import numpy as np
from makers import (
    closure_certificate,
    composition_bound,
    fields_bound,
    inside_certificate,
    narrow_matrices,
    outside_certificate,
    same_function_certificate,
    singular_certificate,
    smooth_certificate,
    symmetry_certificate,
)

from m2bridge import checker, checker_further, from_callable
from m2bridge.certificates import produce
from m2bridge.programs import ProgramError, parse_program
from m2bridge.questions.dimension import dimension
from m2bridge.questions.identifiable import identifiable

Document = dict[str, Any]
QUARTIC = {
    (2, 0, 0, 0, 0, 2): 1, (1, 0, 1, 1, 0, 1): -2, (0, 0, 2, 2, 0, 0): 1, (1, 1, 0, 0, 1, 1): -1,
    (1, 0, 1, 0, 2, 0): 1, (0, 2, 0, 1, 0, 1): 1, (0, 1, 1, 1, 1, 0): -1,
}  # fmt: skip
"""The resultant of two binary quadrics: the closure of the image of lightning(d=2,dp=1)."""


DOUBLED = (
    "weight w [2]", "weight v [2]", "input x [2]", "multiply %0 %2", "exp %3", "scale 2 %3", "exp %5", "multiply %1 %6",
    "add %4 %7",
)  # fmt: skip
"""e^(w x) + v e^(2 w x), entry by entry: the second exponential is the square of the first."""


FURTHER = (
    "attention(d=[2,2],a=[1],t=2,r=2,causal=true,tied=true)", "attention(d=[2,2],a=[1],t=2,heads=2,skip=true,causal=true)",
    "transformer(d=1,a=1,t=2,hidden=1,r=2,layers=1,positions=true)",
    "mlp(widths=[2,2,1],r=[2],bias=true)", "mlp(widths=[1,2,2,1],r=[2,3])",
    "cp(sizes=[2,2,2],rank=1)",
)  # fmt: skip
"""Families of which the checker knows the definition alone; their certificates are the package's own."""


FRESH = (
    "softmax(d=[2,2,2],a=[1,1],t=2)", "mlp(widths=[2,3,2,1],r=2)", "linear(widths=[3,2,3])", "convolution(filters=[2,2],r=2)",
    "mlp(widths=[3,5,1],r=4)", "deep-lightning(d=[2,2],a=[2],t=2,heads=2)", "attention(d=[2,2],a=[1],t=2,softmax=true)",
)  # fmt: skip


@cache
def pool() -> tuple[tuple[str, str], ...]:
    """Names and texts of true certificates."""
    found: dict[str, Document] = {}

    def add(name: str, text: str, spec: str | None, upper: Document, lower: Any = None) -> None:
        low, n = lower or M.minor(text)
        found[name] = M.document(text, spec, n, low, upper)

    text = M.attention_text([2, 1], [2], 2, single=True)
    groups = M.attention_groups([2, 1], [2], single=True)
    add("lightning", text, "lightning(d=2,dp=1,a=2,t=2)", M.symmetries(text, groups))
    text = M.attention_text([2, 2, 2], [2, 1], 2)
    add(
        "deep",
        text,
        "deep-lightning(d=[2,2,2],a=[2,1],t=2)",
        M.symmetries(text, M.attention_groups([2, 2, 2], [2, 1])),
    )
    add("virtual", text, "deep-lightning(d=[2,2,2],a=[2,1],t=2)", {"kind": "virtual"})
    text = M.attention_text([2, 2], [1], 2, heads=[2])
    add("heads", text, "deep-lightning(d=[2,2],a=[1],t=2,heads=2)", {"kind": "layers"})
    groups = M.attention_groups([2, 2], [1], heads=[2])
    found["heads by symmetries"] = {**found["heads"], "upper": M.symmetries(text, groups)}
    text = M.attention_text([2, 2, 2], [2, 2], 2, skip=True)
    groups = M.attention_groups([2, 2, 2], [2, 2], skip=True)
    add("skip", text, "deep-lightning(d=[2,2,2],a=[2,2],t=2,skip=true)", M.symmetries(text, groups))
    text = M.mlp_text([2, 3, 1], 4)
    torus = {"group": "torus", "size": 3, "axes": {"W1": [1, 0], "W2": [0, -4]}}
    add("mlp", text, "mlp(widths=[2,3,1],r=4)", {"kind": "coordinates"})
    text = M.mlp_text([2, 2, 1], 4)
    torus = {"group": "torus", "size": 2, "axes": {"W1": [1, 0], "W2": [0, -4]}}
    add("torus", text, "mlp(widths=[2,2,1],r=4)", M.symmetries(text, [torus]))
    text = M.mlp_text([3, 2, 1], 2)
    weights = {"seed": 1, "stream": 2, "fixed": []}
    upper = {"kind": "flattening", "flattening": ["catalecticant", 1], "prime": M.SMALL, "weights": weights}
    add("flattening", text, "mlp(widths=[3,2,1],r=2)", upper)
    text = M.mlp_text([3, 2, 2, 3], 1)
    upper = narrow_matrices(parse_program(text))
    add("linear", text, "linear(widths=[3,2,2,3])", upper)
    text = M.convolution_text([2, 3], [1, 1], 2)
    scaling = {"group": "scaling", "weights": {"w1": 1, "w2": -2}}
    add("convolution", text, "convolution(filters=[2,3],r=2)", M.symmetries(text, [scaling]))
    text = M.attention_text([2, 2], [1], 2, softmax=True)
    groups = M.attention_groups([2, 2], [1], softmax=True)
    add("softmax", text, "softmax(d=[2,2],a=[1],t=2)", M.symmetries(text, groups), M.unit_minor(text))
    text = (
        "m2bridge program 1\n"
        + "".join(f"%{k} = {line}\n" for k, line in enumerate(DOUBLED))
        + "output y %8\n"
    )
    lower = M.unit_minor(text, relations={9: {7: Fraction(2)}, 10: {8: Fraction(2)}})
    add("relations", text, None, {"kind": "parameters"}, lower)
    found["wide"] = M.wide_attention(3, 2, 2)[0]
    text = M.segre_text(2, 1)
    spec = "lightning(d=2,dp=1,a=2,t=2,parametrization=attention)"
    equations = {
        "kind": "equations",
        "equations": closure_certificate("", [QUARTIC], 0, prime=2)["statement"]["equations"],
    }
    equations |= {"prime": M.SMALL, "weights": {"entries": [1, 2, 3, 5, 7, 11]}}
    add("equations", text, spec, equations)
    found["closure"] = closure_certificate(text, [QUARTIC], 4, prime=M.SMALL, spec=spec, gradings=[[1] * 6])
    low, upper = found["equations"]["lower"], equations
    found["smooth"] = smooth_certificate(text, [1, 2, 3, 5, 7, 11], [QUARTIC], low, prime=M.SMALL, spec=spec)
    found["singular"] = singular_certificate(text, [0] * 6, singular_arcs(), upper, prime=M.SMALL, spec=spec)
    found["inside"] = inside_certificate(text, [1, 2, 3, 4, 5, Fraction(1, 2)], segre_point(), spec=spec)
    found["outside"] = outside_certificate(text, QUARTIC, [1, 0, 1, 1, 2, 3], spec=spec)
    field = {i: {((i, 1),): 1 if i < 4 else -1} for i in range(6)}
    groups = [{"group": "scaling", "weights": {"A": 1, "V": -1}}]
    found["symmetry"] = symmetry_certificate(text, groups, [field], spec=spec)
    text = M.mlp_text([3, 1, 2], 1)
    gl = {"group": "gl", "size": 1, "axes": {"W1": [1, 0], "W2": [0, -1]}}
    point = {"seed": 3, "stream": 1, "fixed": []}
    both, cut = {"kind": "coordinates"}, {"prime": M.SMALL, "weights": point}
    add("composition", text, "linear(widths=[3,1,2])", composition_bound(3, both, both, groups=[gl], **cut))
    text = M.mlp_text([2, 1, 2], 1)  # 2 x 2 matrices of rank at most one
    low, _ = M.minor(text)
    determinant = {(1, 0, 0, 1): 1, (0, 1, 1, 0): -1}
    rank_one, linear = M.symmetries(text, [gl]), "linear(widths=[2,1,2])"
    found["inside matrix"] = inside_certificate(text, [1, 2, 3, 4], [3, 6, 4, 8], spec=linear)
    found["outside matrix"] = outside_certificate(text, determinant, [1, 2, 3, Fraction(7, 2)], spec=linear)
    found["smooth matrix"] = smooth_certificate(
        text, [1, 2, 3, 4], [determinant], low, prime=M.SMALL, spec=linear
    )
    arcs = [
        [[0, int(j == 0)], [0, int(j == 1)], [int(i == 0)], [int(i == 1)]] for i in range(2) for j in range(2)
    ]
    found["singular matrix"] = singular_certificate(text, [0] * 4, arcs, rank_one, prime=M.SMALL, spec=linear)
    text = M.mlp_text([3, 1, 2], 1)
    fields = [{i: {((0, 2),) if i == 0 else ((0, 1), (i, 1)): 1 if i < 3 else -1} for i in range(5)}]
    add("fields", text, "linear(widths=[3,1,2])", fields_bound([], fields, **cut))
    text = M.attention_text([2, 1], [2], 2, single=True, way="attention")
    points = [[1, 2, 3, 4, 5, 6], [-1, -2, -3, -4, -5, -6]]
    found["same"] = same_function_certificate(text, points, spec=spec)
    points, statement = [points[0], [2, *points[0][1:]]], dict(found["same"]["statement"])
    statement |= {"kind": "different functions", "weights": points, "input": [1, 2, "1/2", 0]}
    found["different"] = found["same"] | {"statement": statement}
    for spec in FURTHER:
        found[spec] = dimension(spec, engine=False).certificate or {}
    found |= produced()
    return tuple((name, json.dumps(value)) for name, value in found.items())


FUNCTIONS = (
    ("linear(widths=[2,1,2])", "W2 @ W1"), ("linear(widths=[2,1,2])", "W1"), ("linear(widths=[3,2,3])", "W1"),
    ("linear(widths=[3,2,3])", "W2"), ("linear(widths=[2,2,2])", "W1"), ("mlp(widths=[2,2,1],r=3)", "W1"),
    ("mlp(widths=[2,2,1],r=3)", "W2"), ("mlp(widths=[2,2,1],r=2)", "W1[0,0]"), ("lightning(d=2,dp=2,a=1,t=2)", "V"),
    ("deep-lightning(d=[2,2],a=[1],t=2,heads=2)", "V1"), ("softmax(d=[2,2],a=[1],t=2)", "K1.T @ Q1"),
)  # fmt: skip
"""Functions of the weights of networks: determined, determined up to each of the factors, or not determined."""


def produced() -> dict[str, Document]:
    """Certificates that the package writes: functions of the weights, square roots, and minors with solutions."""
    found: dict[str, Document] = {}
    for spec, function in FUNCTIONS:
        (found[f"{function} of {spec}"],) = identifiable(spec, function=function).certificate or ()

    def normalised(W: Any, V: Any, x: Any) -> Any:
        """A layer norm between two linear layers."""
        centred = W @ x - np.mean(W @ x)
        return V @ (centred / np.sqrt(centred @ centred))

    def sigmoid(W: Any, b: Any, V: Any, x: Any) -> Any:
        """A network with one hidden layer, and its input added."""
        return V @ (1 / (1 + np.exp(-(W @ x + b)))) + x

    networks: dict[str, Any] = {
        "norm": (normalised, {"W": (3, 2), "V": (2, 3)}, {"x": (2,)}),
        "root of weights": (lambda a, b, x: a * np.sqrt(b) * x + b * x * x, {"a": (), "b": ()}, {"x": ()}),
        "roots": (lambda a, b, x: np.sqrt(a * x[0] + b) + a * np.sqrt(x[1] + b), {"a": (), "b": ()}, {"x": (2,)}),
        "solutions": (sigmoid, {"W": (2, 2), "b": (2,), "V": (2, 2)}, {"x": (2,)}),
        "polynomial solutions": (lambda a, b, x: (a * x + b) ** 3 + x, {"a": (2,), "b": (2,)}, {"x": (2,)}),
    }  # fmt: skip
    most = produce.MOST_ELIMINATED
    try:
        for name, (function, shapes, inputs) in networks.items():
            produce.MOST_ELIMINATED = 0 if "solutions" in name else most
            answer = dimension(from_callable(function, shapes, inputs=inputs), engine=False)
            found[name] = dict(answer.certificate or {})
            assert ("solutions" in found[name]["lower"]) == ("solutions" in name), name
    finally:
        produce.MOST_ELIMINATED = most
    return found


@cache
def published() -> tuple[tuple[str, str], ...]:
    """Names and texts of the published certificates, and of some that the package writes now."""
    files = (Path(__file__).parents[2] / "results" / "certificates").glob("*.json")
    written = {spec: dimension(spec, engine=False).certificate for spec in FRESH}
    fresh = [(spec, json.dumps(document)) for spec, document in written.items() if document]
    return (*sorted((path.stem, path.read_text()) for path in files), *fresh)


def segre_point() -> list[Fraction]:
    """The Segre coordinates of A = (1, 2; 3, 4) and V = (5, 1/2): columns of A times V, as binary quadrics."""
    a, v = [[1, 2], [3, 4]], [Fraction(5), Fraction(1, 2)]
    return [x for m in (0, 1) for x in (a[0][m] * v[0], a[0][m] * v[1] + a[1][m] * v[0], a[1][m] * v[1])]


def singular_arcs() -> list[list[list[int]]]:
    """Arcs A = s E_ij, V = e_k of lightning(d=2,dp=1) through zero, whose tangents span all six coordinates."""
    return [
        [[0, int(i == place)] for i in range(4)] + [[int(i == k)] for i in range(2)]
        for place in range(4)
        for k in range(2)
    ]


# -- mutations --------------------------------------------------------------------------------------------


def mutate_spec(spec: str, rng: random.Random) -> str:
    """Another number, a number more or less in a list, a flag more or less."""
    choice = rng.randrange(4)
    flags = [f",{flag}=true" for flag in ("causal", "tied", "positions", "softmax", "skip", "bias")]
    if choice == 0 and (there := [flag for flag in flags if flag in spec]):
        return spec.replace(rng.choice(there), "")
    if choice == 1:
        return spec[:-1] + rng.choice(flags) + ")"
    places = [match.span() for match in re.finditer(r"[0-9]+", spec)]
    start, end = rng.choice(places) if places else (0, 0)
    return spec[:start] + rng.choice(["1", "2", "3", "4", "2,1", "1,2", "[2]", "-1"]) + spec[end:]


def mutate_program(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    if len(lines) < 3 or not lines[1].startswith("%"):
        return text  # there is no instruction left
    k = rng.randrange(1, len(lines) - 1)
    line = lines[k]
    choice = rng.randrange(9)
    if choice == 0 and "%" in line[3:]:
        refs = re.findall(r" (%\d+)", line)
        if refs:
            line = (
                line.replace(rng.choice(refs), f"%{rng.randrange(k)}", 1)
                if not line.startswith("%")
                else line
            )
            head, _, tail = line.partition(" = ")
            line = (
                f"{head} = {tail.replace(rng.choice(refs), f'%{rng.randrange(max(k - 1, 1))}', 1)}"
                if tail
                else line
            )
    elif choice == 1 and "einsum" in line:
        forms = [
            "ab,bc->ac",
            "ab,ac->bc",
            "ab,cb->ac",
            "ab,ac->cb",
            "ab,ab->ab",
            "ab,ab->a",
            "ab,cd->ab",
            "ab->ba",
            "ab,ab->",
            "ab,ac->abc",
        ]
        line = re.sub(r"einsum \S+", "einsum " + rng.choice(forms), line)
    elif choice == 2 and "power" in line:
        line = re.sub(r"power \d+", f"power {rng.randrange(1, 5)}", line)
    elif choice == 3:
        line = line.replace("add", "multiply") if "add" in line else line.replace("multiply", "add")
    elif choice == 4 and "[" in line:
        numbers = re.findall(r"\d+", line[line.index("[") :])
        if numbers:
            line = line[: line.index("[")] + line[line.index("[") :].replace(
                rng.choice(numbers), str(rng.randrange(1, 5)), 1
            )
    elif choice == 5 and "scale" in line:
        line = re.sub(r"scale \S+", "scale " + rng.choice(["0", "2", "-1/3", "2/2", "01"]), line)
    elif choice == 6:  # another instruction between the last one and the output
        count = sum(x.startswith("%") for x in lines)
        new = rng.choice(
            [
                "power 2",
                "scale 0",
                "scale 3",
                "exp",
                "add",
                "multiply",
                "einsum ab->ba",
                "einsum ab->a",
                "einsum a->a",
                "reshape [1]",
            ]
        )
        operand = f"%{rng.randrange(count)}"
        second = f" %{rng.randrange(count)}" if new in ("add", "multiply") else ""
        lines.insert(count + 1, f"%{count} = {new} {operand}{second}")
        lines[-2] = f"output y %{count}" if rng.random() < 0.8 else lines[-2]
        return "\n".join(lines)
    elif choice == 7:
        line = re.sub(r"softmax \d", f"softmax {rng.randrange(2)}", line)
    else:
        place = rng.randrange(len(line) or 1)
        line = line[:place] + rng.choice("0123456789abcd,->[]% /") + line[place + 1 :]
    lines[k] = line
    return "\n".join(lines)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(x for key, item in value.items() for x in leaves(item, (*path, key)))]
    if isinstance(value, list):
        return [path, *(x for key, item in enumerate(value) for x in leaves(item, (*path, key)))]
    return [path]


def mutate_value(value: Any, rng: random.Random, others: list[Any]) -> Any:
    odd = [0, 1, -1, 2, True, None, "", [], {}, 1.0, "*", 2**64, 7, 15, "1", [0], 10**20]
    if isinstance(value, bool) or value is None:
        return rng.choice(odd)
    if isinstance(value, int):
        return rng.choice(
            [value + 1, value - 1, -value, 0, 1, 2 * value, rng.randrange(20), *odd[:3], rng.choice(odd)]
        )
    if isinstance(value, str):
        if rng.random() < 0.5 and value:
            place = rng.randrange(len(value))
            return value[:place] + rng.choice("0123456789,[]()= aW\x1b") + value[place + 1 :]
        return rng.choice([value.replace("2", "3"), value + " ", value.upper(), rng.choice(odd)])
    if isinstance(value, list) and value:
        made = list(value)
        k = rng.randrange(len(made))
        choice = rng.randrange(6)
        if choice == 0:
            del made[k]
        elif choice == 1:
            made.append(made[k])
        elif choice == 2:
            made[k] = made[rng.randrange(len(made))]
        elif choice == 3:
            rng.shuffle(made)
        elif choice == 4:
            made = [0 if isinstance(x, int) else x for x in made]
        else:
            made[k] = mutate_value(made[k], rng, others)
        return made
    if isinstance(value, dict) and value:
        made_dict = dict(value)
        key = rng.choice(list(made_dict))
        choice = rng.randrange(4)
        if choice == 0:
            del made_dict[key]
        elif choice == 1:
            made_dict[key] = mutate_value(made_dict[key], rng, others)
        elif choice == 2:
            made_dict[rng.choice(["W1", "Q1", "x", "kind", "A", "V"])] = made_dict[key]
        else:
            return rng.choice(others)
        return made_dict
    return rng.choice(odd)


def of_upper(document: Document, key: str) -> Any:
    return document["upper"].get(key) if isinstance(document.get("upper"), dict) else None


def drawn_field(document: Document, rng: random.Random) -> Any:
    """A vector field of a few parts; most of them change the function."""
    count = 6
    parts = [
        [rng.randrange(count), rng.choice([1, -1, 2]), [[rng.randrange(count), 1]]]
        for _ in range(rng.randrange(1, 4))
    ]
    other = of_upper(document, "fields") or [parts]
    return mutate_value(copy.deepcopy(rng.choice(other)), rng, [parts]) if rng.random() < 0.5 else parts


VERDICTS = ("determined", "not determined", *(text for _, text in checker_further.UP_TO))


def mutate_statement(statement: Document, rng: random.Random) -> None:
    """Another function of the weights, another verdict, or a factor at another place."""
    choice = rng.randrange(4)
    if choice == 0:
        statement["verdict"] = rng.choice(VERDICTS)
    elif choice == 1:  # a product with a factor, as for verdicts up to one
        forms = (
            ",ab->ab",
            "a,ab->ab",
            "ab,bc->ac",
            "ab,ca->cb",
            "a,ba->ba",
            "a,a->a",
            ",a->a",
            "a,abc->abc",
            "ab,ab->ab",
        )
        statement["function"] = re.sub(r"einsum \S+", f"einsum {rng.choice(forms)}", statement["function"])
    else:
        statement["function"] = mutate_program(statement["function"], rng)


def mutated(document: Document, rng: random.Random) -> Document:
    made = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        choice = rng.random()
        other = json.loads(rng.choice(pool())[1])
        if choice < 0.3 and isinstance(made.get("program"), str):
            statement = made.get("statement")
            if (
                isinstance(statement, dict)
                and isinstance(statement.get("function"), str)
                and rng.random() < 0.7
            ):
                mutate_statement(statement, rng)
                continue
            made["program"] = mutate_program(made["program"], rng)
            if rng.random() < 0.7:
                made["spec"] = None
        elif choice < 0.4:
            key = rng.choice(["lower", "upper", "spec", "program", "argument", "statement"])
            if key in other:
                made[key] = other[key]
        elif choice < 0.5 and isinstance(groups := of_upper(made, "groups"), list):
            group = copy.deepcopy(rng.choice(groups or [{}]))
            groups.append(mutate_value(group, rng, [group]))
        elif choice < 0.53 and isinstance(fields := of_upper(made, "fields"), list):
            fields.append(drawn_field(made, rng))
        elif choice < 0.56 and isinstance(spec := made.get("spec"), str):
            made["spec"] = mutate_spec(spec, rng)
        elif choice < 0.58:
            simple = [{"kind": kind} for kind in ("parameters", "coordinates", "virtual", "layers")]
            cut = {
                "cut": rng.randrange(12),
                "first": rng.choice(simple),
                "second": rng.choice(simple),
                "samples": 3,
            }
            old = made.get("upper") if isinstance(made.get("upper"), dict) else {}
            point = {"seed": 3, "stream": 1, "fixed": []}
            whole = {
                "prime": M.SMALL,
                "weights": point,
                "groups": old.get("groups", []),
                "fields": old.get("fields", []),
            }
            made["upper"] = rng.choice(
                [*simple, {"kind": "composition", **cut, **whole}, {"kind": "composition", **cut, **whole}]
            )
        else:
            path = rng.choice([p for p in leaves(made) if p])
            target: Any = made
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = mutate_value(target[path[-1]], rng, [other.get("upper"), other.get("lower")])
    return made


# -- truth ------------------------------------------------------------------------------------------------


@cache
def truth_of_program(text: str) -> int:
    program = parse_program(text)
    if program.polynomial or any(item.operation == "sqrt" for item in program.instructions):
        return M.generic_rank(text)
    return M.real_rank(text, 10**3 if program.parameter_count > 60 else program.parameter_count, seed=9)


@cache
def truth_of_spec(spec: str) -> int:
    return int(dimension(spec, engine=False).image_dim)


def kernel(rows: list[list[int]], count: int) -> list[list[int]]:
    """A basis of the vectors v of this length with rows v = 0."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]
    beside = [[*column, *(int(i == k) for i in range(count))] for k, column in enumerate(columns)]
    height, kept = len(rows), list[tuple[int, list[int]]]()
    basis = []
    for vector in beside:
        rest = vector
        for pivot, other in kept:
            factor = rest[pivot]
            rest = [(a - factor * b) % M.P for a, b in zip(rest, other, strict=True)] if factor else rest
        pivot = next((i for i in range(height) if rest[i]), height)
        if pivot == height:
            basis.append(rest[height:])
            continue
        inverse = pow(rest[pivot], -1, M.P)
        kept.append((pivot, [x * inverse % M.P for x in rest]))
    return basis


def determines(document: Document) -> bool | None:
    """Whether a verdict on a function of the weights is right; None for programs that are not polynomial.

    Along the kernel of the Jacobian the function does not move, moves, or moves as the factor moves it at one.
    """
    program, statement = parse_program(document["program"]), document["statement"]
    g, verdict, n = parse_program(statement["function"]), statement["verdict"], program.parameter_count
    if not program.polynomial:
        return None
    weights, inputs, _, _ = M.generic_minor(program.text)
    still = kernel(M.jacobian(program.text, weights, inputs, M.P), n)
    shape = [*g.parameters.values()][-1] if g.parameter_count > n else ()
    one = [1] * (g.parameter_count - n) if len(shape) < 2 else [int(x) for x in np.eye(*shape).reshape(-1)]
    rows = M.jacobian(statement["function"], [*weights, *one], [[]], M.P)
    moved = [[sum(a * b for a, b in zip(row, v, strict=False)) % M.P for row in rows] for v in still]
    if verdict == "not determined":
        return g.parameter_count == n and any(map(any, moved))
    factors = [[row[k] for row in rows] for k in range(n, g.parameter_count)]
    wanted = "determined" if g.parameter_count == n else "up to"
    return wanted in verdict and len(M.pivots(factors + moved, M.P)[0]) == len(M.pivots(factors, M.P)[0])


def is_true(document: Document, said: list[str]) -> bool | None:
    """Whether a statement is true, by a second computation; None if there is none for it."""
    text, statement = document["program"], document["statement"]
    kind = statement["kind"]
    if kind == "identifiable":
        return determines(document)
    operations = {item.operation for item in parse_program(text).instructions}
    if "sqrt" in operations and (kind != "dimension" or operations & {"exp", "softmax"}):
        return None
    if kind == "dimension":
        true = truth_of_program(text) == statement["dimension"]
        if document["spec"] is not None and any("both are equal" in line for line in said):
            true = true and truth_of_spec(document["spec"]) == statement["dimension"]
        return true
    program, rng = parse_program(text), random.Random(3)
    size = sum(int(np.prod(s)) for s in program.input_shapes.values())
    inputs = [rng.randrange(M.P) for _ in range(size)]

    if kind == "different functions":
        inputs = [_residue(x) for x in statement["input"]]

    def outputs(weights: list[int]) -> list[int]:
        values = M.run(program, weights, inputs, M.P, slopes=False)
        return [int(v) for _, place in program.outputs for v in values[place].value.reshape(-1)]

    point = [rng.randrange(M.P) for _ in range(program.parameter_count)]
    if kind == "same function":
        pair = [[_residue(w) for w in ws] for ws in statement["weights"]]
        return statement["weights"][0] != statement["weights"][1] and outputs(pair[0]) == outputs(pair[1])
    if kind == "different functions":
        first, second = ([_residue(w) for w in ws] for ws in statement["weights"])
        return outputs(first) != outputs(second)
    if kind == "symmetry":
        if not program.polynomial:
            point = [rng.choice([1, 2, -1]) for _ in point]
        vectors = [_field_at(field, point) for field in statement["fields"]]
        vectors += [v for group in statement["groups"] for v in _generators(program, group, point)]
        if not program.polynomial:
            return all(_still(program, point, v, [rng.uniform(-1, 1) for _ in inputs]) for v in vectors)
        rows = M.jacobian(text, point, [inputs], M.P)
        return not any(sum(a * b for a, b in zip(row, v, strict=True)) % M.P for row in rows for v in vectors)
    if (
        kind == "closure"
    ):  # a hypersurface: an irreducible quartic, whose multiples are everything that vanishes
        y, equations = outputs(point), statement["equations"]
        quartic = any(max(sum(e for _, e in monomial) for _, monomial in f) == 4 for f in equations)
        return not any(_value(f, y) for f in equations) and (quartic or statement["degree"] <= 3)
    if kind == "inside":
        y, given = (
            outputs([_residue(w) for w in statement["weights"]]),
            [_residue(x) for x in statement["point"]],
        )
        if text == M.mlp_text([2, 1, 2], 1):
            return y == [
                sum(a * b for a, b in zip(given[k : k + 2], inputs, strict=True)) % M.P for k in (0, 2)
            ]
        return bool(size) or y == given
    if kind == "outside":
        y, given = outputs(point), [_residue(x) for x in statement["point"]]
        if text == M.mlp_text([2, 1, 2], 1):
            y = [point[2 + i] * point[j] % M.P for i in range(2) for j in range(2)]
        elif size:
            return True  # other coordinates, which nothing here knows
        f = statement["equation"]
        return _value(f, y) == 0 != _value(f, given)
    if kind in (
        "singular",
        "smooth",
    ):  # of two varieties in the pool: matrices of rank one; and pairs of quadrics with a common root
        y = outputs([_residue(w) for w in statement["weights"]])
        if text == M.mlp_text([2, 1, 2], 1):
            return (not any(y)) == (kind == "singular")
        if program.parameter_count != 6 or size:
            return True  # another variety, which nothing here knows
        plain = M.run(parse_program(M.segre_text(2, 1)), point, [], M.P, slopes=False)[-1].value.reshape(-1)
        if [int(v) for v in plain] != outputs(point):
            return True
        minors = [y[i] * y[3 + j] - y[j] * y[3 + i] for i in range(3) for j in range(i)]
        return (not any(m % M.P for m in minors)) == (kind == "singular")
    return False


def _still(program: Any, point: list[int], vector: list[int], x: list[float]) -> bool:
    """Whether outputs do not move in this direction, in float64 by a tiny imaginary step."""
    direction = [v % M.P - (M.P if v % M.P > M.P // 2 else 0) for v in vector]
    with np.errstate(all="ignore"):
        moved = M.complex_outputs(
            program, np.array(point) + 1e-30j * np.array(direction), np.array(x, dtype=complex)
        )
    real, slope = np.abs(moved.real), np.abs(moved.imag) / 1e-30
    return not np.all(np.isfinite(moved)) or bool(
        np.all(slope <= 1e-6 * (1 + real + np.max(np.abs(direction))))
    )


def _residue(w: Any) -> int:
    above, _, below = str(w).partition("/")
    return int(above) * pow(int(below or 1), -1, M.P) % M.P


def _value(f: Any, y: list[int]) -> int:
    total = 0
    for c, monomial in f:
        for i, e in monomial:
            c = c * pow(y[i], e, M.P) % M.P  # noqa: PLW2901
        total += c
    return total % M.P


def _field_at(field: Any, point: list[int]) -> list[int]:
    found = [0] * len(point)
    for i, c, monomial in field:
        found[i] += _value([[c, monomial]], point)
    return found


def _generators(program: Any, group: Document, point: list[int]) -> list[list[int]]:
    """Infinitesimal generators by NumPy, written apart from the checker's."""
    arrays, start = {}, 0
    for name, shape in program.parameters.items():
        count = int(np.prod(shape))
        arrays[name] = np.array(point[start : start + count], dtype=object).reshape(shape)
        start += count

    def flat(moved: dict[str, Any]) -> list[int]:
        parts = [np.asarray(moved.get(n, 0 * a), dtype=object).reshape(-1) for n, a in arrays.items()]
        return [int(x) for part in parts for x in part]

    if group["group"] == "scaling":
        return [flat({n: k * arrays[n] for n, k in group["weights"].items()})]
    size, found = group["size"], []
    stars = [(n, labels.index("*")) for n, labels in group["axes"].items() if "*" in labels]
    copies = arrays[stars[0][0]].shape[stars[0][1]] if stars else 1
    for copy_number in range(copies):
        for i in range(size):
            for j in range(size) if group["group"] == "gl" else [i]:
                unit = np.zeros((size, size), dtype=object)
                unit[i, j] = 1
                moved = {}
                for n, labels in group["axes"].items():
                    total = 0 * arrays[n]
                    for axis, label in enumerate(labels):
                        if label in ("*", 0):
                            continue
                        act = unit if label > 0 else -unit.T
                        act = act * abs(label)
                        total = total + np.moveaxis(np.tensordot(act, arrays[n], axes=(1, axis)), 0, axis)
                    if "*" in labels:
                        mask = np.zeros(arrays[n].shape, dtype=object)
                        np.moveaxis(mask, labels.index("*"), 0)[copy_number] = 1
                        total = total * mask
                    moved[n] = total
                found.append(flat(moved))
    return found


# -- the run ----------------------------------------------------------------------------------------------


def followed(document: Document, rounds: int = 3) -> tuple[int, list[str]]:
    """The outcome, after the statement has been changed to what the checker says that the bounds show."""
    code, said = 7, [""]
    for _ in range(rounds):
        code, said = checker.verify(json.dumps(document))
        match = re.search(r"bound shows a dimension of at (?:least|most) (\d+)", said[0])
        if code != 7 or not match or not isinstance(document.get("statement"), dict):
            break
        document["statement"]["dimension"] = int(match[1])
    return code, said


def same_reading(text: Any) -> None:
    """The checker's parser and the producer's accept the same programs."""
    if not isinstance(text, str):
        return
    try:
        parse_program(text)
        first = True
    except ProgramError:
        first = False
    try:
        checker.read_program(text)
        second = True
    except checker.Rejected:
        second = False
    except checker.Unknown:
        return
    assert first == second, f"one parser reads this and the other does not ({first}, {second}):\n{text}"


def fuzz(seconds: float, seed: int, most: int = 10**9) -> Counter[str]:
    """Ask about documents for so many seconds of processor time, or until there were enough: then without `published`."""
    rng, ends = random.Random(seed), time.process_time() + seconds
    counts: Counter[str] = Counter()
    documents = (*pool(), *(published() if most == 10**9 else ()))
    for name, text in documents:
        code, said = checker.verify(text)
        assert code == 0, (name, said)
        assert is_true(json.loads(text), said) is not False, name
    for _ in range(most):
        if time.process_time() > ends:
            break
        name, text = rng.choice(documents)
        document = mutated(json.loads(text), rng)
        same_reading(document.get("program"))
        began = time.process_time()
        code, said = followed(document)
        counts[f"outcome {code}"] += 1
        counts["slowest (ms)"] = max(counts["slowest (ms)"], int(1000 * (time.process_time() - began)))
        assert all(" " <= c <= "~" for line in said for c in line), said
        assert code != 1, f"an error of the checker:\n{json.dumps(document)}\n{said}"
        if code == 0 and json.dumps(document) != text:
            true = is_true(document, said)
            assert true is not False, f"accepted falsehood:\n{json.dumps(document)}\n{said}"
            counts["accepted and not compared" if true is None else "accepted and compared"] += 1
            counts[f"accepted: {document['statement']['kind']}"] += 1
    return counts


if __name__ == "__main__":
    for key, count in sorted(fuzz(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0).items()):
        print(f"{key:28} {count}")
