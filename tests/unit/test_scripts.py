"""Templates and values become scripts; everything undeclared, unknown or unsafe is refused before anything runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from m2bridge import scripts
from m2bridge.errors import InputError, SpecError
from m2bridge.families import Lightning
from m2bridge.families.base import NetworkModel
from m2bridge.scripts import Script, declared_model_parameters, declared_parameters, line_in_template, render

OWN = """\
-- computes nothing
n = 1;
word = "x";
rendered = false;
--% include "_params.m2.j2"
emit("matrix", {{1,2},{3,4}});
emitEnd();
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.m2.j2"
    path.write_text(OWN)
    return path


def test_names_leave_partials_out() -> None:
    names = scripts.template_names()
    assert "fiber_length" in names
    assert list(names) == sorted(names)
    assert not any(name.startswith("_") or "." in name for name in names)


@pytest.mark.parametrize(
    "name", ["no_such", "", "fiber_length.m2.j2", "../m2bridge/errors", "/etc/passwd", "."]
)
def test_unknown_template(name: str) -> None:
    with pytest.raises(InputError, match=r".*fiber_length"):
        render(name, {})


def test_unknown_template_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exist"):
        render(tmp_path / "missing.m2.j2", {})
    with pytest.raises(InputError, match="exist"):
        render(tmp_path, {})


def test_unknown_partial() -> None:
    with pytest.raises(InputError, match="'_nothing'"):
        render("fiber_length", {}, partial="_nothing")


@pytest.mark.parametrize("name", ["q", "emitted", "rendered", "D", "_x", "run", "p;q"])
def test_undeclared_parameter(name: str) -> None:
    with pytest.raises(InputError, match=r"fiber_length.m2.j2 .*dp.*places"):
        render("fiber_length", {name: 1}, partial="_lightning")


def test_unsafe_values_never_reach_a_script() -> None:
    for value in (1.5, b"x", "a\nb", "é", {"a": 1}):
        with pytest.raises(InputError):
            render("fiber_length", {"parametrization": value}, partial="_lightning")


def test_values_come_after_the_defaults_and_before_their_use() -> None:
    text = render("fiber_length", {"p": 101, "d": 3, "places": [[[1], [0]]]}, partial="_lightning").text
    default, given = text.index("\np = 32003;"), text.index("\np = 101;")
    assert default < given < text.index("\nd = 3;") < text.index("network = X ->")
    assert "\nd = 2;" not in text  # the model of a run without one
    assert "\nplaces = {{{1},{0}}};\n" in text
    assert "rendered = true;" in text
    assert "@{" not in text
    assert "--%" not in text


def test_macaulay2_braces_pass_untouched(own: Path) -> None:
    assert 'emit("matrix", {{1,2},{3,4}});' in render(own, {"n": 2}).text


def test_a_user_written_template_may_use_the_partials(own: Path) -> None:
    script = render(own, {"n": 7, "word": 'say "hi"'})
    assert script.name == "own"
    assert "n = 7;" in script.text
    assert r'word = "say \"hi\"";' in script.text
    assert "emitEnd = () ->" in script.text
    with pytest.raises(InputError, match=r"declare d\b"):
        render(own, {"d": 2})


def test_a_value_is_not_rendered_again(own: Path) -> None:
    """Text that looks like a template inside a value stays text."""
    value = "@{ assignments }@ <%% raw %%> <## x ##> --% include"
    assert f'word = "{value}";' in render(own, {"word": value}).text


def test_a_template_without_the_parameters_line(own: Path) -> None:
    own.write_text("n = 1;\n")
    with pytest.raises(InputError, match="_params"):
        render(own, {})
    own.write_text('n = 1;\n  --% include "_params.m2.j2" and more\n')
    with pytest.raises(InputError, match="_params"):
        render(own, {})


@pytest.mark.parametrize(
    "line", ["--% include 'nowhere.m2.j2'", "--% if", "x = @{ undefined }@;", "x = @{ 1/0 }@;", "<%% bad %%>"]
)
def test_a_template_that_cannot_be_rendered_is_an_input_error(own: Path, line: str) -> None:
    own.write_text(OWN + line + "\n")
    with pytest.raises(InputError, match=r"own.m2.j2"):
        render(own, {})


def test_a_template_that_is_not_text_is_an_input_error(own: Path) -> None:
    own.write_bytes(b"\xff\xfe" + OWN.encode())
    with pytest.raises(InputError, match=r"own.m2.j2"):
        render(own, {})


def test_parameters_are_names_assigned_before_the_line() -> None:
    assert declared_parameters(OWN) == {"n", "word"}
    assert declared_parameters(OWN + "later = 1;\n") == {"n", "word"}
    assert declared_parameters("  indented = 1;\n-- comment = 2;\n" + OWN) == {"n", "word"}
    assert declared_model_parameters("-- parameters: d, dp\n") == {"d", "dp"}
    assert declared_model_parameters("d = 1;\n") == frozenset()


def test_only_a_user_written_template_gets_the_default_packages(own: Path) -> None:
    own.write_text('--% include "_params.m2.j2"\n')
    assert render(own, {}).preload
    assert render(own, {}).packages == ()
    assert not render("fiber_length", {}).preload
    assert render("singular_strata", {}).packages == (
        "Saturation",
        "MinimalPrimes",
        "PrimaryDecomposition",
        "TangentCone",
    )


def test_sha256_is_of_the_text_and_stable() -> None:
    model = Lightning(d=2, dp=1, parametrization="attention")
    first, again = (render("fiber_length", model.m2_parameters, partial="_lightning") for _ in range(2))
    assert first == again
    assert first.sha256 == again.sha256 == hashlib.sha256(first.text.encode()).hexdigest()
    other = render("fiber_length", {**model.m2_parameters, "d": 3}, partial="_lightning")
    assert other.sha256 != first.sha256
    # sha256 of "abc" from FIPS 180-4's example
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert Script(name="a", text="abc").sha256 == expected


def test_the_model_declares_what_its_partial_reads() -> None:
    source = (scripts.template_directory() / "_lightning.m2.j2").read_text()
    assert set(Lightning(d=2, dp=1).m2_parameters) <= declared_model_parameters(source)


@pytest.mark.parametrize("extra", ["", "--% if true\nx = 1;\n--% endif\n"])
def test_a_line_of_the_script_is_found_in_the_template(own: Path, extra: str) -> None:
    source = OWN.replace("emit(", extra + "emit(")
    own.write_text(source)
    text = render(own, {"n": 2}).text
    lines = [line_in_template(source, text, i + 1) for i in range(text.count("\n"))]
    rendered, written = text.split("\n"), source.split("\n")
    assert all(written[k - 1] == rendered[i] for i, k in enumerate(lines) if k is not None)
    assert lines[:4] == [1, 2, 3, 4]
    assert lines[-2:] == [source.count("\n") - 1, source.count("\n")]
    inserted = rendered.index("rendered = true;")
    assert lines[inserted] is None
    assert lines[rendered.index("n = 2;")] is None


def test_a_partial_without_a_name_that_every_network_defines_is_rejected(tmp_path: Path) -> None:
    partial = tmp_path / "_gated.m2.j2"
    names = ("weightSizes", "inputSize", "degreesThatOccur", "networkAt")
    lines = [
        "-- parameters: d, p",
        *(f"{name} = {{d, 1}};" for name in names),
        'needs "./_coefficients.m2.j2";',
    ]
    for index, name in enumerate(names):
        path = tmp_path / f"_gated{index}.m2.j2"
        path.write_text("\n".join(line for line in lines if not line.startswith(name)))
        with pytest.raises(InputError, match=name):
            render("dimension", {"d": 2}, partial=path)
    partial.write_text("\n".join(lines))
    assert "networkAt" in render("dimension", {"d": 2}, partial=partial).text


def test_a_field_with_the_name_of_a_variable_of_all_scripts_is_rejected() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Powers(NetworkModel):
        family = "powers"
        title = "powers"
        parameters: ClassVar = {"W": (1, 2)}
        input_shape = (2,)
        p: int

        def network(self, weights: Any, inputs: Any) -> Any:
            return (weights["W"] @ inputs) ** self.p

    with pytest.raises(SpecError, match="'p'"):
        _ = Powers(p=3).m2_parameters
