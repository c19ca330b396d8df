"""The error tree is the one its docstring draws; errors carry fields and survive pickling."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from m2bridge import errors
from m2bridge.engine.base import EngineInfo, Outcome, Run
from m2bridge.errors import EngineError, M2BridgeError
from m2bridge.limits import Limits
from m2bridge.scripts import Script

DRAWN = re.compile(r"^ {4}(?P<stem>[│├└─ ]*)(?P<name>[A-Z]\w+Error)\b(?:\s+exit (?P<code>\d+))?")


def drawn_tree() -> dict[str, tuple[str | None, int]]:
    """Class name -> (parent, exit code), read off the drawing; an exit code that is not drawn is inherited."""
    tree: dict[str, tuple[str | None, int]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if (match := DRAWN.match(line)) is None:
            continue
        depth = len(match["stem"]) // 4
        del path[depth:]
        parent = path[-1] if path else None
        code = int(match["code"]) if match["code"] else tree[str(parent)][1]
        tree[match["name"]] = (parent, code)
        path.append(match["name"])
    return tree


TREE = drawn_tree()
CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
}


def a_run() -> Run:
    return Run(
        script=Script(name="s", text="1\n"),
        engine=EngineInfo(version="1.21", origin="path"),
        outcome=Outcome.CRASHED,
        stdout="@m2b x 1\n",
        stderr="",
        seconds=0.5,
        limits=Limits(),
        signal=11,
    )


def test_every_class_is_drawn_and_every_drawing_is_a_class() -> None:
    assert set(TREE) == set(CLASSES)
    assert len(TREE) >= 16


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_has_the_parent_and_the_exit_code_of_the_drawing(name: str) -> None:
    parent, code = TREE[name]
    assert CLASSES[name].__bases__ == ((Exception,) if parent is None else (CLASSES[parent],))
    assert CLASSES[name].exit_code == code


def test_exit_codes_are_the_documented_ones() -> None:
    """0 answered, 6 `verify`, 130 interrupted belong to the command line, not to errors."""
    assert {kind.exit_code for kind in CLASSES.values()} == {1, 2, 3, 4, 5, 7}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_error_survives_pickling_with_its_fields(name: str) -> None:
    kind = CLASSES[name]
    error = kind("what was wrong", run=a_run(), seconds=1.5, conflicts=("x",))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.message, again.fields) == ("what was wrong", "what was wrong", error.fields)
    assert again.run == a_run()
    assert again.seconds == 1.5
    assert again.conflicts == ("x",)
    assert again.exit_code == kind.exit_code


def test_a_field_that_was_not_given_is_an_attribute_error() -> None:
    error = EngineError("no run")
    assert not hasattr(error, "run")
    with pytest.raises(AttributeError, match="column"):
        _ = error.column
    assert not hasattr(M2BridgeError.__new__(M2BridgeError), "anything")  # no recursion before __init__


def test_every_class_has_a_docstring() -> None:
    assert all(kind.__doc__ for kind in CLASSES.values())
