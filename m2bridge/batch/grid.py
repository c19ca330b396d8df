"""Enumerate the points of a grid, which is given by named axes and a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from m2bridge.batch.expressions import Expression, parse
from m2bridge.errors import InputError, OutOfReachError, ParseError

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one name: `constants`, or None if they are computed from the values of other `names`."""

    values: Callable[[Point], Iterable[Any]]
    names: frozenset[str] = frozenset()
    constants: tuple[Any, ...] | None = None


def axis_with(*values: Any) -> Axis:
    """Return an axis with constant values."""
    return Axis(lambda _: values, constants=values)


def axis_of(value: Any) -> Axis:
    """Convert an entry of a grid to an axis.

    A list is a list of values, ``"1..d"`` is a range, ``"[2,h,2]"`` is one value, a list; anything else is one value.

    >>> axis_of([2, 3]).constants, axis_of(2).constants, axis_of([[3, 3], [4, 4]]).constants
    ((2, 3), (2,), ([3, 3], [4, 4]))
    >>> axis_of("[2,h+1,2]").values({"h": 3}), axis_of("1..h").values({"h": 3})
    ([[2, 4, 2]], range(1, 4))
    """
    if isinstance(value, list):
        return axis_with(*value)
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("[") and text.endswith("]"):
        items = [parse(item.strip()) for item in text[1:-1].split(",")]
        return Axis(lambda point: [[item.value(point) for item in items]], _names(*items))
    first, dots, last = text.partition("..")
    if not dots:
        return axis_with(value)
    if not first.strip() or not last.strip():
        raise ParseError(f"{text[:60]!r} is not a range: write first..last, such as 1..3", column=1)
    bounds = parse(first.strip()), parse(last.strip())

    def values(point: Point) -> range:
        """Return the integers from the first bound to the last, both included."""
        least, most = (_integer(bound, point) for bound in bounds)
        return range(least, most + 1)

    return Axis(values, _names(*bounds))


def _names(*expressions: Expression) -> frozenset[str]:
    return frozenset().union(*(expression.names for expression in expressions))


def _integer(bound: Expression, point: Point) -> int:
    value = bound.value(point)
    if type(value) is not int:
        raise ParseError(f"a bound of a range must be an integer, {bound.text!r} is {value!r}", column=1)
    return value


@dataclass(frozen=True, slots=True)
class Grid:
    """Named axes, ordered so that each axis depends on earlier ones only, and the filter `when`."""

    axes: dict[str, Axis]
    when: Expression | None

    @staticmethod
    def of(axes: dict[str, Axis], when: Expression | None) -> Grid:
        """Order the axes by their dependencies. Raises InputError if these are cyclic."""
        ordered: dict[str, Axis] = {}
        while len(ordered) < len(axes):
            next_axes = {
                name: axis
                for name, axis in axes.items()
                if name not in ordered and axis.names <= set(ordered)
            }
            if not next_axes:
                cycle = sorted(set(axes) - set(ordered))
                raise InputError(f"{', '.join(cycle)} depend on each other", argument=cycle[0])
            ordered |= next_axes
        return Grid(ordered, when)

    @property
    def variables(self) -> frozenset[str]:
        """Return the names from which other axes are computed."""
        return frozenset().union(*(axis.names for axis in self.axes.values()))

    def points(self, most: int) -> Iterator[Point]:
        """Yield the points that satisfy the filter; the last axis varies fastest.

        Raises
        ------
        OutOfReachError
            The grid has more than `most` points without the filter.
        """
        points: Iterable[Point] = [{}]
        for name, axis in self.axes.items():
            points = _extend(points, name, axis, most)
        for point in points:
            condition = True if self.when is None else self.when.value(point)
            if not isinstance(condition, bool):
                raise ParseError(
                    f"expression {self.when and self.when.text!r}: expected true or false, got {condition!r}",
                    column=1,
                    reason="expected a condition such as a <= d",
                )
            if condition:
                yield point


def _extend(points: Iterable[Point], name: str, axis: Axis, most: int) -> Iterator[Point]:
    """Yield each point with each value of one more axis."""
    extended = ({**point, name: value} for point in points for value in axis.values(point))
    for count, point in enumerate(extended):
        if count == most:
            raise OutOfReachError(f"the grid has more than {most:,} points and was not expanded")
        yield point
