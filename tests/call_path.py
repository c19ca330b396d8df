"""List the modules of m2bridge that a command uses: ``python tests/call_path.py singular-locus --d 2 --dp 1``."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import m2bridge
from m2bridge.cli import main

ROOT = Path(m2bridge.__file__).parent


def modules_called(arguments: list[str]) -> list[str]:
    """Return the modules in the order of the first call of one of their functions; imports are ignored."""
    main(arguments)
    modules: dict[str, None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            modules.setdefault(str(Path(code.co_filename).relative_to(ROOT)))

    sys.setprofile(profile)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
    return list(modules)


if __name__ == "__main__":
    called = modules_called(sys.argv[1:])
    print(f"\n{len(called)} modules:", *called, sep="\n  ")
