"""One question a file. Questions are found, not listed: in this package, in entry points, in modules of ``M2BRIDGE_PLUGINS``.

:func:`sentences` reads names and sentences from the files without importing them, so that ``--help`` is quick; :func:`find`
imports the one that is asked.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m2bridge.errors import InputError

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

GROUP = "m2bridge.questions"
"""Of entry points: ``hilbert-series = "my_package.hilbert:hilbert_series"``."""
_DECLARED = re.compile(r'^@question\(\s*asks="([^"\n]+)".*?^def (\w+)\(', re.MULTILINE | re.DOTALL)


def plugins() -> list[str]:
    """The modules named in ``M2BRIDGE_PLUGINS``."""
    return [name for name in os.environ.get("M2BRIDGE_PLUGINS", "").split(",") if name]


def _places() -> dict[str, tuple[str, str, str]]:
    """Name of a question -> its module, its name there, and the sentence that says what it asks."""
    return _places_with(tuple(plugins()))


@cache
def _places_with(modules: tuple[str, ...]) -> dict[str, tuple[str, str, str]]:
    here = Path(__file__).parent
    files = {f"{__name__}.{path.stem}": path for path in sorted(here.glob("*.py")) if path.stem != "__init__"}
    files |= {f"{__name__}.{path.parent.name}": path for path in sorted(here.glob("*/__init__.py"))}
    files |= {name: source for name in modules if (source := source_of(name)) is not None}
    found = {}
    for module, path in files.items():
        for sentence, function in _DECLARED.findall(path.read_text(encoding="utf-8")):
            found[function.replace("_", "-")] = (module, function, sentence)
    if _announced():
        from importlib.metadata import entry_points

        for point in entry_points(group=GROUP):
            source, package = (
                source_of(point.module),
                point.dist.name if point.dist is not None else point.module,
            )
            asked = _DECLARED.findall(source.read_text("utf-8", "replace")) if source is not None else []
            said = [sentence for sentence, function in asked if function == point.attr]
            told = (point.module, point.attr, said[0] if said else f"A question of the package {package}.")
            found.setdefault(point.name, told)
    return found


def _announced() -> bool:
    """Whether an installed package may have entry points of ours; reading them takes longer than the rest of ``--help``."""
    folders = [Path(entry) for entry in sys.path]
    if any(folder.is_file() for folder in folders):  # an archive, into which nobody looks here
        return True
    texts = (path for folder in folders for path in folder.glob("*-info/entry_points.txt"))
    return any(GROUP in path.read_text("utf-8", "replace") for path in texts)


def source_of(module: str) -> Path | None:
    """The file of a module, which is not imported, nor is a package that it is in; None when there is none."""
    package, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # it is no name
        return None
    if not inner:
        return None if spec is None or spec.origin is None else Path(spec.origin)
    folders = [Path(folder).joinpath(*inner) for folder in (spec and spec.submodule_search_locations) or ()]
    files = (file for folder in folders for file in (folder.with_suffix(".py"), folder / "__init__.py"))
    return next(filter(Path.is_file, files), None)


def sentences() -> dict[str, str]:
    """What each question asks, by its name on the command line; nothing is imported."""
    return {name: sentence for name, (_, _, sentence) in sorted(_places().items())}


def find(name: str) -> Question[Any, Any]:
    """The question of this name, or an error that names the nearest."""
    places = _places()
    if name not in places:
        from m2bridge.models.spec import suggestion

        raise InputError(
            f"there is no question {name!r}; {suggestion(name, sorted(places))}", argument="analysis"
        )
    module, function, _ = places[name]
    if module.startswith(__name__):
        found: Question[Any, Any] = getattr(importlib.import_module(module), function)
        return found
    from m2bridge.models.catalogue import imported

    other: Question[Any, Any] | None = getattr(imported(module), function, None)
    if other is None:
        raise InputError(f"the entry point {name!r} names {module}:{function}, which is not there")
    return other


def questions() -> dict[str, Question[Any, Any]]:
    """Every question by its name, e.g. ``singular-locus``; all plugins must be there."""
    if missing := [name for name in plugins() if source_of(name) is None]:
        raise InputError(f"M2BRIDGE_PLUGINS names {missing[0]!r}, which cannot be found")
    return {name: find(name) for name in sorted(_places())}
