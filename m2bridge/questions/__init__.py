"""One question a file. Questions are found, not listed: in this package, in entry points, in modules of ``M2BRIDGE_PLUGINS``.

:func:`sentences` reads names and sentences from the files without importing them, and :func:`declared` the options of one, so
that ``--help`` is quick; :func:`find` imports the one that is asked.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from m2bridge.errors import InputError

if TYPE_CHECKING:
    from m2bridge.questions.kernel import Question

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Option:
    """What stands beside a question's own option: ``degree: Annotated[int, Option("How far to look.")] = 2``.

    On the command line it is called `flag`, `read` makes its value from the text, and `unasked` is its value when it is not
    given, where these are not the option's name, its type, and its default in Python.
    """

    help: str
    flag: str | None = None
    least: int | None = None
    read: Callable[[str], Any] | None = None
    unasked: Any = None


ForceOption = Annotated[bool, Option("Try even what is certainly out of reach.")]


@dataclass(frozen=True, slots=True)
class OwnOption:
    """An option as declared: name, type, default and what :class:`Option` says."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def unasked(self) -> Any:
        """The value on the command line when it is not given."""
        return self.default if self.option.unasked is None else self.option.unasked

    def check(self, value: Any) -> None:
        """An InputError where a whole number is declared and `value` is none, or is smaller than the least."""
        if self.kind == int | None and value is None:
            return
        if self.kind in (int, int | None):
            check_number(self.name, value, self.option.least)


def check_number(name: str, value: Any, least: int | None) -> None:
    """An InputError where an option's value is no whole number (NumPy's are), or is smaller than the least."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} should be an integer, not {value!r}", argument=name)
    if least is not None and value < least:
        raise InputError(f"{name} should be at least {least}, not {value}", argument=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S]):
    """What questions are about: how it is understood in Python, how a text of the command line is read, and what that says."""

    of: Callable[[Any], S]
    read: Callable[[str], S]
    metavar: str
    help: str


SPEC: Subject[str] = Subject(
    of=str,
    read=str,
    metavar="SPEC",
    help="A model, e.g. 'lightning(d=2,dp=1)'; see m2bridge models.",
)
"""A model by its spec, for the help; :data:`m2bridge.questions.kernel.MODEL` reads it."""

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


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the help of a question says; a :class:`~m2bridge.questions.kernel.Question` has these too."""

    name: str
    asks: str
    example: str = ""
    needs_engine: bool = True
    takes_prime: bool = True
    subject: Subject[Any] = SPEC
    formats: tuple[str, ...] = ()
    options: Mapping[str, OwnOption] = field(default_factory=dict)


def declared(name: str) -> Declared | Question[Any, Any]:
    """What a question declares, read from its file; the question itself where that is not written out there."""
    module, function, _ = _places()[name]
    source = source_of(module)
    try:
        return _Names(source).declaration(name, function) if source is not None else find(name)
    except (LookupError, SyntaxError, TypeError, ValueError):
        return find(name)


class _Names(dict[str, Any]):
    """What the names in a file mean, read and not run: its constants and types, and those it imports from m2bridge.

    All else is `_later`, which stands for a function or a class that only an answer needs.
    """

    def __init__(self, source: Path) -> None:
        super().__init__(
            Annotated=Annotated, Any=Any, Literal=Literal, Mapping=Mapping, Sequence=Sequence, Path=Path, Option=Option,
            Subject=Subject,
        )  # fmt: skip
        self.tree = ast.parse(source.read_text("utf-8"))

    def __missing__(self, name: str) -> Any:
        found = getattr(builtins, name, _later)
        for node in self.tree.body:
            named = getattr(node, "targets", [getattr(node, "target", None)])  # of an assignment
            if isinstance(node, ast.Assign | ast.AnnAssign) and name in [getattr(n, "id", "") for n in named]:
                found = self.value(node.value or ast.Constant(None))
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("m2bridge."):
                places = [alias.name for alias in node.names if (alias.asname or alias.name) == name]
                source = source_of(str(node.module)) if places else None
                found = found if source is None else _Names(source)[places[0]]
        self[name] = found
        return found

    def value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<declaration>", "eval"), {"__builtins__": {}}, self)

    def declaration(self, name: str, function: str) -> Declared:
        (node,) = (n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
        (call,) = (d for d in node.decorator_list if isinstance(d, ast.Call))
        wanted = {"asks", "example", "needs_engine", "takes_prime", "subject", "formats"}
        said = {word.arg: self.value(word.value) for word in call.keywords if word.arg in wanted}
        given = node.args.args[2:] + node.args.kwonlyargs
        unnamed = len(node.args.args) - len(node.args.defaults)
        defaults = [*([None] * unnamed), *node.args.defaults][2:] + node.args.kw_defaults
        options = {}
        for argument, default in zip(given, defaults, strict=True):
            kind: Any = self.value(argument.annotation or ast.Constant(None))
            value = Parameter.empty if default is None else self.value(default)
            option = kind.__metadata__[0]
            options[argument.arg] = OwnOption(argument.arg, kind.__origin__, value, option)
        told = [
            *said.values(),
            *(part for own in options.values() for part in (own.kind, own.default, own.option.help)),
        ]
        if any(part is _later for part in told):
            raise LookupError(name)
        return Declared(name=name, options=options, **said)


def _later(*_: Any) -> Any:
    """What stands for something that is not read; asked for a value, it says that the question must be imported."""
    raise LookupError
