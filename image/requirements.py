"""Print what m2bridge requires, one requirement a line, with the extras that are named.

The image installs that before m2bridge itself, so that a change of m2bridge does not download it again.

    python requirements.py pyproject.toml plot
    python requirements.py --only pyproject.toml dask     # the extra alone
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

only = sys.argv[1] == "--only"
path, *names = sys.argv[1 + only :]
project = tomllib.loads(Path(path).read_text(encoding="utf-8"))["project"]
extras = [extra for argument in names for extra in argument.split(",") if extra]
print(
    "\n".join(
        [
            *([] if only else project["dependencies"]),
            *(line for extra in extras for line in project["optional-dependencies"][extra]),
        ]
    )
)
