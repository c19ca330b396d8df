"""Programs that packages of Macaulay2 run, and which of them a Macaulay2 lacks.

Macaulay2 itself searches for them (``findProgram``), in its own directories and on PATH, and runs a test command of each one.
"""

from __future__ import annotations

from m2bridge.engine.base import Engine
from m2bridge.limits import Limits
from m2bridge.scripts import Script

PROGRAMS = {
    "4ti2": ("markov -h", "FourTiTwo"),
    "bertini": ("bertini --version", "Bertini"),
    "gfan": ("gfan --help", "gfanInterface, and MultigradedImplicitization without the option Grading"),
    "msolve": ("msolve -h", "Msolve"),
    "nauty": ("complg --help", "Nauty, NautyGraphs"),
    "normaliz": ("normaliz --help", "Normaliz"),
    "phc": ("phc --version", "PHCpack"),
    "polymake": ("polymake --version", "StatePolytope"),
    "topcom": ("cube 3", "Topcom"),
}
"""For each program a command that tests it, and the packages that need it."""
_SEARCH = """-- Searches for the programs that packages run, each with a command that tests it.
prefixes = {(".*", "4ti2-"), (".*", "4ti2_"), (".*", "nauty-"), (".*", "topcom-"), ("^cube$", "TOPCOM-"), ("^cube$", "topcom_")};
search = (name, command) -> (
    program := findProgram(name, command, RaiseError => false, Prefix => prefixes);
    if program === null then << "missing " << name << endl << flush);
"""
_LIMITS = Limits(wall_seconds=60.0, memory_bytes=None, output_bytes=2**16)


def missing_programs(engine: Engine) -> dict[str, str]:
    """Return the programs that this Macaulay2 lacks, each with the packages that need it."""
    searches = "".join(f'search("{name}", "{command}");\n' for name, (command, _) in PROGRAMS.items())
    run = engine.run(Script(name="programs", text=_SEARCH + searches), _LIMITS)
    missing = {line.removeprefix("missing ") for line in run.stdout.splitlines()}
    return {name: packages for name, (_, packages) in PROGRAMS.items() if name in missing}
