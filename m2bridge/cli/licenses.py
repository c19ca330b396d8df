"""CLI: ``m2bridge licenses``: every part that m2bridge runs on here, its licence, and where the text of the licence is."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from m2bridge.cli.common import JsonOption, console, print_json
from m2bridge.engine.discovery import places
from m2bridge.engine.install import WHEEL_BINARY

UNKNOWN = "not known here: ask its authors"
_EXTRAS = ("plot", "parquet")
_DEBIAN = Path("/usr/share/doc")
_COMMON = Path("/usr/share/common-licenses")
_TEXT_NAME = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Licensed:
    """Something with a licence of its own; `texts` are files that hold the licence's words."""

    kind: str
    name: str
    version: str
    license: str
    home: str = ""
    texts: tuple[str, ...] = ()


def register(app: typer.Typer) -> None:
    @app.command("licenses")
    def command(
        as_json: JsonOption = False,
        text: Annotated[bool, typer.Option("--text", help="Print the texts of the licences too.")] = False,
    ) -> None:
        """List every part that m2bridge runs on here, with its licence; --json adds where each comes from.

        Example: m2bridge licenses --text > licenses.txt
        """
        parts = [*python_parts(), *engine_parts(), *system_parts()]
        if as_json:
            print_json({"parts": [asdict(part) for part in parts]})
            return
        table = Table(show_edge=False, pad_edge=False)
        for heading in ("part", "version", "license"):
            table.add_column(heading, overflow="fold")
        for part in parts:
            if part.kind != "system":
                table.add_row(*map(escape, (part.name, part.version, part.license)))
        out = console()
        out.print(table)
        if system := sum(part.kind == "system" for part in parts):
            out.print(f"\nand {system} packages of Debian: {_DEBIAN}/*/copyright", markup=False)
        if text:
            _print_texts(parts)


def _print_texts(parts: list[Licensed]) -> None:
    texts = [(f"{part.name}: {name}", Path(name)) for part in parts for name in part.texts]
    shared = [path for path in sorted(_COMMON.glob("*")) if path.is_file() and not path.is_symlink()]
    for title, path in [*texts, *((str(path), path) for path in shared)]:
        print(f"\n==== {title}\n\n{path.read_text(encoding='utf-8', errors='replace').rstrip()}")


def python_parts() -> Iterator[Licensed]:
    """Python, m2bridge, and the distributions that it depends on, as far as they are installed."""
    text = Path(os.__file__).parent / "LICENSE.txt"
    texts = (str(text),) if text.is_file() else ()
    yield Licensed("python", "Python", platform.python_version(), "PSF-2.0", "https://www.python.org", texts)
    seen: set[str] = set()
    waiting = ["m2bridge"]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop(0)).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # an extra, or for another platform
            continue
        waiting += _requirements(found, _EXTRAS if name == "m2bridge" else ())
        yield Licensed(
            "python", found.metadata["Name"], found.version, _license(found), _home(found), _texts(found)
        )


def _requirements(found: metadata.Distribution, extras: tuple[str, ...]) -> list[str]:
    """Names of what a distribution requires, with those extras."""
    names = []
    for requirement in found.requires or ():
        wanted = re.findall(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
        if not wanted or set(wanted) & set(extras):
            names += re.findall(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return names


def _license(found: metadata.Distribution) -> str:
    """The licence as the distribution declares it: an SPDX expression, a short name, or its classifiers."""
    about = found.metadata
    declared = next((about[key].strip() for key in ("License-Expression", "License") if key in about), "")
    if declared and "\n" not in declared and len(declared) <= _LONGEST_NAME:
        return declared
    classified = [text for text in about.get_all("Classifier") or () if text.startswith("License :: ")]
    names = ", ".join(text.rpartition(" :: ")[2] for text in classified)
    return names or ("see its text" if declared else UNKNOWN)


def _home(found: metadata.Distribution) -> str:
    if "Home-page" in found.metadata:
        return found.metadata["Home-page"]
    named = (text.lower().partition(", ") for text in found.metadata.get_all("Project-URL") or ())
    urls = {name: url for name, _, url in named}
    wanted = ("homepage", "home", "source", "source code", "repository", "github")
    return next((urls[word] for word in wanted if word in urls), "")


def _texts(found: metadata.Distribution) -> tuple[str, ...]:
    files = [file for file in found.files or () if ".dist-info" in str(file) and _TEXT_NAME.search(file.name)]
    paths = (Path(str(found.locate_file(file))) for file in files)
    return tuple(str(path) for path in paths if path.is_file())


def engine_parts() -> Iterator[Licensed]:
    """The Macaulay2 of the wheel and the libraries that come with it; of another Macaulay2 its place only."""
    known = json.loads(resources.files("m2bridge").joinpath("data/engine_parts.json").read_text("utf-8"))
    for origin, binary in places():
        if not str(binary).endswith(str(WHEEL_BINARY)):
            yield Licensed("engine", "Macaulay2", origin, known["Macaulay2"]["license"], str(binary))
            continue
        root = binary.parents[2]
        present = [f"bin/{path.name}" for path in sorted(binary.parent.iterdir())]
        present += [path.name for path in sorted(root.glob("passagemath_macaulay2.libs/*"))]
        for name, about in known.items():
            if files := [file for file in present if _stem(file) in about["files"]]:
                version = ", ".join(dict.fromkeys(v for v in map(_library_version, files) if v))
                yield Licensed("engine", name, version, about["license"], about["home"])
            present = [file for file in present if file not in files]
        yield from (Licensed("engine", file, "", UNKNOWN) for file in present)
        return


def _stem(file: str) -> str:
    """``libgmp-ef80bda1.so.10.5.0`` is ``libgmp``, ``libopenblasp-r0-bb232149.3.34.so`` is ``libopenblasp``."""
    return file if file.startswith("bin/") else re.split(r"-[0-9r]|-[0-9a-f]{8}|\.so", file)[0]


def _library_version(file: str) -> str:
    return "".join(f"so {version}" for version in re.findall(r"\.so\.([0-9.]+)$", file))


def system_parts() -> Iterator[Licensed]:
    """The packages of Debian, in an image that is made of them."""
    if not Path("/.m2bridge-image").exists():
        return
    for path in sorted(_DEBIAN.glob("*/copyright")):
        yield Licensed("system", path.parent.name, "", "see its text", texts=(str(path),))
