"""The public names of m2bridge are exactly the documented ones."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import m2bridge
from tests.running import PATIENCE, run_command


def test_all_names_resolve_and_are_sorted_once() -> None:
    assert len(set(m2bridge.__all__)) == len(m2bridge.__all__)
    for name in m2bridge.__all__:
        assert hasattr(m2bridge, name), name


def test_every_public_name_is_in_all() -> None:
    tools = {"Any", "import_module"}
    offered = {
        name
        for name, value in vars(m2bridge).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert offered - tools <= set(m2bridge.__all__)


def test_type_checkers_find_the_same_names() -> None:
    stub = Path(m2bridge.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    declared = re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)
    assert len(declared) == stub.count("import ")  # no line is written in another form
    assert {name: module for module, name in declared} == m2bridge._MODULE_OF | {
        "__version__": "m2bridge._version"
    }


def test_names_that_do_not_exist_cannot_be_reached() -> None:
    with pytest.raises(AttributeError, match="'singular_lotus'"):
        m2bridge.singular_lotus  # noqa: B018


def test_importing_the_package_or_the_command_line_loads_no_mathematics() -> None:
    """What is loaded is loaded before the command is known; NumPy alone takes a tenth of a second and starts threads."""
    code = "import sys, m2bridge, m2bridge.cli; print([m for m in ('numpy', 'sympy', 'flint', 'jinja2') if m in sys.modules])"
    done = run_command([sys.executable, "-c", code])
    assert done.stdout == "[]\n"


def test_the_names_that_users_rely_on() -> None:
    assert {
        "Certainty",
        "Evidence",
        "Lightning",
        "Limits",
        "Model",
        "Result",
        "SingularLocus",
        "__version__",
        "load_record",
        "open_engine",
        "parse_spec",
        "save_record",
        "singular_locus",
    } <= set(m2bridge.__all__)


def test_a_function_is_not_hidden_by_the_module_of_the_same_name() -> None:
    """``m2bridge.singular_locus`` is the question, also after its module was imported by another path."""
    import m2bridge.questions.singular_locus

    assert callable(m2bridge.singular_locus)


@pytest.mark.parametrize("name", m2bridge.__all__)
def test_every_name_has_a_docstring(name: str) -> None:
    value = getattr(m2bridge, name)
    if inspect.isclass(value) or callable(value):
        assert inspect.getdoc(value)


def test_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", m2bridge.__version__)


def test_importing_prints_nothing_and_makes_no_files(tmp_path: object) -> None:
    """In a fresh interpreter, so that what other tests imported does not matter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import m2bridge"],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())  # type: ignore[attr-defined]
