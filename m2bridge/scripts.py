"""Scripts stage: a template and values become a :class:`Script`.

A template is a Macaulay2 file that runs as it stands: it begins with default values for its parameters, and the line
``--% include "_params.m2.j2"`` marks where the caller's values go, after the defaults. Jinja sees only lines that begin
with ``--%`` (comments to Macaulay2) and, inside partials, ``@{ value }@``; loops belong to Macaulay2.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from m2bridge.errors import InputError
from m2bridge.literals import assignment

SUFFIX = ".m2.j2"
PARAMETERS_LINE = re.compile(r'^--%\s*include\s+"_params\.m2\.j2"\s*$', re.MULTILINE)
_LOADED = re.compile(r'\bload\s*"\./(_\w+)\.m2\.j2"')
_DEFAULT = re.compile(r"^([a-zA-Z][a-zA-Z0-9]*)\s*=", re.MULTILINE)
_PACKAGE = re.compile(r'^needsPackage "([A-Za-z0-9]+)";', re.MULTILINE)
_RENDERED = "rendered"
"""Tells a template whether it was rendered or runs as it stands; not for the caller to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A rendered Macaulay2 script: its name, its text and the sha256 of the text.

    `preload` is false when the script itself loads every package it needs: then a fresh Macaulay2 need not load those it would
    load for a person at its prompt, which is most of its start-up.
    """

    name: str
    text: str
    preload: bool = True

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that a script without `preload` loads in any case; a warm Macaulay2 may have them ready."""
        return () if self.preload else tuple(_PACKAGE.findall(self.text))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def template_directory() -> Path:
    """Where the templates are: inside the installed package, or beside it in a checkout."""
    package = Path(str(resources.files("m2bridge")))
    for directory in (package / "m2_templates", package.parent / "m2_templates"):
        if directory.is_dir():
            return directory
    raise InputError(f"the template directory is missing beside {package}; install m2bridge again")


@cache
def template_texts(directory: Path) -> dict[str, str]:
    """The text of every template of a directory by file name, read once: a process never sees a later change, so that what it
    renders is what the hash in a batch's keys says."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.glob(f"*{SUFFIX}"))}


@cache
def declared_text(path: Path) -> str:
    """The text of a template that a question declares by its path, read once, as the package's own are."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"template {path} cannot be read: {error}") from None


_DECLARED: dict[Path, dict[str, str]] = {}
"""Directory -> the templates in it that questions declare, by file name."""


def declare(path: Path) -> None:
    """Fix the text of a template outside the package: from now on this process renders what it reads here."""
    _DECLARED.setdefault(path.resolve().parent, {})[path.name] = declared_text(path)


@cache
def _environment(own: tuple[Path, ...], shipped: Path) -> jinja2.Environment:
    """The sandbox in which templates are rendered: no attribute of Python's machinery, nothing that changes its arguments."""
    loaders: list[jinja2.BaseLoader] = []
    for folder in own:
        loaders.append(jinja2.DictLoader(_DECLARED.setdefault(folder, {})))
        loaders.append(jinja2.FileSystemLoader(str(folder)))
    loaders.append(jinja2.DictLoader(template_texts(shipped)))
    return ImmutableSandboxedEnvironment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        line_statement_prefix="--%",
        variable_start_string="@{",
        variable_end_string="}@",
        block_start_string="<%%",
        block_end_string="%%>",
        comment_start_string="<##",
        comment_end_string="##>",
        keep_trailing_newline=True,
        autoescape=False,
    )


def template_names() -> tuple[str, ...]:
    """Names of the templates that can be rendered (partials begin with an underscore and are left out)."""
    names = (name.removesuffix(SUFFIX) for name in template_texts(template_directory()))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def declared_parameters(source: str) -> frozenset[str]:
    """The parameters a template declares: names assigned before the line that includes the caller's values."""
    marker = PARAMETERS_LINE.search(source)
    if marker is None:
        raise InputError('the template has no line `--% include "_params.m2.j2"`')
    return frozenset(_DEFAULT.findall(source[: marker.start()])) - {_RENDERED}


def render(
    template: str | Path, parameters: Mapping[str, object], *, partial: str | Path | None = None
) -> Script:
    """Render a template with the caller's values.

    Parameters
    ----------
    template
        A template's name (``"singular_locus"``), or the path of a ``.m2.j2`` file of one's own.
    parameters
        Values for the parameters that the template (or the model partial) declares; each passes through
        :func:`m2bridge.literals.literal`.
    partial
        The model partial, by its name or by the path of a file outside the package, to put in place of the one that the
        template loads when it runs as it stands.

    Raises
    ------
    InputError
        For an unknown template, an undeclared parameter, or a value that is not allowed in a script.
    """
    name, outside = f"{template}{SUFFIX}", [t for t in (template, partial) if isinstance(t, Path)]
    folders = tuple(path.resolve().parent for path in outside)
    if isinstance(template, Path):
        name = template.name
        if name not in _DECLARED.get(folders[0], {}) and not template.is_file():
            raise InputError(f"template {template} does not exist")
    if isinstance(partial, Path):
        declare(partial)
        partial = partial.name.removesuffix(SUFFIX)
    environment = _environment(folders, template_directory())
    source = _source(environment, name)
    declared = declared_parameters(source)
    if partial is not None:
        declared |= declared_model_parameters(_source(environment, f"{partial}{SUFFIX}"))
    if unknown := sorted(set(parameters) - declared):
        raise InputError(
            f"template {name} does not declare {', '.join(unknown)}; it declares {', '.join(sorted(declared))}"
        )
    assignments = "\n".join(assignment(key, value) for key, value in parameters.items())
    model = partial or default_partial(source)
    model_partial = None if model is None else f"{model}{SUFFIX}"
    try:
        text = environment.get_template(name).render(assignments=assignments, model_partial=model_partial)
    except Exception as error:  # a template of one's own may compute anything
        raise InputError(f"template {name} cannot be rendered: {error}") from error
    return Script(name=name.removesuffix(SUFFIX), text=text, preload=bool(outside))


def line_in_template(source: str, text: str, line: int) -> int | None:
    """The line of a template that became this line of the script; None for what was put in at the parameters.

    Lines before the caller's values keep their number; those after are counted from the end, as long as they are the same.

    >>> line_in_template('n = 1;\\n--% include "_params.m2.j2"\\nf n', "n = 1;\\nn = 2;\\n-- more\\nf n", 4)
    3
    """
    ours, theirs = source.split("\n"), text.split("\n")
    if ours[:line] == theirs[:line]:
        return line
    same = len(theirs) - line + 1
    return len(ours) - same + 1 if 0 < same <= len(ours) and ours[-same:] == theirs[-same:] else None


def default_partial(source: str) -> str | None:
    """The model partial that a template loads when it runs as it stands; None for a template that needs no model."""
    return next((name for name in _LOADED.findall(source) if name != "_emit"), None)


def _source(environment: jinja2.Environment, name: str) -> str:
    try:
        source, _, _ = environment.loader.get_source(environment, name)  # type: ignore[union-attr]
    except jinja2.TemplateNotFound:
        known = ", ".join(template_names())
        raise InputError(f"there is no template {name.removesuffix(SUFFIX)!r}; there are: {known}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"template {name} is not UTF-8 text: {error}") from None
    return source


def declared_model_parameters(source: str) -> frozenset[str]:
    """The parameters that a model partial reads, from its header line ``-- parameters: d, dp, a, t``."""
    match = re.search(r"^-- parameters:(.*)$", source, re.MULTILINE)
    return frozenset(re.findall(r"[a-zA-Z][a-zA-Z0-9]*", match.group(1))) if match else frozenset()
