"""Generic ED degrees beside Macaulay2's own package EuclideanDistanceDegree, in one run on one engine.

For each network: our count in the weights over F_p, with the check of the differential but without a second witness (wall
seconds, Python included); the package's `determinantalGenericEDDegree` on the equations of the closure, which we compute before
and do not charge to it; its `parameterizedGenericEDDegree` on a chart of the weights over QQ (both in its own processor seconds).
Each has the same time limit. The package's general metric is a diagonal one; Macaulay2 1.21 does not have the package::

    python benchmarks/critical_points.py --engine /path/to/M2 --seconds 60
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measuring import context_of, plain_macaulay2, print_heading, table_row, timed

from m2bridge.engine import Engine, open_engine
from m2bridge.errors import M2BridgeError
from m2bridge.families import parse_spec
from m2bridge.linear.primes import MACAULAY2_PRIME
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.counting import Counter
from m2bridge.questions.critical_points.losses import metric_loss

CASES = (
    "map:s,t->s^3;s^2*t;s*t^2;t^3",
    "linear(widths=[2,1,2])",
    "linear(widths=[2,1,3])",
    "convolution(filters=[2,2],r=2)",
    "lightning(d=2,dp=1)",
    "linear(widths=[3,2,3])",
    "linear(widths=[3,1,3])",
    "mlp(widths=[3,2,1],r=2)",
    "convolution(filters=[3,2],r=2)",
    "lightning(d=2,dp=2,a=1)",
    "lightning(d=2,dp=2)",
    "convolution(filters=[2,2,2],r=2)",
)


def ours(spec: str, engine: Engine, seconds: float) -> tuple[int | None, float]:
    """The count in a chart of the weights, and how long it took."""
    model = parse_spec(spec).leanest

    def count() -> int | None:
        source = ExpandedMap(model, MACAULAY2_PRIME, 0)
        loss = metric_loss(model, "generic", 0, 0, small=False)
        return (
            Counter(context_of(engine, seconds), loss, MACAULAY2_PRIME)
            .count(model, source.chart(dense=False))
            .points
        )

    took, points = timed(count)
    return points, took.wall


def implicit(spec: str, engine: Engine) -> str:
    """A script for the package: the equations of the closure, which we found beforehand."""
    found = closure(parse_spec(spec).leanest, engine=engine, prime=MACAULAY2_PRIME, timeout="5m")
    return f"{found.written('m2')}\nanswer = determinantalGenericEDDegree(I_*);"


def parametrized(spec: str) -> str:
    """A script for the package: the coordinates on a chart of the weights with as many unknowns as the image has dimensions."""
    source = ExpandedMap(parse_spec(spec).leanest, MACAULAY2_PRIME, 0)
    chart = source.chart(dense=False, scaled=False)
    free = [next(i for i, entry in enumerate(row) if entry) for row in chart.directions]
    weights = [f"w{i}" if i in free else str(value) for i, value in enumerate(chart.base)]
    texts = []
    for polynomial in source.polynomials:
        terms = [
            "*".join([f"({c})", *(f"({weights[i]})^{e}" for i, e in enumerate(powers) if e)])
            for powers, c in polynomial.items()
        ]
        texts.append("+".join(terms) or "0")
    ring = ",".join(f"w{i}" for i in free)
    return f"R = QQ[{ring}];\nF = apply({{{','.join(texts)}}}, f -> f_R);\nanswer = parameterizedGenericEDDegree F;"


def theirs(script: str, program: Path, seconds: float) -> tuple[str, float]:
    """The package's number, and how long its own computation took."""
    text = f"""needsPackage "EuclideanDistanceDegree";
start = cpuTime();
{script}
<< "answer " << answer << " " << cpuTime() - start << endl;
"""
    run = plain_macaulay2(program, text, seconds)
    if run is None:
        return "no answer", seconds
    found = [line.split() for line in run.stdout.splitlines() if line.startswith("answer ")]
    return (found[0][1], float(found[0][2])) if found else ("error", 0.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="a Macaulay2 with EuclideanDistanceDegree")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--spec", action="append", help="only these networks")
    given = parser.parse_args()
    print_heading("network", "m2bridge", "s", "from equations", "s", "from weights", "s")
    with open_engine(str(given.engine), warm=True) as engine:
        for spec in given.spec or CASES:
            number, own = ours(spec, engine, given.seconds)
            try:
                first = theirs(implicit(spec, engine), given.engine, given.seconds)
            except M2BridgeError as error:
                first = (f"no equations: {str(error)[:40]}", 0.0)
            second = theirs(parametrized(spec), given.engine, given.seconds)
            cells = [f"{value} | {seconds:.1f}" for value, seconds in ((number, own), first, second)]
            print(table_row(f"`{spec}`", *cells), flush=True)


if __name__ == "__main__":
    main()
