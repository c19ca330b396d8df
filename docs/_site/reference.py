"""The reference: commands, JSON, models and the Python names, written from their declarations."""

import inspect
import json
from pathlib import Path

import typer

import m2bridge
from m2bridge.cli import EXIT_CODES, build_app
from m2bridge.families import FAMILIES
from m2bridge.questions import questions


def write(docs: Path) -> None:
    """Write ``docs/reference/*.md``."""
    folder = docs / "reference"
    folder.mkdir(exist_ok=True)
    for name, text in {
        "commands": commands(),
        "json": schemas(),
        "models": models(),
        "python": python(),
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def commands() -> str:
    """Return the page of all commands with their arguments and options."""
    group = typer.main.get_command(build_app())
    asked = questions()
    lines = ["# Commands", "", "`m2bridge COMMAND --help` prints the same information.", "", EXIT_CODES, ""]
    for kind in (True, False):
        lines += ["## Questions" if kind else "## Other commands", ""]
        for name, command in sorted(group.commands.items()):
            if (name in asked) is kind:
                lines += _command(name, command, 3)
    return "\n".join(lines)


def _command(name: str, command: object, level: int) -> list[str]:
    text, _, example = (command.help or "").partition("Example: ")
    lines = [f"{'#' * level} `m2bridge {name}`", "", _cell(text), ""]
    if example:
        lines += ["```console", f"$ {' '.join(example.split())}", "```", ""]
    rows = [p for p in command.params if p.name != "help"]
    if rows:
        lines += ["| | |", "|---|---|"]
        for p in rows:
            flags = (
                "`, `".join(p.opts + p.secondary_opts)
                if p.param_type_name == "option"
                else (p.metavar or p.name.upper())
            )
            lines.append(f"| `{_cell(flags)}` | {_cell(getattr(p, 'help', '') or '')} |")
        lines.append("")
    for sub, inner in sorted(getattr(command, "commands", {}).items()):
        lines += _command(f"{name} {sub}", inner, level + 1)
    return lines


def schemas() -> str:
    """Return the page of the fields of every record."""
    lines = [
        "# JSON",
        "",
        "`--json` prints one document, `--save DIR` writes the same; `m2bridge schema QUESTION` prints its JSON Schema.",
        "Every record has these fields besides those of its question: `schema_version`, `analysis`, `analysis_version`,",
        "`package_version`, `model`, `options`, `certainty`, `agreement`, `evidence`, `engine`, `scripts`, `seed`, `seconds`.",
        "",
    ]
    for file in sorted((Path(m2bridge.__file__).parent / "data/schemas").glob("*.schema.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        own = {name: kind for name, kind in schema["properties"].items() if name not in _COMMON}
        lines += [f"## {file.name.removesuffix('.schema.json')}", "", "| field | type |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(_type(kind))} |" for name, kind in own.items()]
        lines.append("")
    return "\n".join(lines)


_COMMON = frozenset(
    [
        "schema_version",
        "analysis",
        "analysis_version",
        "package_version",
        "model",
        "options",
        "certainty",
        "agreement",
        "evidence",
        "engine",
        "scripts",
        "seed",
        "seconds",
        "peak_memory_bytes",
        "limit",
    ]
)


def _type(kind: dict) -> str:
    if "anyOf" in kind:
        return " or ".join(_type(k) for k in kind["anyOf"])
    if "$ref" in kind:
        return kind["$ref"].rpartition("/")[2]
    if kind.get("type") == "array":
        return f"list of {_type(kind['items'])}" if isinstance(kind.get("items"), dict) else "list"
    if "enum" in kind:
        return " or ".join(f"`{word}`" for word in kind["enum"])
    if isinstance(kind.get("type"), list):
        return " or ".join(kind["type"])
    return str(kind.get("type", "any"))


def models() -> str:
    """Return the page of the families of models."""
    lines = [
        "# Models",
        "",
        "A model is named by a spec, on the command line and in Python.",
        "",
        "| spec | what it is |",
        "|---|---|",
    ]
    lines += [f"| `{_cell(f.example)}` | {_cell(f.summary)} |" for f in FAMILIES.values()]
    return "\n".join([*lines, "", "`m2bridge describe SPEC` says what is known about one.", ""])


def python() -> str:
    """Return the page of all public names of ``m2bridge`` with their docstrings."""
    lines = [
        "# Python",
        "",
        "All of these are names of `m2bridge`; `help(m2bridge.dimension)` says the same.",
        "",
    ]
    for name in sorted(m2bridge.__all__, key=str.lower):
        value = getattr(m2bridge, name)
        if name.startswith("_") or not callable(value):
            continue
        try:
            signature = str(inspect.signature(value))
        except (TypeError, ValueError):
            signature = "(...)"
        lines += [
            f"## `{name}`",
            "",
            "```text",
            f"{name}{signature if len(signature) < 300 else '(...)'}",
            "```",
            "",
        ]
        if doc := inspect.getdoc(value):
            lines += ["````text", doc, "````", ""]
    return "\n".join(lines)
