"""Batch: a grid becomes points. Axes and a filter enter, assignments of values leave, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from m2bridge.batch.expressions import Expression, parse
from m2bridge.errors import InputError, OutOfReachError, ParseError

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one name: those `written`, or None where they are computed from the values of other `names`."""

    values: Callable[[Point], Iterable[Any]]
    names: frozenset[str] = frozenset()
    written: tuple[Any, ...] | None = None


def swept(*values: Any) -> Axis:
    """An axis of these values."""
    return Axis(lambda _: values, written=values)


def axis_of(value: Any) -> Axis:
    """How a grid reads a value: a list is swept, ``"1..d"`` is a range, ``"[2,h,2]"`` one list, anything else is one value.

    >>> axis_of([2, 3]).written, axis_of(2).written, axis_of([[3, 3], [4, 4]]).written
    ((2, 3), (2,), ([3, 3], [4, 4]))
    >>> axis_of("[2,h+1,2]").values({"h": 3}), axis_of("1..h").values({"h": 3})
    ([[2, 4, 2]], range(1, 4))
    """
    if isinstance(value, list):
        return swept(*value)
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("[") and text.endswith("]"):
        parts = [parse(part.strip()) for part in text[1:-1].split(",")]
        return Axis(lambda point: [[part.value(point) for part in parts]], _names(*parts))
    first, dots, last = text.partition("..")
    if not dots:
        return swept(value)
    if not first.strip() or not last.strip():
        raise ParseError(f"{text[:60]!r} is not a range: write first..last, such as 1..3", column=1)
    bounds = parse(first.strip()), parse(last.strip())

    def values(point: Point) -> range:
        """From the first to the last, both included."""
        least, most = (_integer(bound, point) for bound in bounds)
        return range(least, most + 1)

    return Axis(values, _names(*bounds))


def _names(*parts: Expression) -> frozenset[str]:
    return frozenset().union(*(part.names for part in parts))


def _integer(bound: Expression, point: Point) -> int:
    value = bound.value(point)
    if type(value) is not int:
        raise ParseError(f"a bound of a range should be an integer, {bound.text!r} is {value!r}", column=1)
    return value


@dataclass(frozen=True, slots=True)
class Grid:
    """Named axes, ordered so that each depends on those before it, and the filter."""

    axes: dict[str, Axis]
    when: Expression | None

    @staticmethod
    def of(axes: dict[str, Axis], when: Expression | None) -> Grid:
        """Order the axes by what they depend on."""
        ordered: dict[str, Axis] = {}
        while len(ordered) < len(axes):
            ready = {n: axis for n, axis in axes.items() if n not in ordered and axis.names <= set(ordered)}
            if not ready:
                left = sorted(set(axes) - set(ordered))
                raise InputError(f"{', '.join(left)} depend on each other", argument=left[0])
            ordered |= ready
        return Grid(ordered, when)

    @property
    def variables(self) -> frozenset[str]:
        """Names that other axes are computed from."""
        return frozenset().union(*(axis.names for axis in self.axes.values()))

    def points(self, most: int) -> Iterator[Point]:
        """Every point that passes the filter, the last axis moving fastest.

        Raises
        ------
        OutOfReachError
            There are more than `most` before the filter, as far as they were made.
        """
        points: Iterable[Point] = [{}]
        for name, axis in self.axes.items():
            points = _extended(points, name, axis, most)
        for point in points:
            keep = True if self.when is None else self.when.value(point)
            if not isinstance(keep, bool):
                raise ParseError(
                    f"expression {self.when and self.when.text!r}: expected true or false, this is {keep!r}",
                    column=1,
                    reason="expected a condition such as a <= d",
                )
            if keep:
                yield point


def _extended(points: Iterable[Point], name: str, axis: Axis, most: int) -> Iterator[Point]:
    """The points with one name more."""
    longer = ({**point, name: value} for point in points for value in axis.values(point))
    for count, point in enumerate(longer):
        if count == most:
            raise OutOfReachError(f"the grid has more than {most:,} points and was not expanded")
        yield point
