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

from measuring import Took, context_of, print_heading, table_row, timed

from m2bridge.engine import Engine, open_engine
from m2bridge.families import Model, parse_spec
from m2bridge.limits import Clock
from m2bridge.linear.primes import MACAULAY2_PRIME
from m2bridge.questions.closure import closure, interpolate
from m2bridge.questions.closure.ring_kernel import RingKernel, best_source

Size = tuple[int, int, int]
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


def model_of(size: Size) -> Model:
    d, dp, a = size
    return parse_spec(f"lightning(d={d},dp={dp},a={a})")


def times(took: Took) -> str:
    return f"{took.wall:.2f} | {took.cpu:.2f}"


def by_kernel(engine: Engine, size: Size, seconds: float) -> tuple[Took, dict[int, int] | None]:
    """Return what the kernel alone takes, and its generators by degree; None where it was not finished in time."""
    context = context_of(engine, seconds)
    values = {"p": MACAULAY2_PRIME, "hilbertDegrees": 1}
    took, (found, _) = timed(
        lambda: context.run_template("closure_kernel", values, best_source(model_of(size)))
    )
    kernel = RingKernel(values=found, p=MACAULAY2_PRIME, limit=None)
    return took, kernel.counts if "generators" in found else None


def compare(engine: Engine, warm: Engine, seconds: float) -> None:
    print_heading("case", "method", "s", "s processor", "generators", "ratio")
    for size in ((3, 1, 2), (3, 1, 3)):
        model = model_of(size)
        reference, counts = by_kernel(engine, size, 10 * seconds)
        print(table_row(size, "`ker`, best parametrization", times(reference), counts, 1))
        fast, found = timed(lambda model=model: interpolate(model, 4), repeat=3)
        assert found.counts == counts
        ratio = f"{reference.cpu / fast.cpu:.0f}"
        print(table_row(size, "interpolation, generators only", times(fast), found.counts, ratio))
        for name, opened in (("cold", engine), ("warm", warm)):
            full, answer = timed(
                lambda model=model, opened=opened: closure(model, method="interpolation", engine=opened),
                repeat=2,
            )
            assert dict(answer.generator_counts) == counts
            assert answer.agreement
            kernel = reference if name == "cold" else by_kernel(opened, size, 10 * seconds)[0]
            factor = kernel.cpu / full.cpu if name == "cold" else kernel.wall / full.wall
            against = f"{kernel.cpu:.1f} s processor" if name == "cold" else f"{kernel.wall:.1f} s wall-clock"
            method = f"interpolation with all accounting, {name} engine (`ker` there: {against})"
            print(table_row(size, method, times(full), counts, f"{factor:.1f}"), flush=True)


def largest(engine: Engine, seconds: float) -> None:
    """Climb the ladder with each method until it fails; print the last size finished."""
    print(f"\nLargest case of the ladder {', '.join(map(str, LADDER))} finished in {seconds:g} s:\n")
    print_heading("method", "largest finished", "s", "s processor", "first not finished")

    def kernel_finishes(size: Size) -> bool:
        return by_kernel(engine, size, seconds)[1] is not None

    def interpolation_finishes(size: Size) -> bool:
        return interpolate(model_of(size), 4, clock=Clock(seconds, 3 * 2**30)).stop is None

    for name, finishes in (
        ("`ker` (the whole ideal)", kernel_finishes),
        ("interpolation to degree 4", interpolation_finishes),
    ):
        done, took, failed = "none", Took(0.0, 0.0), "none"
        for size in LADDER:
            elapsed, finished = timed(lambda size=size, finishes=finishes: finishes(size))
            if not finished or elapsed.wall > seconds:
                failed = str(size)
                break
            done, took = str(size), elapsed
        print(table_row(name, done, times(took), failed), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", help="path of a Macaulay2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ladder", action="store_true", help="also the largest case each method finishes")
    options = parser.parse_args()
    with open_engine(options.engine) as engine, open_engine(options.engine, warm=True) as warm:
        print("# Closures: interpolation beside Macaulay2\n")
        command = f"python benchmarks/closure.py --seconds {options.seconds:g}"
        print(f"Macaulay2 {engine.info.version}; printed by `{command}`.\n")
        compare(engine, warm, options.seconds)
        if options.ladder:
            largest(engine, options.seconds)


if __name__ == "__main__":
    main()
