"""Sizes of the image's parts, and the time from the start of a container to the first result, against the bare command.

    make image-sizes IMAGE_RUN="podman run --rm ..."

The times are the smallest of several runs, taken in turn, so that a busy machine disturbs both alike. "first" is the first run of
the bare command with an empty cache, as every run in a container is: it tries Macaulay2 before it uses it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = Path(__file__).parents[1] / "image" / "sizes.py"
COMMANDS = {
    "--version": ["--version"],
    "dimension": ["dimension", "lightning(d=2,dp=1)", "--json"],
    "singular-locus": ["singular-locus", "--d", "2", "--dp", "1", "--json"],
    "figure theorem-3.4": ["figure", "theorem-3.4", "--d", "2", "--dp", "1", "-o", "-"],
}
TIMES = 5


def seconds(words: list[str], environment: dict[str, str]) -> float:
    """How long a command takes that must succeed."""
    begun = time.monotonic()
    subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return time.monotonic() - begun


def sizes(run: list[str], image: str) -> None:
    """Print the table of sizes."""
    words = [*run, "-i", "--entrypoint", "python", image, "-"]
    done = subprocess.run(words, stdin=SIZES.open(), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    print("part | MB | MB compressed\n---|---:|---:")
    for part, packed in sorted(found["compressed"].items(), key=lambda item: item[1]):
        print(f"{part} | {found['bytes'][part] / 1e6:.1f} | {packed / 1e6:.1f}")


def starts(run: list[str], image: str) -> None:
    """Print the table of times."""
    from m2bridge.engine.install import installed

    engine = next(iter(installed()), None)
    print(
        f"\ncommand | container, s | bare, first, s | bare, s | ratio to first | ratio to bare\n{'---|' * 5}---"
    )
    for name, arguments in COMMANDS.items():
        best = {"container": 1e9, "first": 1e9, "bare": 1e9}
        bare = [str(Path(sys.executable).with_name("m2bridge")), *arguments]
        environment = dict(os.environ) | ({"M2BRIDGE_M2": str(engine)} if engine else {})
        seconds(bare, environment)
        for _ in range(TIMES):
            best["container"] = min(best["container"], seconds([*run, image, *arguments], dict(os.environ)))
            best["bare"] = min(best["bare"], seconds(bare, environment))
            with tempfile.TemporaryDirectory() as empty:
                fresh = environment | {"XDG_CACHE_HOME": empty, "MPLCONFIGDIR": empty}
                best["first"] = min(best["first"], seconds(bare, fresh))
        container, first, warm = best["container"], best["first"], best["bare"]
        print(
            f"{name} | {container:.2f} | {first:.2f} | {warm:.2f} | {container / first:.2f} | {container / warm:.2f}"
        )


def main() -> None:
    run, image = shlex.split(os.environ["M2BRIDGE_IMAGE_RUN"]), os.environ["M2BRIDGE_IMAGE"]
    sizes(run, image)
    starts(run, image)


if __name__ == "__main__":
    main()
