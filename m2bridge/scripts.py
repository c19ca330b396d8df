"""Render templates and values to Macaulay2 scripts.

A template is a Macaulay2 file that can be run without rendering: it begins with default values for its parameters. The line
``--% include "_params.m2.j2"`` after the defaults is replaced by the caller's values and the partial of the model. Jinja
interprets only lines that begin with ``--%`` (comments in Macaulay2) and, inside partials, ``@{ value }@``; loops are written in
Macaulay2. Other files are named as in Macaulay2, by lines ``needs "./NAME";``, which are replaced by the files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from m2bridge.errors import InputError
from m2bridge.literals import assignment

SUFFIX = ".m2.j2"
LIBRARY = "Neuromanifolds"
"""The package of Macaulay2 that templates load; its files are in the directory of this name."""
PARAMETERS_LINE = re.compile(r'^--%\s*include\s+"_params\.m2\.j2"\s*$', re.MULTILINE)
_INCLUDE = re.compile(r'^--%\s*include\s+"([A-Za-z0-9_.]+)"\s*$', re.MULTILINE)
_DEEPEST_INCLUDE = 8  # templates that include each other
_NEEDED = re.compile(rf'^(?:needs|load) "\./(?:{LIBRARY}/)?([a-z_-]+\.m2(?:\.j2)?)";$\n?', re.MULTILINE)
_LOADED = re.compile(r'\b(?:needs|load)\s*"\./(_\w+)\.m2\.j2"')
_DEFAULT = re.compile(r"^([a-zA-Z][a-zA-Z0-9]*)\s*=", re.MULTILINE)
_DELIMITER = re.compile(r"--%|@\{|<%%|<##")  # of Jinja, in the environment below
_PACKAGE = re.compile(r'^needsPackage "([A-Za-z0-9]+)";', re.MULTILINE)
_FORWARD_PASS = '"./_coefficients.m2.j2"'
_NO_INPUT = re.compile(r"^inputSize\s*=\s*null\s*;", re.MULTILINE)
_NEEDED_BY_FORWARD_PASS = {
    "weightSizes": "the sizes of the weights, such as {{2, 3}, {1, 2}}",
    "inputSize": "the size of an input, such as {3, 1}",
    "degreesThatOccur": "the degrees of the outputs as polynomials in the inputs, such as {2}",
    "networkAt": "the network, a function of the list of weights and the input",
}
_RENDERED = "rendered"
"""The variable of a template that is true if it was rendered; the caller cannot set it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A rendered Macaulay2 script, or the input of msolve: its name, its text and the sha256 of the text.

    `arguments` are those of msolve; a Macaulay2 script has none. `preload` is false if the script loads every package that it
    needs. Macaulay2 then starts without the packages of its prompt, whose loading takes most of the time of the start.
    """

    name: str
    text: str
    preload: bool = True
    arguments: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """Return the suffix of its file name."""
        return ".ms" if self.arguments else ".m2"

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the packages that a script without `preload` loads; a warm Macaulay2 loads them before it forks."""
        return () if self.preload else tuple(_PACKAGE.findall(self.text))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def template_directory() -> Path:
    """Return the directory of the templates: in the installed package, or beside it in a checkout."""
    package = Path(str(resources.files("m2bridge")))
    for directory in (package / "m2_templates", package.parent / "m2_templates"):
        if directory.is_dir():
            return directory
    raise InputError(f"no template directory in or beside {package}; install m2bridge again")


@cache
def template_texts(directory: Path) -> dict[str, str]:
    """Return the texts of all templates and library files in a directory, by file name.

    They are read once. So a process does not notice later changes, and the templates that it renders match the hash in the keys
    of a batch.
    """
    paths = [*directory.glob(f"*{SUFFIX}"), *directory.glob(f"{LIBRARY}/*.m2")]
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(paths)}


def is_library(name: str) -> bool:
    """Return whether a file is a file of the library, not a template."""
    return name.endswith(".m2")


def insert_files(text: str, present: Iterable[str] = ()) -> str:
    """Replace each line ``needs "./NAME";`` by the file, so that the script needs no other file.

    A file is inserted once. Files that are `present` in another form are not inserted.
    """
    texts = template_texts(template_directory())
    inserted = set(present)

    def insert(match: re.Match[str]) -> str:
        name = match[1]
        if name in inserted:
            return ""
        inserted.add(name)
        return _NEEDED.sub(insert, texts[name].rstrip() + "\n") if name in texts else match[0]

    return _NEEDED.sub(insert, text)


def needed_files(text: str) -> list[str]:
    """Return the names of the files that a template includes."""
    return [*_INCLUDE.findall(text), *_NEEDED.findall(text)]


@cache
def declared_text(path: Path) -> str:
    """Return the text of a template that a question declares by its path; it is read once."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"template {path} cannot be read: {error}") from None


_DECLARED: dict[Path, dict[str, str]] = {}
"""For each directory the templates in it that questions declare, by file name."""


def declare(path: Path) -> None:
    """Read a template outside the package; this process renders this text from now on, even if the file changes."""
    _DECLARED.setdefault(path.resolve().parent, {})[path.name] = declared_text(path)


def declare_text(name: str, text: str) -> Path:
    """Return a path by which this process renders a template that is given by its text, without a file."""
    directory = Path("/no-file") / hashlib.sha256(text.encode()).hexdigest()
    _DECLARED.setdefault(directory, {})[name] = text
    return directory / name


def verbatim(text: str) -> str:
    """Return a template that is rendered as `text`: lines in which Jinja would read something become string literals.

    >>> print(verbatim("I = ideal x\\n--% of cases"))
    I = ideal x
    @{ "--% of cases" }@
    """
    lines = text.split("\n")
    return "\n".join(f"@{{ {json.dumps(line)} }}@" if _DELIMITER.search(line) else line for line in lines)


def with_includes(path: Path, depth: int = 0) -> str:
    """Return the text of a template in which the files beside it that it includes are inserted."""
    if depth > _DEEPEST_INCLUDE:
        raise InputError(f"template {path.name}: files are included more than {_DEEPEST_INCLUDE} deep")

    def insert(match: re.Match[str]) -> str:
        file = path.with_name(match[1])
        return with_includes(file, depth + 1) if file.is_file() else match[0]

    return _INCLUDE.sub(insert, declared_text(path))


@cache
def _environment(user_directories: tuple[Path, ...], shipped: Path) -> jinja2.Environment:
    """Return the sandbox in which templates are rendered; it allows no access to Python internals and no mutation."""
    loaders: list[jinja2.BaseLoader] = []
    for folder in user_directories:
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
    """Return the names of the templates that can be rendered, without partials, whose names begin with an underscore."""
    files = template_texts(template_directory())
    names = (name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def declared_parameters(source: str) -> frozenset[str]:
    """Return the parameters of a template: the names assigned before the line that includes the caller's values."""
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
        The name of a template (``"singular_locus"``), or the path of a user's ``.m2.j2`` file.
    parameters
        Values for the parameters that the template or the model partial declares; they are written by
        :func:`m2bridge.literals.literal`.
    partial
        The model partial, by its name or by the path of a file outside the package. It replaces the partial that the template
        loads when it is run without rendering.

    Raises
    ------
    InputError
        The template is unknown, a parameter is not declared, or a value is not allowed in a script.
    """
    name = f"{template}{SUFFIX}"
    user_files = [path for path in (template, partial) if isinstance(path, Path)]
    folders = tuple(path.resolve().parent for path in user_files)
    if isinstance(template, Path):
        name = template.name
        if name not in _DECLARED.get(folders[0], {}) and not template.is_file():
            raise InputError(f"template {template} does not exist")
    if isinstance(partial, Path):
        declare(partial)
        _check_partial(partial)
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
    default = default_partial(source)
    model = partial or default
    model_partial = None if model is None else f"{model}{SUFFIX}"
    try:
        text = environment.get_template(name).render(assignments=assignments, model_partial=model_partial)
    except Exception as error:  # a user's template may raise any exception
        raise InputError(f"template {name} cannot be rendered: {error}") from error
    text = insert_files(text, present=[f"{default}{SUFFIX}"])
    return Script(name=name.removesuffix(SUFFIX), text=text, preload=bool(user_files))


def line_in_template(source: str, text: str, line: int) -> int | None:
    """Return the line of a template for a line of the rendered script; None for the inserted parameters.

    Lines before the caller's values have the same number. Lines after them are counted from the end, while they are equal.

    >>> line_in_template('n = 1;\\n--% include "_params.m2.j2"\\nf n', "n = 1;\\nn = 2;\\n-- more\\nf n", 4)
    3
    """
    template_lines = source.split("\n")
    script_lines = text.split("\n")
    if template_lines[:line] == script_lines[:line]:
        return line
    from_end = len(script_lines) - line + 1
    if not 0 < from_end <= len(template_lines) or template_lines[-from_end:] != script_lines[-from_end:]:
        return None
    return len(template_lines) - from_end + 1


def default_partial(source: str) -> str | None:
    """Return the model partial that a template loads when it is run without rendering; None if it needs no model."""
    return next((name for name in _LOADED.findall(source) if name != "_emit"), None)


def _source(environment: jinja2.Environment, name: str) -> str:
    try:
        source, _, _ = environment.loader.get_source(environment, name)  # type: ignore[union-attr]
    except jinja2.TemplateNotFound:
        names = ", ".join(template_names())
        raise InputError(
            f"there is no template {name.removesuffix(SUFFIX)!r}; the templates are: {names}"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"template {name} is not UTF-8 text: {error}") from None
    return source


def _check_partial(path: Path) -> None:
    """Reject a partial of another package that leaves out a name which ``_coefficients.m2.j2`` uses."""
    source = declared_text(path)
    if _FORWARD_PASS not in source:
        return
    defined = {*_DEFAULT.findall(source), *declared_model_parameters(source)}
    if _NO_INPUT.search(source):
        defined.add("degreesThatOccur")
    for name, meaning in _NEEDED_BY_FORWARD_PASS.items():
        if name not in defined:
            raise InputError(f"{path.name} does not define {name}: {meaning}")


def declared_model_parameters(source: str) -> frozenset[str]:
    """Return the parameters of a model partial, listed in its header line ``-- parameters: d, dp, a, t``."""
    match = re.search(r"^-- parameters:(.*)$", source, re.MULTILINE)
    return frozenset(re.findall(r"[a-zA-Z][a-zA-Z0-9]*", match.group(1))) if match else frozenset()
