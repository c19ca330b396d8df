"""Benchmark: singular loci beside Macaulay2's ``singularLocus`` with ``radical``, and beside its package FastMinors.

Run ``python benchmarks/singular_every.py [--engine M2] [--seconds 60] [SPEC ...]``. For each model it measures, in one run:

1. the question `singular-locus` with all its witnesses (equations included, on a warm engine);
2. plain Macaulay2 that is given equations of the closure over F_p: all minors of the Jacobian (``singularLocus``), then
   ``radical`` and ``decompose``;
3. the same with minors chosen by FastMinors (``chooseGoodMinors``): a set that contains the singular locus and may be larger.

Each may take ``--seconds``; what does not finish says so. Seconds are wall-clock with start-up in them. The dimensions of the
components with the sums of their degrees are printed, to be compared. ``benchmarks/RESULTS-singular-every.md`` keeps a run.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter

from measuring import plain_macaulay2, print_heading, table_row, timed

from m2bridge.engine import Engine, open_engine
from m2bridge.errors import M2BridgeError
from m2bridge.questions.closure import closure
from m2bridge.questions.singular_locus import singular_locus

SPECS = (
    "map:s,t->s;s*t;t^2",
    "map:a,b,c,d->a^2*c;a^2*d+2*a*b*c;2*a*b*d+b^2*c;b^2*d",
    "convolution(filters=[2,2],r=2)",
    "linear(widths=[3,1,3])",
    "linear(widths=[3,2,3])",
    "linear(widths=[3,2,4])",
    "mlp(widths=[3,2,1],r=2)",
    "mlp(widths=[2,2,3],r=2)",
    "mlp(widths=[2,2,2],r=3)",
)
SIZES = """
C = if J == 1 then {} else decompose J;
print toString apply(sort unique apply(C, dim), k -> (k, sum(select(C, c -> dim c == k), degree)));
"""
PLAIN = "J = radical ideal singularLocus I; J = sub(J, ring I);" + SIZES
FAST = (
    """needsPackage "FastMinors";
c = codim I; M = jacobian I;
J = radical(I + chooseGoodMinors(40, c, M, I));"""
    + SIZES
)


def plain(program: str, script: str, seconds: float) -> str:
    """Return what a Macaulay2 process of its own prints, and how long it took."""
    took, done = timed(lambda: plain_macaulay2(program, script, seconds))
    if done is None:
        return f"not in {seconds:.0f} s"
    if done.returncode:
        return f"error: {done.stderr.strip()[-80:]}"
    return f"{took.wall:.1f} s {done.stdout.strip()}"


def row(spec: str, engine: Engine, seconds: float) -> list[str]:
    """Return the answer of m2bridge and those of plain Macaulay2, with their times."""
    took, found = timed(lambda: singular_locus(spec, engine=engine, timeout=seconds))
    total: Counter[int] = Counter()
    for component in found.components or ():
        total[component.dim] += component.degree or 0
    sizes = "components not found" if found.components is None else str(sorted(total.items()))
    equations = closure(spec, engine=engine, timeout=seconds).to_m2().replace("S =", "S' =")
    others = [plain(str(engine.info.path), equations + script, seconds) for script in (PLAIN, FAST)]
    return [f"{took.wall:.1f} s {sizes}, {found.certainty.value}", *others]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--engine")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with open_engine(options.engine, warm=True) as engine:
        print(f"Macaulay2 {engine.info.version}; load {os.getloadavg()[0]:.1f}; {options.seconds:.0f} s each")
        print_heading("model", "singular-locus", "singularLocus, radical", "FastMinors, radical")
        for spec in options.specs:
            try:
                cells = row(spec, engine, options.seconds)
            except M2BridgeError as error:
                cells = [str(error), "", ""]
            print(table_row(f"`{spec}`", *cells), flush=True)


if __name__ == "__main__":
    main()
