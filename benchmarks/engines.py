"""Macaulay2 and msolve on the same questions, in one run: which engine answers in how many processor seconds.

Two tables. The first has jobs of every kind: critical points, a saturation, points over QQ, eliminations, fibers. Macaulay2
runs in a new process (cold), whose start is included, and in a warm one, by its plain algorithm (`gb`, `saturate`) and by F4;
msolve always starts anew. The second has numbers of regular critical points: a formula; Macaulay2's count where
critical weights at which the differential drops are computed and removed; its count with a minor inverted; and msolve's, from
the program's polynomials, over another prime. `-` means that the limit of processor seconds was reached::

    python benchmarks/engines.py > benchmarks/RESULTS-engines.md

The formulas: Chern classes of products of projective spaces. Matrices of rank at most k have the generic ED degree of the dual
variety, matrices of corank at least k; for corank 1 these are products of two projective spaces. A perceptron with 2 inputs, 2
hidden units and quadratic activation maps to all matrices of rank at most 2 with three columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from flint import Ordering, nmod_mpoly_ctx
from measuring import ObservedEngine, context_of, print_heading, table_row

from m2bridge import msolve
from m2bridge.engine import Engine, Outcome, open_engine, open_msolve
from m2bridge.errors import EngineError
from m2bridge.families import parse_spec
from m2bridge.families.symbolic import sparse, symbolic_map
from m2bridge.linear.primes import LARGE_PRIME, MACAULAY2_PRIME
from m2bridge.questions.closure import closure
from m2bridge.questions.critical_points.charts import ExpandedMap
from m2bridge.questions.critical_points.counting import Counter, generic_ed_degree
from m2bridge.questions.critical_points.equations import charted
from m2bridge.questions.critical_points.losses import metric_loss
from m2bridge.questions.critical_points.solving import count_by_msolve
from m2bridge.questions.kernel import Context
from m2bridge.questions.point import random_point
from m2bridge.scripts import Script

COUNTS = {
    "lightning(d=2,dp=1)": generic_ed_degree((3, 1), (1, 1)),
    "lightning(d=2,dp=2)": generic_ed_degree((3, 3), (1, 1)),
    "linear(widths=[3,2,3])": generic_ed_degree((2, 2), (1, 1)),
    "mlp(widths=[3,2,1],r=2)": generic_ed_degree((2,), (2,)),
    "mlp(widths=[2,2,3],r=2)": generic_ed_degree((2, 2), (1, 1)),
    "linear(widths=[4,2,3])": generic_ed_degree((3, 2), (1, 1)),
    "linear(widths=[3,2,4])": generic_ed_degree((3, 2), (1, 1)),
    "mlp(widths=[2,2,4],r=2)": generic_ed_degree((3, 2), (1, 1)),
    "mlp(widths=[2,2,2],r=3)": None,
    "linear(widths=[3,2,5])": generic_ed_degree((4, 2), (1, 1)),
    "linear(widths=[5,2,3])": generic_ed_degree((4, 2), (1, 1)),
    "linear(widths=[3,2,6])": generic_ed_degree((5, 2), (1, 1)),
    "linear(widths=[4,3,4])": generic_ed_degree((3, 3), (1, 1)),
    "lightning(d=3,dp=1)": generic_ed_degree((8, 2), (1, 1)),
    "linear(widths=[6,2,3])": generic_ed_degree((5, 2), (1, 1)),
    "mlp(widths=[2,2,5],r=2)": generic_ed_degree((4, 2), (1, 1)),
    "mlp(widths=[2,2,6],r=2)": generic_ed_degree((5, 2), (1, 1)),
    "linear(widths=[4,3,5])": generic_ed_degree((4, 3), (1, 1)),
    "mlp(widths=[2,2,1],r=4)": None,
}
"""Specs with the number of regular critical points by a formula; None where only the engines are compared."""
_MSOLVE_FACTOR = 10
"""msolve has so many times the limit of Macaulay2, because nothing else counts the largest cases."""
FIBERS = ("mlp(widths=[3,3,2],r=2)", "mlp(widths=[4,3,3],r=2)", "mlp(widths=[4,4,2],r=2)")


def measured(engine: Engine, seconds: float, job: Callable[[Engine], Any]) -> str:
    """Run a job; return its result and the processor seconds."""
    observed = ObservedEngine(engine, seconds)
    try:
        found = job(observed)
    except EngineError:  # killed at the limit
        found = None
    return f"{'-' if found is None else found} ({observed.processor_seconds:.2f})"


def msolve_context(engine: Engine) -> Context:
    """Return a context in which msolve has this engine."""
    context = context_of(engine)
    context.__dict__["msolve"] = engine
    return context


# -- counts of critical points ---------------------------------------------------------------------------


def plain(spec: str, engine: Engine) -> int | None:
    """Macaulay2's count with a saturation where the differential drops."""
    model = parse_spec(spec).leanest
    source = ExpandedMap(model, MACAULAY2_PRIME, 0)
    loss = metric_loss(model, "generic", 0, 0, small=False)
    counter = Counter(context_of(engine), loss, MACAULAY2_PRIME)
    return counter.count(model, source.chart_for(special=False, general=False)).points


def localized(spec: str, engine: Engine) -> int | None:
    """Macaulay2's count as `critical-points` does it: by Chern classes' hypotheses or with a minor inverted."""
    model = parse_spec(spec).leanest
    loss = metric_loss(model, "generic", 0, 0, small=False)
    counter = Counter(context_of(engine), loss, MACAULAY2_PRIME)
    return counter.first(ExpandedMap(model, MACAULAY2_PRIME, 0))[1].points


def by_msolve(spec: str, engine: Engine) -> int | None:
    """msolve's count over another prime."""
    model = parse_spec(spec).leanest
    loss = metric_loss(model, "generic", 0, 0, small=False)
    source = ExpandedMap(model, LARGE_PRIME, 0)
    immersed = spec.startswith("lightning")  # the hypotheses of Chern classes hold
    return count_by_msolve(msolve_context(engine), source, loss, LARGE_PRIME, immersed=immersed).points


# -- jobs as ideals --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Equations with what is asked: the degree, that of a saturation, an elimination of so many variables, or points over QQ."""

    name: str
    system: msolve.System
    saturate_by: msolve.Polynomial | None = None
    eliminate: int = 0

    def script(self, *, f4: bool) -> Script:
        """Return the job for Macaulay2 by F4, or by `gb`, `saturate` or the kernel of a graded map; `result` is printed."""
        system = self.system
        if self.eliminate and not f4:
            return self._kernel_script()
        order = f", MonomialOrder => Eliminate {self.eliminate}" if self.eliminate else ""
        variables = (*system.variables, "zz") if self.saturate_by else system.variables
        lines = [f"R = {self._field}[{','.join(variables)}{order}];", f"I = ideal({_equations(system)});"]
        basis = 'groebnerBasis(I, Strategy => "F4")' if f4 else "gens gb I"
        if self.saturate_by:
            g = _equations(replace(system, equations=(self.saturate_by,)))
            lines.append(f"I = I + ideal(zz*({g}) - 1);" if f4 else f"I = saturate(I, {g}) + ideal zz;")
        lines.append(f"L = ideal leadTerm {basis};")
        inside = f"#select(first entries gens L, f -> all(support f, x -> index x >= {self.eliminate}))"
        return _printing(lines, inside if self.eliminate else "degree L")

    @property
    def _field(self) -> str:
        return f"ZZ/{self.system.p}" if self.system.p else "QQ"

    def _kernel_script(self) -> Script:
        """Return the kernel of the map of the coordinates, which have one degree."""
        weights, coordinates = (
            self.system.variables[: self.eliminate],
            self.system.variables[self.eliminate :],
        )
        zeros = (0,) * len(coordinates)
        rows = [{e: -c for e, c in f.items() if e[self.eliminate :] == zeros} for f in self.system.equations]
        maps = _equations(replace(self.system, equations=tuple(rows)))
        lines = [
            f"R = {self._field}[{','.join(weights)}];",
            f"f = {{{maps}}};",
            f"S = {self._field}[{','.join(coordinates)}, Degrees => apply(f, g -> degree g)];",
            "L = ideal leadTerm ker map(R, S, f);",
        ]
        return _printing(lines, "numgens L")

    def by_macaulay2(self, engine: Engine, *, f4: bool) -> str | None:
        run = engine.run(self.script(f4=f4))
        found = [line for line in run.stdout.splitlines() if line.startswith("result ")]
        if run.outcome is Outcome.FINISHED and not found:
            raise SystemExit(run.stderr)
        return found[0].split()[1] if found else None

    def by_msolve(self, engine: Engine) -> Any:
        """Return the degree, or the number of leading monomials without the eliminated variables; None at a limit."""
        if self.system.p == 0:
            run = engine.run(msolve.parametrizing_script("job", self.system))
            solved = msolve.parametrization(run, self.system) if run.outcome is Outcome.FINISHED else None
            return None if solved is None else f"{solved.degree}, {len(solved.boxes)} real"
        script = msolve.counting_script("job", self.system, self.saturate_by)
        if self.eliminate:
            options = ("-e", str(self.eliminate), *script.arguments)
            script = Script(name="job", text=script.text, arguments=options)
        run = engine.run(script)
        if run.outcome is not Outcome.FINISHED:
            return None
        if self.eliminate:
            listed = run.stdout[run.stdout.index("[") :].split(",\n")
            return sum("w" not in monomial for monomial in listed)
        return msolve.standard_monomials(msolve.leading_monomials(run, self.system))


def _equations(system: msolve.System) -> str:
    """Return the equations as Macaulay2 reads them too, separated by commas."""
    return system.text.split("\n", 2)[2].replace("\n", "")


def _printing(lines: list[str], result: str) -> Script:
    return Script(name="job", text="\n".join([*lines, f'print("result " | toString({result}));\n']))


def field_name(p: int) -> str:
    return "over F_p" if p else "over QQ"


def critical_job(spec: str, p: int) -> Job:
    """The critical points of a general loss in a chart, over F_p, over QQ for p = 0."""
    model = parse_spec(spec).leanest
    source = ExpandedMap(model, p or MACAULAY2_PRIME, 0)
    loss = metric_loss(model, "generic", 0, 0, small=p == 0)
    chart = charted(source, source.chart_for(special=False, general=True), p)
    return Job(f"critical points of `{spec}` {field_name(p)}", chart.system(chart.critical(loss)))


def fiber_job(spec: str, p: int) -> Job:
    """The weights with the function of a random point, where the first weight of each hidden unit is that of the point."""
    model = parse_spec(spec)
    point = random_point(model, 0)
    vector = [int(x) for x in point.vector]
    n, inner = len(vector), model.parameters["W1"]
    variables = tuple(f"w{i}" for i in range(n))
    equations: list[dict[tuple[int, ...], int]] = []
    for f in symbolic_map(model):
        value = 0
        for exponents, c in f.items():
            term = int(c)
            for x, e in zip(vector, exponents, strict=True):
                term *= x**e
            value += term
        row = {e: int(c) for e, c in f.items()}
        equations.append({**row, (0,) * n: row.get((0,) * n, 0) - value})
    for i in range(inner[0]):
        unit = tuple(int(j == i * inner[1]) for j in range(n))
        equations.append({unit: 1, (0,) * n: -vector[i * inner[1]]})
    return Job(
        f"fiber of `{spec}` {field_name(p)}",
        msolve.System(variables=variables, p=p, equations=tuple(equations)),
    )


def elimination_job(spec: str, p: int) -> Job:
    """The graph of the map; the weights are eliminated."""
    model = parse_spec(spec).leanest
    maps = symbolic_map(model)
    n, m = model.parameter_count, len(maps)
    rows = []
    for j, f in enumerate(maps):
        row = {(*e, *(0 for _ in range(m))): -int(c) for e, c in f.items()}
        rows.append({**row, (*(0 for _ in range(n)), *(int(k == j) for k in range(m))): 1})
    names = (*(f"w{i}" for i in range(n)), *(f"z{j}" for j in range(m)))
    return Job(
        f"equations of `{spec}`", msolve.System(variables=names, p=p, equations=tuple(rows)), eliminate=n
    )


def conormal_job(spec: str, p: int) -> Job:
    """The critical points on a hypersurface: minors of its gradient and the differential of a loss, without singular points."""
    model = parse_spec(spec).leanest
    (equation,) = closure(model, prime=p).equations or ()
    names = tuple(f"z{i}" for i in range(model.coordinate_count))
    ring = nmod_mpoly_ctx.get(list(names), modulus=p, ordering=Ordering.degrevlex)
    z = ring.gens()
    f = sum(
        (
            int(c) * prod(z[i] for i in m)
            for c, m in zip(equation.coefficients, equation.monomials, strict=True)
        ),
        z[0] * 0,
    )
    rng = np.random.default_rng(0)
    rows = [[int(x) for x in rng.integers(1, p, size=len(z) + 1)] for _ in z]
    normal = [sum((c * x for c, x in zip(row, z, strict=False)), z[0] * 0 + row[-1]) for row in rows]
    gradient = [f.derivative(i) for i in range(len(z))]
    minors = [gradient[i] * normal[j] - gradient[j] * normal[i] for i, j in combinations(range(len(z)), 2)]
    system = msolve.System(variables=names, p=p, equations=tuple(sparse(g) for g in (f, *minors)))
    combination = sum(
        (int(c) * g for c, g in zip(rng.integers(1, p, size=len(z)), gradient, strict=True)), z[0] * 0
    )
    return Job(f"saturation of the conormal of `{spec}`", system, saturate_by=sparse(combination))


def jobs(p: int) -> list[Job]:
    """Return the jobs of the first table over F_p; the last four are over QQ."""
    return [
        critical_job("lightning(d=2,dp=2)", p),
        critical_job("lightning(d=3,dp=1)", p),
        conormal_job("lightning(d=2,dp=1)", p),
        elimination_job("lightning(d=2,dp=2)", p),
        elimination_job("lightning(d=3,dp=1)", p),
        *(fiber_job(spec, p) for spec in FIBERS),
        fiber_job("mlp(widths=[2,2,2],r=2)", 0),
        fiber_job("mlp(widths=[3,3,2],r=2)", 0),
        critical_job("lightning(d=2,dp=1)", 0),
        critical_job("lightning(d=2,dp=2)", 0),
    ]


def print_jobs(cold: Engine, warm: Engine, solver: Engine, seconds: float) -> None:
    print_heading(
        "job", "Macaulay2, `gb` or `saturate`, cold", "the same, warm", "F4, cold", "F4, warm", "msolve"
    )
    # each engine has the prime that it is used with: F4 of Macaulay2 is slower above 2^15, msolve saturates above 2^16
    for job, large in zip(jobs(MACAULAY2_PRIME), jobs(LARGE_PRIME), strict=True):
        cells = [
            measured(engine, seconds, lambda e, j=job, f=f4: j.by_macaulay2(e, f4=f))
            for f4 in (False, True)[: 1 + bool(job.system.p)]
            for engine in (cold, warm)
        ]
        cells += ["", ""] * (job.system.p == 0)  # F4 of Macaulay2 needs a finite field
        cells.append(measured(solver, _MSOLVE_FACTOR * seconds, large.by_msolve))
        print(table_row(job.name, *cells), flush=True)


def print_counts(specs: Sequence[str], engines: tuple[Engine, Engine, Engine], seconds: float) -> None:
    cold, warm, solver = engines
    inverted = "Macaulay2, minor inverted, warm"
    print_heading(
        "network", "formula", "Macaulay2, drops removed, cold", "the same, warm", inverted, "msolve"
    )
    for spec in specs:
        before = measured(cold, seconds, lambda e, s=spec: plain(s, e))
        cells = [
            before,
            "-" if before.startswith("-") else measured(warm, seconds, lambda e, s=spec: plain(s, e)),
            measured(warm, seconds, lambda e, s=spec: localized(s, e)),
            measured(solver, _MSOLVE_FACTOR * seconds, lambda e, s=spec: by_msolve(s, e)),
        ]
        print(table_row(f"`{spec}`", COUNTS.get(spec) or "", *cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of processor seconds of each job")
    parser.add_argument("--engine", default=None)
    parser.add_argument("--table", choices=("jobs", "counts"), help="only this table")
    parser.add_argument("specs", nargs="*", default=list(COUNTS), help="networks of the second table")
    given = parser.parse_args()
    solver = open_msolve()
    if solver is None:
        parser.error("there is no msolve; install one with `m2bridge engine install --msolve`")
    with open_engine(given.engine) as cold, open_engine(given.engine, warm=True) as warm:
        print(f"Macaulay2 {cold.info.version}, msolve {solver.info.version}; limit {given.seconds:.0f} s.\n")
        if given.table != "counts":
            print_jobs(cold, warm, solver, given.seconds)
            print()
        if given.table != "jobs":
            print_counts(given.specs, (cold, warm, solver), given.seconds)


if __name__ == "__main__":
    main()
