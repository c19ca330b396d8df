"""Singular loci: m2bridge beside what one would otherwise type into Macaulay2. One run, ratios.

    python benchmarks/singular_locus.py [--limit SECONDS] [--rounds N]

The same warm engine runs all scripts, each in a process of its own. "plain" is `radical ideal singularLocus` of the kernel;
"FastMinors" is its `regularInCodimension`-style selection of minors (chooseGoodMinors) followed by a dimension.
Ours includes everything that `m2bridge singular-locus` does: dimension from both sides, every orbit, all witnesses.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from m2bridge.engine import Engine, Outcome, open_engine
from m2bridge.families import Lightning
from m2bridge.limits import Limits
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.scripts import Script

_KERNEL = """
d = {d}; dp = {dp};
R = ZZ/32003[a_(0,0)..a_(d-1,d-1), v_(0,0)..v_(dp-1,d-1)];
A = matrix table(d, d, (i,j) -> a_(i,j)); V = matrix table(dp, d, (i,j) -> v_(i,j));
coords = flatten flatten apply(dp, n -> apply(d, m -> flatten apply(d, i -> apply(toList(i..d-1), j ->
    if i == j then A_(i,m)*V_(n,i) else A_(i,m)*V_(n,j) + A_(j,m)*V_(n,i)))));
N = #coords;
T = ZZ/32003[z_0..z_(N-1)];
I = ker map(R, T, coords);
c = codim I;
"""
_PLAIN = _KERNEL + 'S = radical(I + minors(c, jacobian I)); << dim S << " " << degree S << endl;'
_FAST = (
    'needsPackage "FastMinors";' + _KERNEL + "J = I + chooseGoodMinors(200, c, jacobian I); << dim J << endl;"
)


def script_seconds(engine: Engine, text: str, limit: float) -> tuple[float, str]:
    """Seconds and what the script printed, or how it ended."""
    start = time.perf_counter()
    run = engine.run(Script(name="peer", text=text), Limits(wall_seconds=limit, memory_bytes=8 * 2**30))
    seconds = time.perf_counter() - start
    return seconds, run.stdout.strip() if run.outcome is Outcome.FINISHED else run.outcome.value


def our_seconds(engine: Engine, d: int, dp: int, a: int) -> tuple[float, str]:
    start = time.perf_counter()
    result = singular_locus(Lightning(d=d, dp=dp, a=a), engine=engine)
    decided = sum(s.verdict != "undecided" for s in result.strata)
    answer = f"{result.singular_dim} {result.singular_degree or ''}".strip()
    return (
        time.perf_counter() - start,
        f"{answer} ({decided}/{len(result.strata)} orbits, {result.certainty})",
    )


def medians(engine: Engine, rounds: int) -> None:
    """M(2,1,2), ours and plain Macaulay2 in turn on the warm engine: wall clock, and the processor's time of all scripts."""
    wall: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(rounds):
        wall["ours"].append(our_seconds(engine, 2, 1, 2)[0])
        wall["plain"].append(script_seconds(engine, _PLAIN.format(d=2, dp=1), 60)[0])
    ours, plain = (median(wall[name]) for name in ("ours", "plain"))
    print(
        f"(2,1,2)  medians of {rounds} in turn: {ours:.2f} s beside {plain:.2f} s, ratio {ours / plain:.2f}"
    )
    # on a busy machine the clock counts what others do: the processor's seconds of all scripts, and Python's
    begun = time.process_time()
    answer = singular_locus(Lightning(d=2, dp=1), engine=engine)
    python = time.process_time() - begun
    ours = sum(processor_seconds(engine, script.text or "", rounds) for script in answer.scripts)
    plain = processor_seconds(engine, _PLAIN.format(d=2, dp=1), rounds)
    print(f"(2,1,2)  processor: {ours:.3f} s of {len(answer.scripts)} scripts and {python:.3f} s of Python beside {plain:.3f} s, "
          f"ratio {(ours + python) / plain:.2f}")  # fmt: skip


def processor_seconds(engine: Engine, text: str, rounds: int) -> float:
    """The median of the processor's seconds of a script, as Macaulay2 counts them."""
    timed = f'begun = cpuTime();\n{text}\n<< endl << "cpu " << cpuTime() - begun << endl;'
    return median(float(script_seconds(engine, timed, 60)[1].rpartition("cpu ")[2]) for _ in range(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each peer")
    parser.add_argument("--rounds", type=int, default=0, help="only medians of so many rounds of M(2,1,2)")
    limit, rounds = (options := parser.parse_args()).limit, options.rounds
    with open_engine(warm=True) as engine:
        if rounds:
            our_seconds(engine, 2, 1, 2)
            return medians(engine, rounds)
        print(f"Macaulay2 {engine.info.version}; limit {limit:.0f} s; answers: dimension [degree]\n")
        print(f"{'size':8} {'method':12} {'seconds':>9} {'ratio':>7}  answer")
        for d, dp, a in ((2, 1, 2), (2, 2, 2)):
            ours, answer = our_seconds(engine, d, dp, a)
            print(f"({d},{dp},{a})  {'m2bridge':12} {ours:9.2f} {1:7.1f}  {answer}", flush=True)
            for name, text in (("plain", _PLAIN), ("FastMinors", _FAST)):
                seconds, answer = script_seconds(engine, text.format(d=d, dp=dp), limit)
                print(f"({d},{dp},{a})  {name:12} {seconds:9.2f} {seconds / ours:7.1f}  {answer}", flush=True)
        print("\ngrowth with d (d'=2, a=2)")
        previous = None
        for d in (2, 3, 4, 5):
            ours, answer = our_seconds(engine, d, 2, 2)
            ratio = "" if previous is None else f"x{ours / previous:.1f}"
            print(f"({d},2,2)  {'m2bridge':12} {ours:9.2f} {ratio:>7}  {answer}", flush=True)
            previous = ours


if __name__ == "__main__":
    main()
