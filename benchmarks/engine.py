"""What an isolated job costs: the same small script through a fresh ``M2 --script``, our engines, and Sage's
interface.

Everything is measured in one run, for each Macaulay2 given, and printed as a table::

    python benchmarks/engine.py --jobs 20 --engine /usr/bin/M2 --engine /path/to/another/M2

Sage's interface keeps one Macaulay2 and evaluates in it without isolation; it is measured where Sage is
installed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from m2bridge.engine import ForkServerEngine, Outcome, ProcessEngine, find_engine
from m2bridge.scripts import Script

TEXT = """R = ZZ/32003[x,y,z];
I = ideal(x^2-y*z, y^2-x*z, z^2-x*y);
<< "@m2b dim " << dim I << endl << flush;
<< "@m2b degree " << degree I << endl << flush;
<< "@m2b-end 2" << endl << flush;
"""
EXPECTED = "@m2b dim 1\n@m2b degree 3\n@m2b-end 2\n"


def measure(job: Callable[[], str], jobs: int) -> list[float]:
    """Milliseconds of each job after a first one that is not counted; every answer is checked."""
    times = []
    for _ in range(jobs + 1):
        start = time.perf_counter()
        answer = job()
        times.append(1000 * (time.perf_counter() - start))
        if answer != EXPECTED:
            raise SystemExit(f"wrong answer: {answer!r}")
    return times[1:]


def ways(path: Path, jobs: int) -> dict[str, list[float]]:
    """Each way of running the script with the Macaulay2 at `path`, and its times."""
    info = find_engine(str(path))
    script = Script(name="benchmark", text=TEXT)
    times = {}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "benchmark.m2"
        file.write_text(TEXT)
        command = [str(info.path), "--script", str(file)]
        times["M2 --script, a fresh process"] = measure(
            lambda: subprocess.run(command, capture_output=True, text=True, check=True).stdout, jobs
        )
    for name, kind in (
        ("m2bridge, one-shot process", ProcessEngine),
        ("m2bridge, fork server", ForkServerEngine),
    ):
        with kind(info) as engine:

            def job() -> str:
                run = engine.run(script)
                assert run.outcome is Outcome.FINISHED, run
                return run.stdout

            times[name] = measure(job, jobs)
    return times


def sage(jobs: int) -> list[float] | None:
    """Sage's interface with whichever Macaulay2 it finds; None where Sage is not installed."""
    try:
        from sage.interfaces.macaulay2 import macaulay2
    except ImportError:
        return None

    def job() -> str:
        macaulay2.eval("R = ZZ/32003[x,y,z]; I = ideal(x^2-y*z, y^2-x*z, z^2-x*y);")
        found = (macaulay2.eval(f"toExternalString({what} I)").split()[-1] for what in ("dim", "degree"))
        return "@m2b dim {}\n@m2b degree {}\n@m2b-end 2\n".format(*(word.strip('"') for word in found))

    return measure(job, jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--engine", action="append", default=[])
    options = parser.parse_args()
    engines = [find_engine(path) for path in options.engine] or [find_engine()]
    print(f"{options.jobs} jobs each; milliseconds for one job; the ratio is against a fresh process\n")
    print(f"{'':10}{'':32}{'median':>9}{'mean':>9}{'max':>9}{'ratio':>9}")
    for info in engines:
        assert info.path is not None
        times = ways(info.path, options.jobs)
        fresh = statistics.median(times["M2 --script, a fresh process"])
        for name, values in times.items():
            row(info.version, name, values, fresh)
    found = sage(options.jobs)
    if found is None:
        print("\nSage's interface: not installed here, not measured")
    else:
        row("", "Sage's interface, not isolated", found, None)


def row(version: str, name: str, values: list[float], fresh: float | None) -> None:
    """Print one line of the table."""
    median = statistics.median(values)
    ratio = f"1/{fresh / median:.1f}" if fresh is not None else ""
    print(f"{version:10}{name:32}{median:9.1f}{statistics.mean(values):9.1f}{max(values):9.1f}{ratio:>9}")


if __name__ == "__main__":
    main()
