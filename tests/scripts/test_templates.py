"""Templates under the real Macaulay2: as they stand, and rendered by hand, they say what a run says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from m2bridge import protocol, scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo, ProcessEngine, find_engine
from m2bridge.report.readable_script import WIDTH, readable
from m2bridge.scripts import Script, render
from tests.marking import slow_except
from tests.running import PATIENCE

FILES = sorted(scripts.template_directory().glob("*.m2.j2"))
QUESTIONS = [path for path in FILES if not path.name.startswith("_")]

INJECTIONS = [
    '"', "\\", '\\"', '"; run "touch escaped"; "', '" | get "!touch escaped" | "', '"; openOut "escaped"; "', "-- comment",
    "-* block *-", "///", '///; run "touch escaped"; ///', "\\n", "\\u0022", "\\x22", "\\042", "@{ x }@", "{{1,2}}", "'", " ",
    '\\\\"; run "touch escaped"; --',
]  # fmt: skip


def by_hand(path: Path, directory: Path) -> list[str]:
    """Tagged lines of ``M2 --script FILE``, run without any of our own machinery."""
    binary = find_engine().path
    assert binary is not None
    done = subprocess.run(
        [str(binary), "--script", str(path)], cwd=directory, capture_output=True, text=True, timeout=PATIENCE, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tagged(done.stdout)


def tagged(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("@m2b")]


@pytest.mark.parametrize(
    ("name", "line"), [("fiber_length", "@m2b fiber_0 [1,2]"), ("dimension", "@m2b jacobian_rank 5")]
)
def test_the_raw_template_equals_the_one_rendered_with_defaults(engine: Engine, name: str, line: str) -> None:
    directory = scripts.template_directory()
    raw = by_hand(directory / f"{name}.m2.j2", directory)
    rendered = render(name, {})
    assert raw == tagged(engine.run(rendered).stdout)
    assert raw[-1].startswith("@m2b-end ")
    assert line in raw


@pytest.mark.parametrize("sizes", [(2, 1, 2), pytest.param((2, 2, 1), marks=pytest.mark.slow)])
def test_the_rendered_script_run_by_hand_gives_the_same_values(
    tmp_path: Path, engine: Engine, capsys: pytest.CaptureFixture[str], sizes: tuple[int, int, int]
) -> None:
    d, dp, a = sizes
    sizes_given = ["--d", str(d), "--dp", str(dp), "--a", str(a)]
    assert main(["singular-locus", *sizes_given, "--seed", "3", "--script"]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "script.m2"
    path.write_text(text)
    lines = by_hand(path, tmp_path)
    assert lines == tagged(engine.run(Script(name="script", text=text)).stdout)
    assert lines[-1] == f"@m2b-end {sum(line.startswith('@m2b ') for line in lines)}"
    assert [p.name for p in tmp_path.iterdir()] == ["script.m2"]


def test_strings_arrive_in_macaulay2_as_they_left(tmp_path: Path, engine: Engine) -> None:
    """The injection corpus through literals, Macaulay2 and back: the same text, and nothing else happened."""
    template = tmp_path / "echo.m2.j2"
    template.write_text(
        'words = {};\nrendered = false;\n--% include "_params.m2.j2"\n'
        'emit("words", words);\nemit("lengths", apply(words, w -> #w));\nemitEnd();\n'
    )
    values = protocol.read(engine.run(render(template, {"words": INJECTIONS})))
    assert values.strings("words") == tuple(INJECTIONS)
    assert values.integers("lengths") == tuple(map(len, INJECTIONS))
    assert not (tmp_path / "escaped").exists()
    assert not Path("escaped").exists()


def test_every_kind_of_value_is_emitted_exactly(engine: Engine) -> None:
    """Integers, booleans, null and lists as themselves; rationals, residues and polynomials as text, never as a float."""
    partial = (scripts.template_directory() / "_emit.m2.j2").read_text()
    text = (
        partial
        + """
R = ZZ/7[x,y];
emit("big", 2^200);
emit("negative", -3);
emit("flags", {true, false, null});
emit("nested", {{1,2},{}, {{3}}});
emit("sequence", (1, 2));
emit("third", 1/3);
emit("residue", 10_(ZZ/7));
emit("polynomial", x^2-3*y);
emit("quoted", "say \\"a\\\\b\\"");
emit("lines", "two\\nlines");
emit("real", 0.5);
emitEnd();
"""
    )
    values = protocol.read(engine.run(Script(name="emit", text=text)))
    assert dict(values) == {
        "big": 2**200,
        "negative": -3,
        "flags": [True, False, None],
        "nested": [[1, 2], [], [[3]]],
        "sequence": [1, 2],
        "third": "1/3",
        "residue": "3",
        "polynomial": "x^2-3*y",
        "quoted": 'say "a\\b"',
        "lines": "two lines",
        "real": ".5",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_template_begins_by_saying_what_it_is(path: Path) -> None:
    assert path.name in ("_params.m2.j2",) or path.read_text().startswith("-- ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_template_never_sends_inexact_numbers_or_touches_the_machine(path: Path) -> None:
    code = re.sub(r"--.*", "", path.read_text())
    for word in (
        "toJSON",
        "random",
        "openOut",
        r"\brun\b",
        r'get\s*"!',
        r"\bRR\b",
        "numeric",
        "setRandomSeed",
    ):
        assert not re.search(word, code), f"{word} in {path.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_template_is_written_in_the_idiom_of_macaulay2(path: Path) -> None:
    """Named ring maps instead of `sub`, rings by `Variables => n`, no primed names, no wide lines."""
    source = path.read_text()
    assert not re.search(r"\bsub(stitute)?\b|getSymbol|decompose\b|\w'", re.sub(r"--.*", "", source))
    assert max(map(len, source.splitlines())) <= WIDTH


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: path.name)
def test_a_question_declares_parameters_and_ends_with_the_last_word(path: Path) -> None:
    source = path.read_text()
    assert scripts.declared_parameters(source)
    assert source.rstrip().endswith("emitEnd();")
    assert "@{" not in source  # only partials hold values


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_jinja_syntax_is_only_in_comments_of_macaulay2(path: Path) -> None:
    """Line statements are comments to Macaulay2, and only `_params` holds a value: the file can be read as Macaulay2."""
    source = path.read_text()
    if path.name != "_params.m2.j2":
        assert not re.search(r"@\{|\}@|<%%|%%>|<##|##>", source)
        assert all(
            re.fullmatch(r'--% include "?[\w.]+"?', line)
            for line in source.splitlines()
            if line.startswith("--%")
        )


@pytest.mark.parametrize(
    "name", slow_except({"boundary", "closure_unmixed", "ideal", "dimension"}, scripts.template_names())
)
def test_a_printed_script_computes_the_same(name: str, engine_info: EngineInfo) -> None:
    """The layout for readers changes no result, on every Macaulay2."""
    rendered = render(name, {})
    printed = readable(rendered.text)
    with ProcessEngine(engine_info) as fresh:
        one, other = (
            fresh.run(Script(name=name, text=text, preload=False)) for text in (rendered.text, printed)
        )
    assert tagged(one.stdout) == tagged(other.stdout)
    assert tagged(one.stdout)[-1].startswith("@m2b-end")
    code = [line for line in printed.split("\n") if len(line) > WIDTH]
    assert not code
    assert "rendered" not in printed


def test_long_lines_are_broken_inside_brackets_only() -> None:
    values = ", ".join(str(number) for number in range(10**6, 10**6 + 40))
    text = f'words = {{"a, b -- c", {values}}};   -- numbers\nshort = 1; -- stays\n'
    lines = readable(text).split("\n")
    assert lines[0] == "-- numbers"
    assert lines[1].startswith('words = {"a, b -- c", 1000000,')
    assert max(map(len, lines)) <= WIDTH
    assert "".join(lines[1:-2]).replace(" ", "") == text.split("   --", maxsplit=1)[0].replace(" ", "")
    assert lines[-2] == "short = 1; -- stays"


def test_values_are_printed_in_place_of_the_defaults() -> None:
    text = "n = 2;   -- size\nm = {1, 2};\nrendered = true;\nn = 5;\nd = 3;\nf(n, m, d);\n"
    assert readable(text) == "n = 5;   -- size\nm = {1, 2};\nd = 3;\nf(n, m, d);\n"
    dependent = "n = 2;\nm = n + 1;\nrendered = true;\nn = 5;\nf(n, m);\n"
    assert readable(dependent) == dependent.replace("rendered = true;\n", "")


def test_a_switch_that_is_used_otherwise_stays() -> None:
    text = "rendered = true;\nif not rendered then f();\nif rendered then (\n    g());\n"
    assert readable(text) == text
