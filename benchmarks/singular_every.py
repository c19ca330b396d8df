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
import subprocess
import tempfile
import time
from pathlib import Path

from m2bridge.engine import find_engine, open_engine
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


def plain(binary: str, equations: str, script: str, seconds: float) -> str:
    """What a Macaulay2 process of its own prints, and how long it took."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "plain.m2"
        file.write_text(equations.replace("S =", "S' =") + script)
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                [binary, "--script", str(file)], capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not in {seconds:.0f} s"
        taken = time.perf_counter() - begun
    return (
        f"{taken:.1f} s {done.stdout.strip()}"
        if done.returncode == 0
        else f"error: {done.stderr.strip()[-80:]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--engine")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    info = find_engine(options.engine)
    print(f"Macaulay2 {info.version}; load {os.getloadavg()[0]:.1f}; {options.seconds:.0f} s each")
    print("| model | singular-locus | singularLocus, radical | FastMinors, radical |\n|---|---|---|---|")
    with open_engine(options.engine, warm=True) as engine:
        for spec in options.specs:
            begun = time.perf_counter()
            try:
                found = singular_locus(spec, engine=engine, timeout=options.seconds)
                total: dict[int, int] = {}
                for part in found.components or ():
                    total[part.dim] = total.get(part.dim, 0) + (part.degree or 0)
                sizes = "components not found" if found.components is None else str(sorted(total.items()))
                ours = f"{time.perf_counter() - begun:.1f} s {sizes}, {found.certainty.value}"
                equations = closure(spec, engine=engine, timeout=options.seconds).to_m2()
            except M2BridgeError as error:
                print(f"| `{spec}` | {error} | | |", flush=True)
                continue
            others = [plain(str(info.path), equations, script, options.seconds) for script in (PLAIN, FAST)]
            print(f"| `{spec}` | {ours} | {others[0]} | {others[1]} |", flush=True)


if __name__ == "__main__":
    main()
