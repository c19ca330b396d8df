"""The library of Macaulay2 functions: its own tests, run by Macaulay2 alone, and its use in templates."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from m2bridge import protocol, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo
from tests.running import PATIENCE

DIRECTORY = scripts.template_directory()


@pytest.mark.parametrize("name", scripts.library_names())
def test_the_tests_of_the_library_pass_without_python(name: str, engine_info: EngineInfo) -> None:
    file = DIRECTORY / f"{Path(name).stem}{scripts.LIBRARY_TESTS}"
    done = subprocess.run(
        [str(engine_info.path), "--script", str(file)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "complete\n"), done.stderr


@pytest.mark.parametrize("name", scripts.library_names())
def test_every_function_is_documented_and_tested(name: str) -> None:
    text = (DIRECTORY / name).read_text()
    tests = (DIRECTORY / f"{Path(name).stem}{scripts.LIBRARY_TESTS}").read_text()
    functions = re.findall(r"^(\w+) = (?:method|\()", text, re.MULTILINE)
    assert functions
    for function in functions:
        assert re.search(rf"^-- {function}\b", text, re.MULTILINE), function
        assert function in tests, function
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", scripts.library_names())
def test_the_library_is_written_in_the_idiom_of_macaulay2(name: str) -> None:
    """Named ring maps instead of `sub`, rings by `Variables => n`, no primed names."""
    code = re.sub(r"--.*|submatrix'", "", (DIRECTORY / name).read_text())
    assert not re.search(r"\bsub(stitute)?\b|getSymbol|\w'", code)


def test_the_examples_of_the_page_run(engine_info: EngineInfo, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "macaulay2.md").read_text().partition("## Supplements")[0]
    code = "".join(re.findall(r"```macaulay2\n(.*?)```", page, re.DOTALL)).replace(
        "DIRECTORY", str(DIRECTORY)
    )
    script = tmp_path / "page.m2"
    script.write_text(f'{code}print "complete";\n')
    done = subprocess.run(
        [str(engine_info.path), "--script", str(script)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert done.stdout == "complete\n", done.stderr


def test_a_script_contains_the_functions_that_it_loads_once() -> None:
    text = scripts.render("singular_strata", {}).text
    assert text.count("genericRank = method(") == 1
    assert text.count("variableRing = method(") == 1  # images.m2 and strata.m2 load rings.m2
    assert 'needs "./' not in text


def test_a_template_of_a_user_may_load_the_library(tmp_path: Path, engine: Engine) -> None:
    file = tmp_path / "own.m2.j2"
    file.write_text(
        'rendered = false;\n--% include "_params.m2.j2"\nload "./images.m2";\n'
        'R = QQ[s,t];\nemit("h", hVector imageIdeal matrix {{s^2, s*t, t^2}});\nemitEnd();\n'
    )
    assert protocol.read(engine.run(scripts.render(file, {}))).integers("h") == (1, 1)


def test_the_command_prints_the_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engine", "library"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "images.m2").is_file()
