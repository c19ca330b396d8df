"""Batch: a grid becomes points. Axes and a filter enter, assignments of values leave, counted before they are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from m2bridge.batch.expressions import Expression, parse
from m2bridge.errors import InputError, OutOfReachError, ParseError


@dataclass(frozen=True, slots=True)
class Range:
    """``first..last``, both included; the bounds are expressions in other axes."""

    first: Expression
    last: Expression

    @property
    def names(self) -> frozenset[str]:
        return self.first.names | self.last.names

    def values(self, point: dict[str, Any]) -> range:
        bounds = []
        for bound in (self.first, self.last):
            value = bound.value(point)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ParseError(
                    f"a bound of a range should be an integer, {bound.text!r} is {value!r}", column=1
                )
            bounds.append(value)
        return range(bounds[0], bounds[1] + 1)


@dataclass(frozen=True, slots=True)
class Listed:
    """``"[2,h,2]"``: one list, whose entries are expressions in other axes."""

    parts: tuple[Expression, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(part.names for part in self.parts))

    def values(self, point: dict[str, Any]) -> tuple[list[Any]]:
        return ([part.value(point) for part in self.parts],)


Computed = Range | Listed
"""An axis that may depend on other axes."""
Axis = Computed | tuple[Any, ...]
"""The values of one name: a range, one list of expressions, or values to sweep."""


def axis_of(value: Any) -> Axis:
    """How a grid reads a value: a list is swept, ``"1..d"`` is a range, ``"[2,h,2]"`` one list, anything else is one value.

    >>> axis_of([2, 3]), axis_of(2), axis_of([[3, 3], [4, 4]])
    ((2, 3), (2,), ([3, 3], [4, 4]))
    >>> axis_of("[2,h+1,2]").values({"h": 3})
    ([2, 4, 2],)
    """
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]"):
        return Listed(tuple(parse(part.strip()) for part in value.strip()[1:-1].split(",")))
    first, dots, last = value.partition("..") if isinstance(value, str) else ("", "", "")
    if not dots:
        return (value,)
    if not first.strip() or not last.strip():
        raise ParseError(f"{value.strip()[:60]!r} is not a range: write first..last, such as 1..3", column=1)
    return Range(parse(first.strip()), parse(last.strip()))


@dataclass(frozen=True, slots=True)
class Grid:
    """Named axes, ordered so that each depends on those before it, and the filter."""

    axes: dict[str, Axis]
    when: Expression | None

    @staticmethod
    def of(axes: dict[str, Axis], when: Expression | None) -> Grid:
        """Order the axes by what their ranges depend on."""
        for name, axis in axes.items():
            unknown = sorted(axis.names - set(axes)) if isinstance(axis, Computed) else []
            if unknown:
                raise InputError(
                    f"{name} depends on {', '.join(unknown)}, which this grid does not give",
                    argument=name,
                )
        ordered: dict[str, Axis] = {}
        while len(ordered) < len(axes):
            ready = [
                name
                for name, axis in axes.items()
                if name not in ordered and (not isinstance(axis, Computed) or axis.names <= set(ordered))
            ]
            if not ready:
                left = sorted(set(axes) - set(ordered))
                raise InputError(f"{', '.join(left)} depend on each other", argument=left[0])
            ordered |= {name: axes[name] for name in ready}
        return Grid(ordered, when)

    def count(self, most: int) -> int:
        """How many points there are before the filter, without making them.

        Axes that nothing depends on are multiplied; the others are walked, and the walk ends at `most` steps.

        Raises
        ------
        OutOfReachError
            There are more than `most`.
        """
        needed = {name for axis in self.axes.values() if isinstance(axis, Computed) for name in axis.names}
        walked = [
            n for n, axis in self.axes.items() if n in needed or (isinstance(axis, Computed) and axis.names)
        ]
        factor = 1
        for name, axis in self.axes.items():
            if name not in walked:
                factor *= _length(axis.values({}) if isinstance(axis, Computed) else axis)
        if factor == 0:
            return 0
        steps = total = 0

        def walk(depth: int, point: dict[str, Any]) -> None:
            nonlocal steps, total
            values = self.values(walked[depth], point)
            steps += _length(values)
            if depth == len(walked) - 1:
                total += _length(values)
            if steps > most or total * factor > most:
                raise _too_many(most)
            if depth < len(walked) - 1:
                for value in values:
                    walk(depth + 1, {**point, walked[depth]: value})

        if walked:
            walk(0, {})
        else:
            total = 1
        if total * factor > most:
            raise _too_many(most)
        return total * factor

    def values(self, name: str, point: dict[str, Any]) -> Sequence[Any]:
        axis = self.axes[name]
        return axis.values(point) if isinstance(axis, Computed) else axis

    def points(self) -> Iterator[dict[str, Any]]:
        """Every point that passes the filter, the last axis moving fastest."""
        names = list(self.axes)

        def extend(point: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
            if depth < len(names):
                for value in self.values(names[depth], point):
                    yield from extend({**point, names[depth]: value}, depth + 1)
            elif self.when is None or _true(self.when, point):
                yield point

        yield from extend({}, 0)


def _length(values: Sequence[Any]) -> int:
    """Like len, for ranges of any length."""
    return max(0, values.stop - values.start) if isinstance(values, range) else len(values)


def _too_many(most: int) -> OutOfReachError:
    return OutOfReachError(f"the grid has more than {most:,} points and was not expanded")


def _true(when: Expression, point: dict[str, Any]) -> bool:
    value = when.value(point)
    if not isinstance(value, bool):
        raise ParseError(
            f"expression {when.text!r}: expected true or false, this is {value!r}",
            column=1,
            reason="expected a condition such as a <= d",
        )
    return value
