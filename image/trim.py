"""Remove from an environment what m2bridge never reads, and print what that saves.

    python trim.py /opt/m2bridge

Every rule says what goes. Macaulay2's packages stay whole, with their data and their documentation databases: a template may
load any of them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

RULES = {
    "tests of Python packages": [
        "*/**/tests",
        "matplotlib/testing",
        "sympy/testing/tests",
        "numpy/_core/tests",
    ],
    "sources that are already compiled": [
        f"*/**/*.{ending}" for ending in ("c", "h", "pyx", "pxd", "pyi", "f", "f90", "pyf")
    ],
    "Fortran wrapper of NumPy": ["numpy/f2py/src"],
    "Jupyter extension and widget of plotly (plotly.min.js stays)": [
        "plotly/labextension",
        "plotly/package_data/widgetbundle.js",
        "plotly/package_data/datasets",
        "../../../share/jupyter",
        "../../../etc/jupyter",
    ],
    "sample data and toolbar pictures of matplotlib": [
        "matplotlib/mpl-data/sample_data",
        "matplotlib/mpl-data/images",
        "matplotlib/backends/web_backend",
    ],
    "benchmarks of SymPy": ["sympy/**/benchmarks"],
    "style sheets of Macaulay2's HTML help": ["sage_wheels/share/Macaulay2/Style/katex"],
    "manual pages": ["../../../share/man"],
}
KEPT = ("sage_wheels", "m2bridge")
"""Directories in which the rules for Python packages (those that begin with a star) do not hold."""


def size(path: Path) -> int:
    """Bytes of a file or of all files below a directory."""
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() or file.is_symlink())


def trim(packages: Path) -> None:
    """Apply the rules below one site-packages directory."""
    print(f"{size(packages) / 1e6:8.1f} MB in {packages}")
    for reason, patterns in RULES.items():
        saved = 0
        for pattern in patterns:
            # `glob` cannot begin with .., so that part of the pattern moves the directory
            start, rest = packages, pattern
            while rest.startswith("../"):
                start, rest = start.parent, rest[3:]
            for path in sorted(start.glob(rest)):
                if pattern.startswith("*") and path.relative_to(packages).parts[0] in KEPT:
                    continue
                if path.exists():
                    saved += size(path)
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if saved:
            print(f"{-saved / 1e6:8.1f} MB {reason}")
    print(f"{size(packages) / 1e6:8.1f} MB left")


if __name__ == "__main__":
    for found in sorted(Path(sys.argv[1]).glob("lib/python3*/site-packages")):
        trim(found)
