"""A package imports only from the packages that ``LEFT_OF`` lists for it.

The imports are read from the source of every module, those inside functions too; only imports for type checkers
are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import m2bridge

PACKAGE = Path(m2bridge.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

FOUNDATION = {
    "errors",
    "literals",
    "views",
    "boxes",
    "latex",
    "limits",
    "alarm",
    "certainty",
    "evidence",
    "exact_numbers",
    "_version",
}
"""Importable from everywhere; they import nothing but each other."""

LEFT_OF = {
    "errors": set(),
    "_version": set(),
    "views": set(),
    "boxes": {"views"},
    "latex": set(),
    "limits": {"errors"},
    "alarm": set(),
    "certainty": set(),
    "exact_numbers": {"errors"},
    "evidence": {"certainty"},
    "literals": {"errors"},
    "linear": FOUNDATION,
    "programs": FOUNDATION | {"linear"},
    "frontends": FOUNDATION | {"linear", "programs"},
    "families": FOUNDATION | {"linear", "programs", "frontends"},
    "symmetry": FOUNDATION | {"linear", "programs", "frontends", "families", "results"},
    "scripts": FOUNDATION | {"families"},
    "results": FOUNDATION,
    "engine": FOUNDATION | {"families", "scripts"},
    "protocol": FOUNDATION | {"frontends", "families", "scripts", "engine"},
    "msolve": FOUNDATION | {"scripts", "engine", "protocol"},
    "certificates": FOUNDATION | {"linear", "programs", "frontends", "families", "results"},
    "bounds": FOUNDATION | {"linear", "programs", "frontends", "families", "symmetry", "certificates"},
    "checker": set(),  # checks certificates alone: nothing that helped to make them
    "checker_further": {"checker"},  # which the checker loads where it stands beside it
    "checker_families": {"checker"},  # and this one
}
LEFT_OF["questions"] = set(LEFT_OF) - {"checker", "checker_further", "checker_families"}
LEFT_OF["records"] = LEFT_OF["schemas"] = LEFT_OF["questions"] | {"questions", "records"}
LEFT_OF["batch"] = LEFT_OF["records"] | {"schemas"}
LEFT_OF["figures"] = FOUNDATION | {
    "programs",
    "frontends",
    "families",
    "results",
    "questions",
    "records",
    "schemas",
}
LEFT_OF["papers"] = LEFT_OF["records"] | {"schemas", "figures"}
"""Papers use m2bridge as other packages do: only the ledger's commands and pages import them."""
LEFT_OF["report"] = LEFT_OF["figures"] | {"figures", "papers", "checker"}
LEFT_OF["cli"] = LEFT_OF["batch"] | {"batch", "figures", "papers", "report", "checker"}
LEFT_OF["__main__"] = {"cli"}
LEFT_OF["__init__"] = LEFT_OF["batch"] | {"batch", "figures", "papers", "report"}


def name_of(path: Path) -> str:
    parts = [PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> str:
    """The package that relative imports start from."""
    return name_of(path.with_name("__init__.py"))


NAMES = {name_of(path) for path in MODULES}


def stage_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """(line, module of m2bridge) for every import, those under ``if TYPE_CHECKING`` left out."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name) for alias in node.names if alias.name.startswith("m2bridge")
            )
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] == "m2bridge":
                full = (f"{base}.{alias.name}" for alias in node.names)
                yield from ((node.lineno, name if name in NAMES else base) for name in full)
        waiting += ast.iter_child_nodes(node)


def test_every_module_has_a_stage() -> None:
    unknown = {stage_of(name) for name in NAMES} - set(LEFT_OF)
    assert not unknown, f"say in this file where these stages stand: {sorted(unknown)}"


def test_stages_import_only_from_their_left() -> None:
    wrong = [
        f"{name_of(path)}, line {line}: {target}"
        for path in MODULES
        for line, target in imports(path.read_text(encoding="utf-8"), package_of(path))
        if stage_of(target) not in LEFT_OF[stage_of(name_of(path))] | {stage_of(name_of(path))}
    ]
    assert not wrong, "\n".join(wrong)


def test_papers_import_no_private_name() -> None:
    """What a package of somebody else should not import, papers do not import either."""
    wrong = [
        f"{name_of(path)}: {alias.name}"
        for path in MODULES
        if stage_of(name_of(path)) == "papers"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("m2bridge")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_stage_is_there() -> None:
    """A row of the table above that guards nothing is taken out."""
    gone = set(LEFT_OF) - {stage_of(name) for name in NAMES}
    assert not gone, f"no module has these stages any more: {sorted(gone)}"


def test_every_form_of_import_is_read() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from m2bridge.cli import main
else:
    import m2bridge.records
def f():
    from m2bridge import protocol, scripts as s
try:
    import m2bridge.engine.base as b, os
except ImportError:
    from ..families import base
    from . import discovery
"""
    assert {target for _, target in imports(source, "m2bridge.engine")} == {
        "m2bridge.records",
        "m2bridge.protocol",
        "m2bridge.scripts",
        "m2bridge.engine.base",
        "m2bridge.families.base",
        "m2bridge.engine.discovery",
    }
