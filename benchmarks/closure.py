"""Benchmark: equations of closures by interpolation beside the best `ker` of Macaulay2.

Run ``python benchmarks/closure.py [--engine M2] [--seconds 60] [--ladder]``. It measures, in one run:

1. (3,1,2) and (3,1,3): the kernel of the ring map with a compatible grading in its best parametrization, against interpolation to
   the same degree (generators only), and against interpolation with all its accounting (dimension, degree counted on the
   parametrization, F4, Hilbert function, second prime, lift);
2. with ``--ladder``, the largest one-layer model each method finishes in ``--seconds``.

Seconds are wall-clock with Macaulay2's start-up in them; on a machine that does other work the processor time beside them
(of this process and its children) is the fairer measure, and ratios are of processor time; with a warm engine, whose processor
time is not ours to see, of wall-clock time. ``benchmarks/RESULTS-closure.md`` keeps what was printed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from m2bridge.engine import Engine, open_engine
from m2bridge.families import Model, parse_spec
from m2bridge.limits import Clock, Limits
from m2bridge.questions.closure import closure, interpolate
from m2bridge.questions.closure.ring_kernel import best_source, generator_counts
from m2bridge.questions.kernel import Context

LADDER = (
    (2, 1, 2),
    (2, 2, 2),
    (3, 1, 1),
    (2, 3, 2),
    (3, 1, 3),
    (3, 1, 2),
    (3, 2, 1),
    (2, 4, 2),
    (3, 2, 2),
    (3, 2, 3),
    (3, 3, 2),
    (4, 1, 2),
    (4, 1, 4),
    (4, 2, 2),
    (5, 1, 2),
    (4, 3, 2),
    (5, 2, 2),
)
"""One-layer models (d, d', a), roughly from small to large."""


def model_of(size: tuple[int, int, int]) -> Model:
    d, dp, a = size
    return parse_spec(f"lightning(d={d},dp={dp},a={a})")


@dataclass(frozen=True)
class Took:
    """Wall-clock and processor seconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} | {self.cpu:.2f}"


def processor_seconds() -> float:
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def timed(action: Callable[[], Any], repeat: int = 1) -> tuple[Took, Any]:
    """The run of a few that took the least processor time, and the last value."""
    best, value = Took(float("inf"), float("inf")), None
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), processor_seconds()
        value = action()
        took = Took(time.perf_counter() - wall, processor_seconds() - cpu)
        best = min(best, took, key=lambda t: t.cpu)
    return best, value


def show(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def by_template(
    engine: Engine, template: str, values: dict[str, Any], model: Model, seconds: float
) -> tuple[Took, dict[int, int] | None]:
    """What a script alone takes, and its generators by degree; None where it was not finished in time."""
    context = Context(
        engine=engine, prime=None, seed=0, limits=Limits(wall_seconds=seconds), keep=None, progress=None
    )
    took, (found, _) = timed(lambda: context.run_template(template, values, model))
    return took, generator_counts(found) if "generators" in found else None


def by_kernel(
    engine: Engine, size: tuple[int, int, int], seconds: float
) -> tuple[Took, dict[int, int] | None]:
    return by_template(
        engine, "closure_kernel", {"p": 32003, "hilbertDegrees": 1}, best_source(model_of(size)), seconds
    )


def compare(engine: Engine, warm: Engine, seconds: float) -> None:
    show("| case | method | s | s processor | generators | ratio |", "|---|---|---|---|---|---|")
    for size in ((3, 1, 2), (3, 1, 3)):
        reference, counts = by_kernel(engine, size, 10 * seconds)
        show(f"| {size} | `ker`, best parametrization | {reference} | {counts} | 1 |")
        fast, found = timed(lambda size=size: interpolate(model_of(size), 4), repeat=3)
        assert found.counts == counts
        show(
            f"| {size} | interpolation, generators only | {fast} | {found.counts} | {reference.cpu / fast.cpu:.0f} |"
        )
        for name, opened in (("cold", engine), ("warm", warm)):
            start = reference if name == "cold" else by_kernel(opened, size, 10 * seconds)[0]
            full, answer = timed(
                lambda size=size, opened=opened: closure(
                    model_of(size), method="interpolation", engine=opened
                ),
                repeat=2,
            )
            assert dict(answer.generator_counts) == counts
            assert answer.agreement
            ratio = start.cpu / full.cpu if name == "cold" else start.wall / full.wall
            against = f"{start.cpu:.1f} s processor" if name == "cold" else f"{start.wall:.1f} s wall-clock"
            show(
                f"| {size} | interpolation with all accounting, {name} engine (`ker` there: {against}) | {full} | "
                f"{dict(answer.generator_counts)} | {ratio:.1f} |"
            )


def largest(engine: Engine, seconds: float) -> None:
    """Climb the ladder with each method until it fails; report the last size finished."""
    show("", f"Largest case of the ladder {', '.join(map(str, LADDER))} finished in {seconds:g} s:", "")
    show("| method | largest finished | s | s processor | first not finished |", "|---|---|---|---|---|")

    def kernel_finishes(size: tuple[int, int, int]) -> bool:
        return by_kernel(engine, size, seconds)[1] is not None

    def interpolation_finishes(size: tuple[int, int, int]) -> bool:
        return interpolate(model_of(size), 4, clock=Clock(seconds, 3 * 2**30)).limit is None

    for name, finishes in (
        ("`ker` (the whole ideal)", kernel_finishes),
        ("interpolation to degree 4", interpolation_finishes),
    ):
        done, took, failed = "none", Took(0.0, 0.0), "none"
        for size in LADDER:
            elapsed, fine = timed(lambda size=size, finishes=finishes: finishes(size))
            if not fine or elapsed.wall > seconds:
                failed = str(size)
                break
            done, took = str(size), elapsed
        show(f"| {name} | {done} | {took} | {failed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", help="path of a Macaulay2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ladder", action="store_true", help="also the largest case each method finishes")
    options = parser.parse_args()
    with open_engine(options.engine) as engine, open_engine(options.engine, warm=True) as warm:
        show("# Closures: interpolation beside Macaulay2", "")
        show(
            f"Macaulay2 {engine.info.version}; printed by `python benchmarks/closure.py --seconds {options.seconds:g}`.",
            "",
        )
        compare(engine, warm, options.seconds)
        if options.ladder:
            largest(engine, options.seconds)


if __name__ == "__main__":
    main()
