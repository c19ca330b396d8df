"""Spec strings: one grammar, round trips, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from m2bridge.errors import InputError, SpecError
from m2bridge.families import FAMILIES, DeepLightning, Lightning, Softmax, parse_spec

SPECS = [family.example for family in FAMILIES.values() if family.name not in ("file", "torch", "python")] + [
    "lightning(d=3,dp=2,a=2,t=2,parametrization=attention,coordinates=full)",
    "lightning(d=2,dp=1,t=1)",
    "deep-lightning(d=[3,3,3],a=[2,2],t=3,heads=2)",
    "deep-lightning(d=[2,2,2],a=[2,2],t=2,skip=true)",
    "deep-lightning(d=[2,2,2],a=[2,1],t=2,heads=[2,1],parametrization=attention)",
    "deep-lightning(d=[2,2,2],t=2,parametrization=virtual)",
    "multi-head(d=2,dp=2,heads=2,coordinates=full)",
    "softmax(d=[3,2],a=[2],t=2,parametrization=attention)",
    "convolution(filters=[3,2],strides=[2,1],r=3)",
    "map:x_(0,1),y->x_(0,1)^2-1/2*y;0",
]


@pytest.mark.parametrize("text", SPECS)
def test_specs_round_trip(text: str) -> None:
    model = parse_spec(text)
    assert parse_spec(model.spec) == model
    assert hash(parse_spec(model.spec)) == hash(model)
    assert model.spec.startswith(
        text.partition("(")[0]
        .partition(":")[0]
        .replace("multi-head", "deep-lightning")
        .replace("skip-lightning", "deep-lightning")
    )
    assert "\n" not in model.title


@pytest.mark.parametrize(
    ("shell", "quoted"),
    [
        ("lightning:d=2,dp=1,a=2,t=2", "lightning(d=2,dp=1,a=2,t=2)"),
        ("mlp:widths=2-3-2,r=2", "mlp(widths=[2,3,2],r=2)"),
        ("deep-lightning:d=3-3-3,a=2", "deep-lightning(d=[3,3,3],a=[2,2],t=3)"),
        ("softmax:d=3-3-3,a=2-2", "softmax(d=[3,3,3],a=[2,2],t=3)"),
        (" lightning ( d = 2 , dp = 1 ) ", "lightning(d=2,dp=1,a=2,t=2)"),
        ("multi-head:d=3,dp=3,a=3,heads=2", "deep-lightning(d=[3,3],a=[3],t=2,heads=2)"),
        ("skip-lightning:d=2-2-2,t=2", "deep-lightning(d=[2,2,2],a=[2,2],t=2,skip=true)"),
    ],
)
def test_shell_spelling_and_short_names(shell: str, quoted: str) -> None:
    assert parse_spec(shell).spec == quoted
    assert parse_spec(shell) == parse_spec(quoted)


def test_defaults() -> None:
    assert parse_spec("lightning(d=3,dp=1)") == Lightning(d=3, dp=1, a=3, t=2, coordinate_system="segre")
    deep = parse_spec("deep-lightning(d=[3,2,4])")
    assert deep == DeepLightning(d=(3, 2, 4), a=(3, 2), t=3, heads=(1, 1), coordinate_system="full")
    assert parse_spec("softmax(d=[2,2])") == Softmax(d=(2, 2), a=(2,), t=3)


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("lightnig(d=2,dp=1)", "lightning", 1),
        ("lightning(d=2)", "dp=", 1),
        ("lightning(d=0,dp=1)", "between 1 and", 11),
        ("lightning(d=2,dp=-1)", "between 1 and", 15),
        ("lightning(d=2,dd=1)", "'dd'", 15),
        ("lightning(d=2,dp=[1])", "integer", 15),
        ("lightning(d=2,dp=1", "expected ')'", 19),
        ("lightning(d=2,dp=1))", "unexpected ')'", 20),
        ("lightning(d=2,d=1)", "twice", 16),
        ("lightning(d=2,dp=)", "value", 18),
        ("lightning(d=2,,dp=1)", "name", 15),
        ("lightning(d=2,dp=1,t=1,coordinates=segre)", "t >= 2", 24),
        ("lightning(d=2,dp=1,parametrization=attentoin)", "attention", 20),
        ("lightning(d=2,dp=1,t=99999999999999999999999)", "long", 40),
        ("lightning(d=1000000000,dp=1)", "100000", 11),
        ("deep-lightning(d=3)", "list", 16),
        ("deep-lightning(d=[3])", "layer", 16),
        ("deep-lightning(d=[3,3,3],a=[2])", "1 entries", 26),
        ("deep-lightning(d=[2,2],heads=2,parametrization=virtual)", "virtual", 32),
        ("deep-lightning(d=[2,2,2],coordinates=segre)", "layer", 26),
        ("skip-lightning(d=[2,3])", "widths", 16),
        ("softmax(d=[2,2],t=1/2)", "expected ')'", 20),
        ("softmax(d=[2,2],heads=2)", "'heads'", 17),
        ("mlp(widths=[2,-3])", "between 1 and", 5),
        ("mlp(widths=[2,3,2],r=99)", "degree", 20),
        ("convolution(filters=[2,2],strides=[1])", "1 strides", 27),
        ("linear(widths=[2,x])", "integer", 18),
        ("linear", "widths=", 1),
        ("traced(net=1)", "'traced'", 1),
        ("file", "file:my_map.toml", 1),
        ("map:s", "expected '->'", 5),
        ("", "family", 1),
        ("lightning(d=2,dp=1,a=`ls`)", "value", 22),
    ],
)
def test_errors_are_one_line_and_name_the_place(text: str, message: str, position: int) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.position == position


def test_an_inline_program_is_parsed_strictly() -> None:
    text = "program:%0 = weight W [2,2];%1 = input x [2];%2 = einsum ab,b->a %0 %1;output y %2"
    assert parse_spec(text).spec == text
    for bad in (
        "program:nonsense",
        "program:%0 = weight W [2,2];output y %1",
        text + ";",
        text.replace("%1;output", "%1 ;output"),
    ):
        with pytest.raises(InputError) as caught:
            parse_spec(bad)
        assert "\n" not in str(caught.value)


def test_strange_characters_and_long_specs_are_refused() -> None:
    with pytest.raises(SpecError, match="position 13"):
        parse_spec("lightning(d=\n2)")
    with pytest.raises(SpecError, match="characters"):
        parse_spec("linear(widths=[" + "1," * 2000 + "1])")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file"):
        parse_spec(f"file:{tmp_path / 'missing.toml'}")


def test_python_arguments_are_checked_too() -> None:
    with pytest.raises(SpecError, match="t >= 2"):
        Lightning(d=2, dp=1, t=1, coordinate_system="segre")
    with pytest.raises(SpecError, match=r"d .*integer"):
        Lightning(d=2.0, dp=1)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="weights"):
        Lightning(d=2, dp=1, parametrization="weight")
