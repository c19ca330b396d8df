"""How long the command line takes to say something, beside importing the libraries that it prints with: ratios of one run."""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 9
COMMANDS = {
    "import typer, rich": ["-c", "import typer, rich"],
    "an empty typer application, --help": [
        "-c",
        "import sys, typer; sys.argv = ['x', '--help']; typer.run(lambda: None)",
    ],
    "m2bridge --version": ["-m", "m2bridge", "--version"],
    "m2bridge --help": ["-m", "m2bridge", "--help"],
    "m2bridge dimension --help": ["-m", "m2bridge", "dimension", "--help"],
}


def seconds(words: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return time.perf_counter() - start


def main() -> None:
    """Take turns, keep the best of each, print ratios to the first."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(ROUNDS):
        for name, words in COMMANDS.items():
            best[name] = min(best[name], seconds(words))
    base = best["import typer, rich"]
    for name, value in best.items():
        print(f"{name:40} {value:6.3f} s  {value / base:5.2f}")


if __name__ == "__main__":
    main()
