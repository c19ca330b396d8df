"""The spec of a model: fields that are arguments of a text and of a Macaulay2 partial."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Any, ClassVar

from m2bridge.errors import NotPolynomialError, SpecError, suggestion
from m2bridge.families.spec import WRITTEN, type_name, written

_RESERVED_NAMES = frozenset({"p", "kk", "R", "weights", "coordinates", "network", "rendered"})
"""Names of scripts with a fixed meaning, which a field cannot have in a partial."""
LARGEST_SIZE = 100_000  # of a width or another size in a spec


class SpecFields(ABC):
    """A frozen dataclass whose fields are the arguments of a spec string and the parameters of a Macaulay2 partial."""

    family: ClassVar[str]
    """The word before the parenthesis in the spec, e.g. ``lightning``."""
    summary: ClassVar[str]
    example: ClassVar[str]
    """A description for the list of families, and an example of a spec."""
    m2_names: ClassVar[Mapping[str, str]] = {}
    """Fields with another name in the Macaulay2 partial; the name is empty if the partial does not use the field."""
    signed: ClassVar[tuple[str, ...]] = ()
    """Integer fields that are not sizes, and may be zero or negative."""
    unwritten: ClassVar[tuple[str, ...]] = ()
    """Fields that are omitted from the spec if they have their default values."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Keep the short repr of models in families that are dataclasses."""
        super().__init_subclass__(**arguments)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign] # its own, so that the dataclass writes none

    def __post_init__(self) -> None:
        """Fill in omitted fields, repeat a single integer for each layer, and check all sizes."""
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if value is None:
                value = self.defaults.get(item.name)
            kind = type_name(item.type)
            if "tuple[int" in kind and value is not None:
                value = (value,) * self.layers if isinstance(value, int) else tuple(value)  # type: ignore[attr-defined]
            object.__setattr__(self, item.name, value)
            if kind in ("int", "tuple[int, ...]") and value is not None and item.name not in self.signed:
                self.check_sizes(item.name, value)
        self.check()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Return the values of omitted fields."""
        return {}

    def check(self) -> None:  # noqa: B027 # most families refuse nothing more
        """Refuse arguments for which there is no model."""

    def need(self, condition: bool, argument: str, reason: str) -> None:
        """Raise a SpecError with the argument and the reason unless the condition holds."""
        if not condition:
            raise SpecError(f"{self.family}: {reason}", argument=argument)

    def check_sizes(self, name: str, size: int | tuple[int, ...]) -> None:
        """Refuse sizes that are not integers from 1 to 100,000."""
        for index, value in enumerate(size if isinstance(size, tuple) else (size,)):
            argument = self.argument_name(name, index)
            integral = isinstance(value, int) and not isinstance(value, bool)
            self.need(integral, argument, f"{argument} should be an integer, not {value!r}")
            small = 1 <= value <= LARGEST_SIZE
            self.need(small, argument, f"{argument} should be between 1 and {LARGEST_SIZE}, not {value}")

    def argument_name(self, field: str, index: int = 0) -> str:
        """Return the name of a field, or of one entry of it, in the spec."""
        return WRITTEN.get(field, field)

    def check_choice(self, name: str, value: str, choices: Sequence[str]) -> None:
        """Refuse a word that is not among `choices`."""
        if value not in choices:
            hint = suggestion(str(value), choices)
            raise SpecError(f"{self.family}: {name}={value!r} is not valid; {hint}", argument=name)

    def check_exponents(self, r: int | tuple[int, ...], *exponents: int) -> None:
        """Refuse activations x^r that are of a high degree, or make the whole function so."""
        highest, shown = (r, r) if isinstance(r, int) else (max(r, default=1), list(r))
        low = highest <= 64 and prod(exponents) <= 10**6
        self.need(low, "r", f"r={shown} gives functions of too high a degree")

    @property
    def spec(self) -> str:
        """Return the canonical spec string; ``parse_spec(model.spec) == model``."""
        return written(self.family, **self.written)

    @property
    def written(self) -> dict[str, Any]:
        """Return the arguments of the spec, without those that are None, false or empty, and :attr:`unwritten` defaults."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        plain = {item.name: item.default for item in fields(self)} | dict(self.defaults)  # type: ignore[arg-type]
        return {
            WRITTEN.get(name, name): value
            for name, value in values.items()
            if value not in (None, False, ()) and not (name in self.unwritten and value == plain[name])
        }

    @property
    @abstractmethod
    def polynomial(self) -> bool:
        """Return whether Macaulay2 can compute with the model."""

    # -- the definition in Macaulay2 ---------------------------------------------------------------------

    @property
    def m2_partial(self) -> str | Path:
        """Return the partial that defines the model in Macaulay2: ``_lightning``, or the file beside the module of another
        package.
        """
        name = "_" + self._must_be_polynomial().replace("-", "_")
        module = type(self).__module__
        if module.startswith("m2bridge."):
            return name
        return Path(str(sys.modules[module].__file__)).with_name(f"{name}.m2.j2")

    def _must_be_polynomial(self) -> str:
        """Return the name of the family if Macaulay2 can compute with it."""
        if not self.polynomial:
            raise NotPolynomialError(f"{self} is not polynomial: Macaulay2 cannot compute with it")
        return self.family

    @property
    def m2_parameters(self) -> dict[str, object]:
        """Return values for the partial's parameters."""
        self._must_be_polynomial()
        values = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        named = {self.m2_names.get(name, name): value for name, value in values.items()}
        if reserved := sorted(_RESERVED_NAMES.intersection(named)):
            raise SpecError(
                f"{self.family}: the field {reserved[0]!r} has the name of a variable of all scripts; "
                "choose another name, or one for the partial in m2_names"
            )
        return {name: value for name, value in named.items() if name}
