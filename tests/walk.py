"""Which modules of m2bridge a command enters on its way: ``python tests/walk.py singular-locus --d 2 --dp 1``."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import m2bridge
from m2bridge.cli import main

ROOT = Path(m2bridge.__file__).parent


def modules_entered(arguments: list[str]) -> list[str]:
    """Modules in the order in which one of their functions is first called; imports do not count."""
    main(arguments)
    found: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            found.setdefault(str(Path(code.co_filename).relative_to(ROOT)))

    sys.setprofile(look)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
    return list(found)


if __name__ == "__main__":
    walked = modules_entered(sys.argv[1:])
    print(f"\n{len(walked)} modules:", *walked, sep="\n  ")
