"""Print what m2bridge requires, one requirement a line, with the extras that are named.

The image installs that before m2bridge itself, so that a change of m2bridge does not download it again.

    python requirements.py pyproject.toml plot
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
extras = [extra for argument in sys.argv[2:] for extra in argument.split(",") if extra]
print(
    "\n".join(
        [
            *project["dependencies"],
            *(line for extra in extras for line in project["optional-dependencies"][extra]),
        ]
    )
)
