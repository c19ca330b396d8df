"""How long the stand-alone checker takes beside the computation that it checks, and how large certificates are.

usage: python benchmarks/checker.py [--large | --worst] [OTHER_CHECKER.py]

Each row: `dimension(engine=False)` with its certificate, then `python -I m2bridge/checker.py` on it in a fresh process. Seconds
are those of computing, so that other programs on the machine matter little. With ``--large`` the certificates grow up to
delta = 64, and the slowest documents that the checker still answers are tried: many vector fields. With another checker, for
example that of an older version, its seconds for the same documents stand at the end of each row.

``--worst`` asks about the worst documents that the tests know instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import timed

import m2bridge
from m2bridge import checker
from m2bridge.certificates.produce import certificate
from m2bridge.families import parse_spec

FIGURE_3 = [
    f"{family}(d=[{n},{n},{n}],a=[2,2],t=3)" for family in ("deep-lightning", "softmax") for n in range(3, 11)
]
OTHERS = [word for word in sys.argv[1:] if word.endswith(".py")]
LARGE = ["deep-lightning(d=[32,32,32],a=[2,2],t=3)", "deep-lightning(d=[64,64,64],a=[2,2],t=3)"]


def checked(document: Any, directory: Path) -> tuple[float, str]:
    """Seconds of the check; and in words the checker's exit code, the size of the document, and the other checker's seconds."""
    path = directory / "certificate.json"
    path.write_text(json.dumps(document))
    seconds, codes = [], []
    for file in (str(checker.__file__), *OTHERS):
        words = [sys.executable, "-I", file, str(path)]
        took, done = timed(lambda w=words: subprocess.run(w, check=False, stdout=subprocess.DEVNULL))
        codes.append(done.returncode)
        seconds.append(took.cpu)
    others = "".join(f"  other {s:8.3f} s" for s in seconds[1:])
    return seconds[0], f"exit {codes}  {path.stat().st_size} bytes{others}"


def many_fields(spec: str, count: int) -> Any:
    """As many symmetries as that: those that are found, again and again."""
    fields = [list(field.coefficients) for field in m2bridge.symmetries(spec).fields]
    statement = {"kind": "symmetry", "groups": [], "fields": (fields * count)[:count]}
    return certificate(parse_spec(spec).program, statement, spec=spec)


def worst() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "checker"))
    from test_forgeries import worst_documents

    for name, document in worst_documents().items():
        with tempfile.TemporaryDirectory() as directory:
            seconds, words = checked(document, Path(directory))
        print(f"{name:20} {seconds:6.2f} s  {words}", flush=True)


def main() -> None:
    if "--worst" in sys.argv:
        return worst()
    large = "--large" in sys.argv
    m2bridge.dimension(FIGURE_3[0], engine=False)  # imports are not counted
    total_proof = total_check = 0.0
    with tempfile.TemporaryDirectory() as name:
        for spec in FIGURE_3 + (LARGE if large else []):
            took, found = timed(lambda s=spec: m2bridge.dimension(s, engine=False))
            proof = took.cpu
            check, words = checked(found.certificate, Path(name))
            if spec in FIGURE_3:
                total_proof, total_check = total_proof + proof, total_check + check
            ratio = f"ratio {check / proof:6.1f}"
            print(f"{spec:45} {proof:8.3f} s {check:8.3f} s  {ratio}  {words}", flush=True)
        print(f"Figure 3: {total_proof:.2f} s and {total_check:.2f} s, ratio {total_check / total_proof:.1f}")
        for spec in ["mlp(widths=[5,5,3,1],r=2)", "deep-lightning(d=[3,3,3],a=[1,2],t=3)"] if large else []:
            check, words = checked(many_fields(spec, 1000), Path(name))
            print(f"1000 fields of {spec:38} {check:8.3f} s  {words}", flush=True)


if __name__ == "__main__":
    main()
