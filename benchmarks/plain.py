"""Benchmark: m2bridge beside plain Macaulay2 on questions that plain Macaulay2 answers within seconds, and componentsOfKernel.

Run ``python benchmarks/plain.py [--engine M2] [--rounds 3] > benchmarks/RESULTS-plain.md``; without ``--engine`` it measures
every version of Macaulay2 that m2bridge finds. The plain script is what a user of Macaulay2 would write: the coordinates of the
network as polynomials in its weights, `trim ker map`, codimension and degree; for critical points the determinantal ideal of a
generic quadratic loss on the closure. *Cold* is a new process for each: ``M2 --script`` beside the command line of m2bridge,
processor seconds with all children. *Warm* is without any start: the seconds of the commands in Macaulay2 beside those of
the question with an open warm engine, Python and Macaulay2 together. Both take turns, and the least time of each counts,
because the machine may do other work. Only processor time is compared; wall-clock seconds stand beside it.

componentsOfKernel of the package MultigradedImplicitization (Cummings and Hollering) decomposes the kernel by a multigrading, as
our interpolation does; it gets the grading that interpolation finds, and both compute the equations up to one degree.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from closure import Took, timed

import m2bridge
from m2bridge.engine import Engine, candidates, open_engine
from m2bridge.families import parse_spec
from m2bridge.families.symbolic import symbolic_map
from m2bridge.frontends.polynomials import polynomial_text
from m2bridge.questions.closure import interpolate
from m2bridge.questions.context import Context

CLOSURES = (
    "lightning(d=2,dp=1)",
    "lightning(d=2,dp=2)",
    "map:s,t->s^3;s^2*t;s*t^2;t^3",
    "mlp(widths=[2,2,1],r=2)",
    "linear(widths=[2,1,3])",
)
CRITICAL = ("lightning(d=2,dp=1)",)
KERNELS = (("lightning(d=2,dp=2)", 4), ("lightning(d=3,dp=1,a=2)", 3))


HEADING = """\
# m2bridge beside plain Macaulay2

Processor seconds with all children, wall-clock seconds in parentheses; ratio of processor seconds; the least of {rounds} rounds.
Printed by `benchmarks/plain.py`, which describes each row; load {load:.1f} at the start. *Plain* is one computation without
a check; m2bridge also verifies the equations, decides their completeness over QQ, writes a certificate, and counts critical
points on singular strata and in the weights, with a second witness.
"""


def both_times(took: Took) -> str:
    return f"{took.cpu:.2f} ({took.wall:.2f})"


def coordinates(spec: str) -> tuple[int, list[str], set[int]]:
    """Return the number of weights, the coordinates as texts, and their degrees."""
    model = parse_spec(spec).free
    polynomials = symbolic_map(model)
    names = [f"w_{i}" for i in range(model.parameter_count)]
    degrees = {sum(m) for f in polynomials for m in f}
    return len(names), [polynomial_text(f, names) for f in polynomials], degrees


def plain_closure(spec: str) -> str:
    """Write the script of a user of Macaulay2 for the ideal of the closure."""
    count, texts, degrees = coordinates(spec)
    graded = f", Degrees => toList({len(texts)} : {max(degrees)})" if len(degrees) == 1 else ""
    return f"""t0 = cpuTime();
R = QQ[w_0..w_{count - 1}];
F = {{{", ".join(texts)}}};
S = QQ[z_0..z_{len(texts) - 1}{graded}];
I = trim ker map(R, S, F);
<< "generators " << #I_* << " codim " << codim I << " degree " << degree I << endl;
"""


def plain_critical_points(spec: str) -> str:
    """Write the script for the number of critical points of a generic quadratic loss on the regular points of the closure."""
    closure = plain_closure(spec)
    return f"""{closure}setRandomSeed 0; p = 32003;
T = ZZ/p[z_0..z_(numgens S - 1)];
I = (map(T, S, gens T)) I;
c = codim I;
J = transpose jacobian I;
u = apply(numgens T, i -> random(ZZ/p)); m = apply(numgens T, i -> random(ZZ/p));
D = matrix {{apply(numgens T, i -> m#i * (T_i - u#i))}};
K = saturate(I + minors(c + 1, D || J), I + minors(c, J));
<< "critical points " << degree K << endl;
"""


def in_turns(rounds: int, *actions: Callable[[], Took]) -> list[Took]:
    """Run the actions in turns and return the least processor time of each."""
    runs = [[action() for action in actions] for _ in range(rounds)]
    return [min(column, key=lambda took: took.cpu) for column in zip(*runs, strict=True)]


def command(words: Sequence[str]) -> Callable[[], Took]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run(
            words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )

    return lambda: timed(run)[0]


def commands_alone(m2: str, script: Path) -> Took:
    """Return the processor time of the commands of a script, without the start of Macaulay2."""
    text = f'{script.read_text()}<< endl << "seconds " << cpuTime() - t0 << endl;\n'
    file = script.with_suffix(".timed.m2")
    file.write_text(text)
    done = subprocess.run([m2, "--script", str(file)], check=True, capture_output=True, text=True)
    found = re.search(r"^seconds ([\d.e-]+)", done.stdout, re.MULTILINE)
    assert found is not None
    return Took(wall=float(found[1]), cpu=float(found[1]))


@contextmanager
def counted_runs(seconds: list[float]) -> Any:
    """Record the processor seconds of each run of an engine."""
    original = Context.run_script

    def run_script(self: Context, *arguments: Any, **named: Any) -> Any:
        values, limit = original(self, *arguments, **named)
        seconds.append(values.run.processor_seconds or 0.0)
        return values, limit

    Context.run_script = run_script  # type: ignore[method-assign]
    try:
        yield
    finally:
        Context.run_script = original  # type: ignore[method-assign]


def question_alone(ask: Callable[[], Any]) -> Took:
    """Return the processor time of a question with an open engine: Python and the runs of Macaulay2."""
    runs: list[float] = []
    with counted_runs(runs):
        took, _ = timed(ask)
    return Took(wall=took.wall, cpu=took.cpu + sum(runs))


def row(case: str, rounds: int, pair: tuple[Callable[[], Took], Callable[[], Took]], kind: str) -> None:
    plain, ours = in_turns(rounds, *pair)
    times = f"{both_times(plain)} | {both_times(ours)}"
    print(f"| {case} | {kind} | {times} | {ours.cpu / plain.cpu:.2f} |", flush=True)


def beside_plain(warm: Engine, m2: str, rounds: int, directory: Path) -> None:
    print("| case | start | plain, s | m2bridge, s | ratio |", "|---|---|---|---|---|", sep="\n")
    cases = [
        (f"closure `{spec}`", spec, plain_closure, ["closure", spec, "--field", "QQ"]) for spec in CLOSURES
    ]
    cases += [(f"critical points `{s}`", s, plain_critical_points, ["critical-points", s]) for s in CRITICAL]
    for number, (case, spec, script, words) in enumerate(cases):
        file = directory / f"plain{number}.m2"
        file.write_text(script(spec))
        cold = (
            command([m2, "--script", str(file)]),
            command([sys.executable, "-m", "m2bridge", *words, "--engine", m2]),
        )
        row(case, rounds, cold, "cold")

        def ask(spec: str = spec, kind: str = words[0]) -> Any:
            if kind == "closure":
                return m2bridge.closure(spec, field="QQ", engine=warm)
            return m2bridge.critical_points(spec, engine=warm)

        ask()
        row(case, rounds, (lambda f=file: commands_alone(m2, f), lambda a=ask: question_alone(a)), "warm")


def beside_components(m2: str, rounds: int, directory: Path) -> None:
    print("", "| case | componentsOfKernel, s | interpolation, s | ratio |", "|---|---|---|---|", sep="\n")
    for spec, degree in KERNELS:
        found = interpolate(parse_spec(spec), degree)
        weights = parse_spec(spec).leanest
        count, texts, _ = coordinates(weights.spec)
        grading = ", ".join("{" + ", ".join(map(str, line)) + "}" for line in found.grading.tolist())
        file = directory / "components.m2"
        file.write_text(f"""needsPackage "MultigradedImplicitization"; t0 = cpuTime();
R = ZZ/32003[w_0..w_{count - 1}];
S = ZZ/32003[z_0..z_{found.span.dim - 1}];
F = map(R, S, ({{{", ".join(texts)}}})_{{{", ".join(map(str, found.span.basis))}}});
G = componentsOfKernel({degree}, F, Grading => matrix {{{grading}}}, Verbose => false);
""")
        theirs, ours = in_turns(
            rounds,
            lambda f=file: commands_alone(m2, f),
            lambda s=spec, d=degree: timed(lambda: interpolate(parse_spec(s), d))[0],
        )
        times = f"{both_times(theirs)} | {both_times(ours)}"
        print(f"| `{spec}` to degree {degree} | {times} | {theirs.cpu / ours.cpu:.0f} |", flush=True)


def measure(path: str, rounds: int) -> None:
    """Print the tables of one Macaulay2."""
    with open_engine(path, warm=True) as warm, tempfile.TemporaryDirectory() as folder:
        print("", f"## Macaulay2 {warm.info.version}", "", sep="\n")
        beside_plain(warm, path, rounds, Path(folder))
        if warm.info.version != "1.21":  # which does not have the package
            beside_components(path, rounds, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", help="path of a Macaulay2 (default: one of each version that is found)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    working = [found.info for found in candidates(options.engine) if found.info is not None]
    paths = {info.version: str(info.path) for info in reversed(working)}
    print(HEADING.format(rounds=options.rounds, load=os.getloadavg()[0]), end="")
    for path in paths.values():
        measure(path, options.rounds)


if __name__ == "__main__":
    main()
