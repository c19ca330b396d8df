"""The library of Macaulay2 functions: its own tests, run by Macaulay2 alone, and its use in templates."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from m2bridge import protocol, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo
from tests.running import PATIENCE

DIRECTORY = scripts.template_directory()
FILES = sorted((DIRECTORY / scripts.LIBRARY).glob("*.m2"))
PACKAGE = (DIRECTORY / f"{scripts.LIBRARY}.m2").read_text()


def stdout_of(engine_info: EngineInfo, directory: Path, code: str) -> str:
    """Run lines of Macaulay2 that use the package, without m2bridge; its own directory is `directory`."""
    script = directory / "script.m2"
    script.write_text(f'path = prepend("{DIRECTORY}/", path);\n{code}\nprint "complete";\n')
    done = subprocess.run(
        [str(engine_info.path), "--script", str(script)], capture_output=True, text=True, timeout=PATIENCE, check=False,
        cwd=directory, env={**os.environ, "HOME": str(directory)}, stdin=subprocess.DEVNULL
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_tests_of_the_package_pass_without_python(engine_info: EngineInfo, tmp_path: Path) -> None:
    output = stdout_of(engine_info, tmp_path, f'check "{scripts.LIBRARY}";')
    assert (
        f'check({len(FILES) - 2}, "{scripts.LIBRARY}")' in output
    )  # one for each file but all.m2, from 0 on
    assert "complete" in output


@pytest.mark.slow
def test_the_documentation_of_the_package_is_made_without_warnings(
    engine_info: EngineInfo, tmp_path: Path
) -> None:
    prefix = tmp_path / "installed"
    made = f'installPackage("{scripts.LIBRARY}", InstallPrefix => "{prefix}/");'
    output = stdout_of(engine_info, tmp_path, made)
    assert not re.search("warning|error", output, re.IGNORECASE), output
    assert (prefix / "share" / "Macaulay2" / scripts.LIBRARY / "rings.m2").is_file()


def test_everything_that_is_exported_is_documented_with_an_example() -> None:
    documentation = "".join(
        path.read_text() for path in (DIRECTORY / scripts.LIBRARY / "documentation").glob("*.m2")
    )
    nodes = re.findall(r"^doc ///\n(.*?)^///", documentation, re.MULTILINE | re.DOTALL)
    keys = [line.strip() for node in nodes for line in node.partition("  Headline")[0].splitlines()]
    exported = re.findall(r'"(\w+)"', PACKAGE.partition("export {")[2].partition("}")[0])
    assert sorted(set(exported) - set(keys)) == []
    assert all("    Example\n" in node for node in nodes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_function_has_a_comment_and_a_test(path: Path) -> None:
    text = path.read_text()
    functions = re.findall(r"^(\w+) = (?:method|\()", text, re.MULTILINE)
    if path.stem == "all":
        documented = PACKAGE.rpartition("scan({")[2].partition("}")[0]
        assert re.findall(r'"./([a-z-]+).m2"', text) == re.findall(r'"([a-z-]+)"', documented)
        return
    assert functions
    tests = (path.parent / "documentation" / path.name).read_text().partition("TEST ///")[2]
    for function in functions:
        assert re.search(rf"^-- {function}\b", text, re.MULTILINE), function
        assert function in tests, function
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_library_is_written_in_the_idiom_of_macaulay2(path: Path) -> None:
    """Named ring maps instead of `sub`, rings by `Variables => n`, no primed names."""
    code = re.sub(r"--.*|submatrix'", "", path.read_text())
    assert not re.search(r"\bsub(stitute)?\b|getSymbol|\w'", code)


def test_the_examples_of_the_page_run(engine_info: EngineInfo, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "macaulay2.md").read_text().partition("## Supplements")[0]
    code = "".join(re.findall(r"```macaulay2\n(.*?)```", page, re.DOTALL)).replace(
        "DIRECTORY", str(DIRECTORY)
    )
    assert stdout_of(engine_info, tmp_path, code) == "complete\n"


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
    assert (Path(capsys.readouterr().out.strip()) / f"{scripts.LIBRARY}.m2").is_file()
