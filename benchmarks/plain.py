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
from collections.abc import Callable, Sequence
from typing import Any

from measuring import ObservedEngine, Took, plain_macaulay2, print_heading, table_row, timed

from m2bridge.engine import Engine, candidates, open_engine
from m2bridge.families import parse_spec
from m2bridge.families.symbolic import symbolic_map
from m2bridge.frontends.polynomials import polynomial_text
from m2bridge.questions import find
from m2bridge.questions.closure import interpolate

CLOSURES = (
    "lightning(d=2,dp=1)",
    "lightning(d=2,dp=2)",
    "map:s,t->s^3;s^2*t;s*t^2;t^3",
    "mlp(widths=[2,2,1],r=2)",
    "linear(widths=[2,1,3])",
)
CRITICAL = ("lightning(d=2,dp=1)",)
KERNELS = (("lightning(d=2,dp=2)", 4), ("lightning(d=3,dp=1,a=2)", 3))
MOST_SECONDS = 600


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


def commands_alone(m2: str, script: str) -> Took:
    """Return the processor time of the commands of a script, without the start of Macaulay2."""
    timed_script = f'{script}<< endl << "seconds " << cpuTime() - t0 << endl;\n'
    done = plain_macaulay2(m2, timed_script, MOST_SECONDS)
    assert done is not None
    found = re.search(r"^seconds ([\d.e-]+)", done.stdout, re.MULTILINE)
    assert found is not None
    return Took(wall=float(found[1]), cpu=float(found[1]))


def question_alone(ask: Callable[[Engine], Any], engine: Engine) -> Took:
    """Return the processor time of a question with an open engine: Python and the runs of Macaulay2."""
    observed = ObservedEngine(engine)
    took, _ = timed(lambda: ask(observed))
    return Took(wall=took.wall, cpu=took.cpu + observed.processor_seconds)


def row(case: str, rounds: int, kind: str, *pair: Callable[[], Took]) -> None:
    plain, ours = in_turns(rounds, *pair)
    print(
        table_row(case, kind, both_times(plain), both_times(ours), f"{ours.cpu / plain.cpu:.2f}"), flush=True
    )


def beside_plain(warm: Engine, m2: str, rounds: int) -> None:
    print_heading("case", "start", "plain, s", "m2bridge, s", "ratio")
    closures = [(f"closure `{s}`", plain_closure(s), ["closure", s, "--field", "QQ"]) for s in CLOSURES]
    counts = [(f"critical points `{s}`", plain_critical_points(s), ["critical-points", s]) for s in CRITICAL]
    for case, script, words in closures + counts:
        whole = [sys.executable, "-m", "m2bridge", *words, "--engine", m2]
        row(
            case,
            rounds,
            "cold",
            lambda s=script: timed(lambda: plain_macaulay2(m2, s, MOST_SECONDS))[0],
            command(whole),
        )

        def ask(engine: Engine, name: str = words[0], spec: str = words[1]) -> Any:
            options = {"field": "QQ"} if name == "closure" else {}
            return find(name)(spec, engine=engine, **options)

        ask(warm)
        row(
            case,
            rounds,
            "warm",
            lambda s=script: commands_alone(m2, s),
            lambda a=ask: question_alone(a, warm),
        )


def beside_components(m2: str, rounds: int) -> None:
    print()
    print_heading("case", "componentsOfKernel, s", "interpolation, s", "ratio")
    for spec, degree in KERNELS:
        found = interpolate(parse_spec(spec), degree)
        weights = parse_spec(spec).leanest
        count, texts, _ = coordinates(weights.spec)
        grading = ", ".join("{" + ", ".join(map(str, line)) + "}" for line in found.grading.tolist())
        script = f"""needsPackage "MultigradedImplicitization"; t0 = cpuTime();
R = ZZ/32003[w_0..w_{count - 1}];
S = ZZ/32003[z_0..z_{found.span.dim - 1}];
F = map(R, S, ({{{", ".join(texts)}}})_{{{", ".join(map(str, found.span.basis))}}});
G = componentsOfKernel({degree}, F, Grading => matrix {{{grading}}}, Verbose => false);
"""
        theirs, ours = in_turns(
            rounds,
            lambda s=script: commands_alone(m2, s),
            lambda s=spec, d=degree: timed(lambda: interpolate(parse_spec(s), d))[0],
        )
        ratio = f"{theirs.cpu / ours.cpu:.0f}"
        print(
            table_row(f"`{spec}` to degree {degree}", both_times(theirs), both_times(ours), ratio), flush=True
        )


def measure(path: str, rounds: int) -> None:
    """Print the tables of one Macaulay2."""
    with open_engine(path, warm=True) as warm:
        print("", f"## Macaulay2 {warm.info.version}", "", sep="\n")
        beside_plain(warm, path, rounds)
        if warm.info.version != "1.21":  # which does not have the package
            beside_components(path, rounds)


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
