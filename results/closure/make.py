"""Make results/closure/table.md: closures of many models, each with what is shown about it.

Run ``python results/closure/make.py [--engine M2] [--seconds 60]``. Every row is one call of ``m2bridge closure SPEC --timeout
SECONDS --field QQ`` with seed 0 (two rows with ``--cross-check``); a row that reached the limit is partial.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from m2bridge.engine import open_engine
from m2bridge.families import parse_spec
from m2bridge.limits import Limits
from m2bridge.questions.closure import Closure, closure

ATTENTION = (
    (2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (2, 3, 1), (2, 3, 2), (3, 1, 1), (3, 1, 2), (3, 1, 3), (3, 2, 1), (3, 2, 2),
    (3, 2, 3), (4, 1, 1), (4, 1, 2),
)  # fmt: skip
CROSS_CHECKED = ("lightning(d=3,dp=1,a=2)", "lightning(d=3,dp=1,a=3)")
"""Not Cohen-Macaulay, and settled by the kernel: ``--cross-check`` and four times the seconds."""
OTHERS = (
    "lightning(d=2,dp=1,a=2,coordinates=full)",
    "mlp(widths=[2,2,3],r=2)",
    "mlp(widths=[2,2,1],r=4)",
    "mlp(widths=[2,2,1],r=5)",
    "mlp(widths=[2,2,1],r=6)",
    "mlp(widths=[3,2,1],r=2)",
    "mlp(widths=[3,2,1],r=3)",
    "mlp(widths=[2,3,2],r=3)",
    "convolution(filters=[2,2],r=2)",
    "convolution(filters=[2,2],r=3)",
    "convolution(filters=[3,2],r=2)",
    "linear(widths=[3,1,3])",
)


def row(spec: str, found: Closure) -> str:
    counts = ", ".join(f"{k}:{v}" for k, v in sorted(found.generator_counts.items())) or "-"
    agreement = {True: "yes", False: "NO", None: "-"}[found.agreement]
    how = found.completeness + (f" (degree {found.degree_bound})" if found.completeness != "complete" else "")
    return (
        f"| `{spec}` | {found.span_dim} | {counts} | {found.image_dim} | {found.codim} | {found.degree or '?'} | {how} | "
        f"{found.certainty.value} over {found.field} | {agreement} | {found.seconds:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", help="path of a Macaulay2")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    lines = [
        "# Closures",
        "",
        f"Made by `python results/closure/make.py --seconds {options.seconds:g}`; generators are `degree:count` of",
        "minimal generators in the linear span of the image; dimensions are affine. Complete: the generators are shown to",
        "generate the ideal of the closure; otherwise they generate it up to the degree given.",
        "",
        "| model | span | generators | image dim | codim | degree | completeness | certainty | witnesses agree | s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    specs = [f"lightning(d={d},dp={dp},a={a})" for d, dp, a in ATTENTION]
    with open_engine(options.engine, warm=True) as engine:
        for spec in (*specs, *OTHERS):
            settle = spec in CROSS_CHECKED
            limits = Limits(wall_seconds=(4 if settle else 1) * options.seconds)
            found = closure(
                parse_spec(spec),
                engine=engine,
                field="QQ",
                equations=False,
                limits=limits,
                cross_check=settle,
            )
            lines.append(row(spec, found))
            print(lines[-1], flush=True)
    (Path(__file__).parent / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
