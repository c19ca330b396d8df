"""Symmetries that are searched: how many of one's own networks are proved, and what a search costs as weights grow.

    python benchmarks/symmetries.py [--large]

The networks are those of ``tests/networks.py``. The ladder searches affine fields of perceptrons written by hand, with about 50,
200 and 1,000 weights, by the gradings of the program and, where the linear system stays small enough, without them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import upper_bound_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from m2bridge import dimension
from m2bridge.families.user_network import from_callable
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.work import WorkBudget
from m2bridge.symmetry.search import MOST_UNKNOWNS, Search
from tests.networks import NETWORKS

P = 8388593
LADDER = {50: (3, 5, 5, 2), 200: (6, 10, 10, 4), 1000: (14, 22, 22, 10)}


def networks() -> None:
    proved = 0
    print("network | weights | dimension | certainty | orbits | upper bound by | seconds")
    for name, function, shapes, inputs in NETWORKS:
        model = from_callable(function, shapes, inputs=inputs or None)
        found = dimension(model, engine=False)
        best = upper_bound_of(found.evidence)
        proved += found.certainty.value == "proved"
        row = (
            name,
            found.parameters,
            found.image_dim,
            found.certainty.value,
            found.symmetry_dim,
            best.method,
        )
        print(" | ".join(map(str, row)), f"| {found.seconds:.2f}", flush=True)
    print(f"proved: {proved} of {len(NETWORKS)}")


def perceptron(widths: tuple[int, ...]) -> Any:
    """The network as a user would write it: no family is known to the search."""

    def network(x: Any, **weights: Any) -> Any:
        for k in range(1, len(widths)):
            x = weights[f"W{k}"] @ (x if k == 1 else x**2)
        return x

    shapes = {f"W{k}": (widths[k], widths[k - 1]) for k in range(1, len(widths))}
    return from_callable(network, shapes, inputs={"x": (widths[0],)}).program


def ladder(*, large: bool) -> None:
    print(
        "weights | gradings | parts solved | largest part | fields | seconds of the search | of verification"
    )
    for count, widths in LADDER.items():
        program = perceptron(widths)
        corank = program.parameter_count - generic_rank(program, p=P).rank
        for graded in (True, False):
            unknowns = program.parameter_count * (program.parameter_count + 1)
            if not graded and unknowns > (45_000 if large else MOST_UNKNOWNS):
                print(f"{program.parameter_count} | no | 1 | {unknowns} | not tried")
                continue
            print(measured(program, corank, graded=graded), flush=True)
        assert count * 0.5 < program.parameter_count < count * 1.5


def measured(program: Any, corank: int, *, graded: bool) -> str:
    start = time.perf_counter()
    search = Search(program, p=P, work=WorkBudget(6e11), corank=corank)
    if not graded:
        search.characters = np.zeros_like(search.characters)
    sizes = [len(part) for part in search._parts(1)]
    inner, spent = search.verifier.is_symmetry, [0.0]

    def timed(field: Any) -> bool | None:
        begin = time.perf_counter()
        verdict = inner(field)
        spent[0] += time.perf_counter() - begin
        return verdict

    search.verifier.is_symmetry = timed  # type: ignore[method-assign]
    found = search.run(1)
    total = time.perf_counter() - start
    word = "yes" if graded else "no"
    return (
        f"{program.parameter_count} | {word} | {len(sizes)} | {max(sizes)} | {len(found.fields)} of {corank} | "
        f"{total - spent[0]:.2f} | {spent[0]:.2f}"
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--large", action="store_true", help="also solve large systems without gradings")
    given = arguments.parse_args()
    networks()
    ladder(large=given.large)
