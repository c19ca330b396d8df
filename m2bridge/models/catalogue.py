"""Models stage: the families by name, and the one reader of spec strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from m2bridge.errors import SpecError
from m2bridge.models.base import Model
from m2bridge.models.lightning import Lightning
from m2bridge.models.spec import Arguments, read, suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of models: its name in specs, what it is, and an example of each spelling."""

    name: str
    summary: str
    example: str
    build: Callable[[Arguments], Model]


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="lightning",
            summary="one layer of lightning self-attention, V X X^T A X",
            example="lightning(d=2,dp=1,a=2,t=2)",
            build=Lightning.from_arguments,
        ),
    )
}


def parse_spec(text: str) -> Model:
    """The model that a spec string names.

    >>> parse_spec("lightning:d=2,dp=1") == parse_spec("lightning(d=2, dp=1, a=2, t=2)")
    True

    Raises
    ------
    SpecError
        The text cannot be read, the family is not known, or the sizes are impossible; one line, with the
        position.
    """
    arguments = read(text)
    family = FAMILIES.get(arguments.family)
    if family is None:
        known = suggestion(arguments.family, tuple(FAMILIES))
        raise SpecError(
            f"there is no family {arguments.family!r} (position 1); {known}", text=text, position=1
        )
    try:
        return family.build(arguments)
    except SpecError as error:
        argument = error.fields.get("argument")
        if argument is None:
            raise
        arguments.fail(error.message, argument)
