"""How long the stand-alone checker takes beside the computation that it checks.

usage: python benchmarks/checker.py [--large]

Each row: `dimension(engine=False)` with its certificate, then `python -I m2bridge/checker.py` on it in a fresh process.
The ratio is of two times measured one after the other.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import m2bridge
from m2bridge import checker

FIGURE_3 = [
    f"{family}(d=[{n},{n},{n}],a=[2,2],t=3)" for family in ("deep-lightning", "softmax") for n in range(3, 11)
]
LARGE = ["deep-lightning(d=[32,32,32],a=[2,2],t=3)", "deep-lightning(d=[64,64,64],a=[2,2],t=3)"]


def row(spec: str, directory: Path) -> tuple[float, float, int, int]:
    """Seconds of the proof and of the check, the checker's exit code, and the size of the certificate in bytes."""
    start = time.perf_counter()
    found = m2bridge.dimension(spec, engine=False)
    proof = time.perf_counter() - start
    path = directory / "certificate.json"
    path.write_text(json.dumps(found.certificate))
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-I", str(checker.__file__), str(path)], capture_output=True, check=False
    )
    return proof, time.perf_counter() - start, done.returncode, path.stat().st_size


def main() -> None:
    specs = FIGURE_3 + (LARGE if "--large" in sys.argv else [])
    m2bridge.dimension(FIGURE_3[0], engine=False)  # imports are not counted
    total_proof = total_check = 0.0
    with tempfile.TemporaryDirectory() as name:
        for spec in specs:
            proof, check, code, size = row(spec, Path(name))
            if spec in FIGURE_3:
                total_proof, total_check = total_proof + proof, total_check + check
            print(
                f"{spec:45} {proof:8.3f} s {check:8.3f} s  ratio {check / proof:6.1f}  exit {code}  {size} bytes",
                flush=True,
            )
    print(
        f"Figure 3 in all: {total_proof:.2f} s and {total_check:.2f} s, ratio {total_check / total_proof:.1f}"
    )


if __name__ == "__main__":
    main()
