"""Write the tables of this directory: ``python results/fibers/make_tables.py`` (a few minutes, needs a Macaulay2).

Every row is one call of ``m2bridge fiber``; the command is beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from m2bridge.engine import Engine, open_engine
from m2bridge.families import parse_spec
from m2bridge.families.attention_strata import all_orbits
from m2bridge.questions.fiber import Fiber, fiber

HERE = Path(__file__).parent
SIZES = ((2, 1), (2, 2), (3, 1), (3, 2), (3, 3))
VIRTUAL = "deep-lightning(d=[{d}],a=[{a}],t={t},parametrization=virtual)"


def row(engine: Engine, spec: str, stratum: str | None) -> dict[str, Any]:
    result: Fiber = fiber(parse_spec(spec), at=stratum, engine=engine)
    print(spec, stratum, result.verdict, f"{result.seconds:.1f} s", file=sys.stderr, flush=True)
    return {
        "model": result.model,
        "stratum": stratum,
        "fiber_dim": result.fiber_dim,
        "degree": result.degree,
        "components": [[c.dim, c.degree, c.multiplicity] for c in result.components or ()],
        "orbits": result.orbits,
        "verdict": result.verdict,
        "certainty": result.certainty.value,
        "agreement": result.agreement,
        "theorem_agrees": None if result.theorem is None else result.theorem.agrees,
        "method": result.method,
        "command": f"m2bridge fiber '{result.model}'" + (f" --stratum {stratum}" if stratum else ""),
    }


def strata(engine: Engine) -> list[dict[str, Any]]:
    """Theorem 3.2: every orbit of every size, every a."""
    rows = []
    for d, dp in SIZES:
        for a in range(1, d + 1):
            spec = f"lightning(d={d},dp={dp},a={a},t=2,parametrization=attention)"
            for orbit in all_orbits(d, dp, a):
                rows.append(
                    row(engine, spec, f"rank_a={orbit.rank_a},rank_v={orbit.rank_v},meet={orbit.meet}")
                )
    return rows


def queries_and_keys(engine: Engine) -> list[dict[str, Any]]:
    """(Q, K, V): generic fibers of dimension 1 + a^2."""
    return [
        row(engine, f"lightning(d={d},dp={dp},a={a},t=2)", None) for d, dp in SIZES for a in range(1, d + 1)
    ]


def deep(engine: Engine) -> list[dict[str, Any]]:
    """Two layers and three, generic and degenerate."""
    rows = []
    small = [
        None,
        "m1=symmetric,m2=symmetric",
        "m1=rank1",
        "m2=rank1",
        "m1=skew",
        "m2=skew",
        "m1=skew,m2=skew",
    ]
    for t in (2, 3):
        spec = VIRTUAL.format(d="2,2,2", a="2,2", t=t)
        rows += [row(engine, spec, stratum) for stratum in small]
    for d, a, t in (("3,3,3", "3,3", 2), ("3,3,3", "3,3", 3), ("4,4,4", "4,4", 2), ("3,3,3,3", "3,3,3", 2)):
        rows.append(row(engine, VIRTUAL.format(d=d, a=a, t=t), None))
    for stratum in ("m1=rank1", "m2=rank1", "m1=rank2", "m1=skew"):
        rows.append(row(engine, VIRTUAL.format(d="3,3,3", a="3,3", t=2), stratum))
    for parametrization in ("attention", "weights"):
        rows.append(
            row(engine, f"deep-lightning(d=[2,2,2],a=[2,2],t=2,parametrization={parametrization})", None)
        )
    return rows


def others(engine: Engine) -> list[dict[str, Any]]:
    """Perceptrons and convolutions."""
    specs = [
        "mlp(widths=[2,2,2],r=2)",
        "mlp(widths=[2,2,2],r=3)",
        "mlp(widths=[3,3,2],r=2)",
        "mlp(widths=[2,3,2],r=2)",
    ]
    specs += [
        "convolution(filters=[2,2],r=2)",
        "convolution(filters=[3,3],r=2)",
        "convolution(filters=[2,2,2],r=2)",
    ]
    return [row(engine, spec, None) for spec in specs]


def table(title: str, rows: list[dict[str, Any]]) -> str:
    head = "| model | stratum | dim | degree | components | orbits | verdict | certainty | theorem |"
    lines = [f"## {title}", "", head, "|---|---|---|---|---|---|---|---|---|"]
    for item in rows:
        parts = "; ".join(_component(c) for c in item["components"]) or "not computed"
        agrees = {True: "agrees", False: "**fails**", None: ""}[item["theorem_agrees"]]
        model = (
            item["model"]
            .replace(",parametrization=attention", " (A,V)")
            .replace(",parametrization=virtual", " (M,L)")
        )
        cells = (model, item["stratum"] or "random", item["fiber_dim"], item["degree"], parts, item["orbits"])
        shown = ["" if cell is None else str(cell) for cell in cells]
        lines.append("| " + " | ".join([*shown, item["verdict"], item["certainty"], agrees]) + " |")
    return "\n".join(lines) + "\n"


def _component(component: list[Any]) -> str:
    dim, degree, multiplicity = component
    times = f" x{multiplicity}" if multiplicity not in (None, 1) else ""
    return f"dim {dim}" + ("" if degree is None else f" deg {degree}") + times


def main() -> None:
    with open_engine(warm=True) as engine:
        version = engine.info.version
        tables = {
            "Theorem 3.2: every stratum of one layer in (A, V)": strata(engine),
            "One layer in (Q, K, V), generic points": queries_and_keys(engine),
            "Deep attention": deep(engine),
            "Perceptrons and convolutions, generic points": others(engine),
        }
    text = (
        "# Fibers\n\nMade by `python results/fibers/make_tables.py` with Macaulay2 "
        + version
        + ", p = 32003, seed 0. "
    )
    text += (
        "Each row is one `m2bridge fiber`; `fibers.json` has the command of each. `xN` is a multiplicity.\n"
    )
    text += "Degrees are of the fiber in the space of the weights; empty where only a slice or coarser weights were used.\n\n"
    (HERE / "README.md").write_text(
        text + "\n".join(table(title, rows) for title, rows in tables.items()), encoding="utf-8"
    )
    (HERE / "fibers.json").write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
