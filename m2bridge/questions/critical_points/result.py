"""The answer to `critical-points`: how many critical points there are, of which kind, and which of them are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from m2bridge.evidence import Agreement, weigh
from m2bridge.limits import limit_advice
from m2bridge.results import Result, register_result
from m2bridge.views import Rows, View, value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalFamily:
    """Critical points of one kind: as functions they form a set of this affine dimension and degree; dimension 0: so many points.

    `zero_loss`: whether the loss vanishes on it.
    """

    zero_loss: bool
    dim: int
    degree: int

    @property
    def numbers(self) -> list[int]:
        """Zero loss, dimension and degree, as evidence holds them."""
        return [self.zero_loss, self.dim, self.degree]

    def __str__(self) -> str:
        description = {
            0: f"{self.degree} point{'s' * (self.degree != 1)}",
            1: f"a curve of degree {self.degree}",
        }.get(self.dim, f"dimension {self.dim}, degree {self.degree}")
        return f"{description}{' with zero loss' if self.zero_loss else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumPoints:
    """Critical points of the loss restricted to the closure of a stratum of the singular locus, at general points of it.

    `dim` is its affine dimension. `count` is None when there are not only points, all of which `families` has by kind, or when a
    limit came first; `in_weights` of the points are critical for the weights, so that gradient descent can stop there.
    """

    stratum: str
    dim: int | None
    count: int | None
    in_weights: int | None = None
    zero_loss: int | None = None
    families: tuple[CriticalFamily, ...] = ()

    def __str__(self) -> str:
        text = value_text(self.count) if not self.families else " and ".join(map(str, self.families))
        text += f", {self.zero_loss} with zero loss" if self.zero_loss else ""
        more = "" if self.in_weights is None else f", {self.in_weights} of them critical in the weights"
        return text + more


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCriticalPoint:
    """A real critical point: enclosures [lower, upper] of its coordinates that are proved, as decimals; its kind and loss.

    `kind` is ``minimum``, ``saddle`` or ``maximum`` of the loss on the image, ``degenerate`` where a sign was not decided, and
    `index` the number of negative eigenvalues of the Hessian on the image.
    """

    coordinates: tuple[tuple[str, str], ...]
    loss: tuple[str, str]
    kind: str
    index: int | None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPoints(Result):
    """The critical points of a quadratic loss on the neuromanifold, over the complex numbers and over the reals.

    Attributes
    ----------
    loss: the metric or the samples; `loss_rank`: the rank of its quadric; `needed_rank`: the dimension of the functions' span.
    image_dim, coordinate_count, fiber_degree: of the image; how many points of the chart have one general function.
    ed_degree: the number of regular critical points for this metric and a random target; None for given samples or a quadric
        with a kernel.
    zero_loss: how many of finitely many regular points have zero loss.
    regular: critical points where the differential has full rank and the image is taken to be smooth; None when they are not
        finitely many.
    singular: those on known strata of the singular locus; None where no strata are known.
    spurious: functions that are critical for the weights at points where only the differential of the parametrization drops;
        None where not all components were accounted for.
    accounted: a sentence on which components of the critical points in the weights were looked at.
    positive_dimensional: families of regular critical points when there are not only points.
    real, index, real_points: for the data of `loss`: the number of real regular critical points, by kind, and where they are.
    histogram: number of real critical points -> how many of `draws` random data have so many.
    """

    ANALYSIS: ClassVar[str] = "critical-points"
    VERSION: ClassVar[int] = 1
    HEADLINE: ClassVar[tuple[str, ...]] = ("regular",)

    loss: str
    loss_rank: int
    needed_rank: int
    image_dim: int
    coordinate_count: int
    fiber_degree: int | None
    ed_degree: int | None
    regular: int | None
    zero_loss: int | None
    singular: tuple[StratumPoints, ...] | None
    spurious: int | None
    accounted: str
    positive_dimensional: tuple[CriticalFamily, ...]
    real: int | None = None
    index: Mapping[str, int] | None = None
    real_points: tuple[RealCriticalPoint, ...] = ()
    histogram: Mapping[str, int] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def headline(self) -> tuple[str, ...]:
        """Return the regular points, or their families, and the real ones where they were asked for."""
        first = "positive_dimensional" if self.positive_dimensional else "regular"
        return (first,) if self.real is None else (first, "real")

    @property
    def weighed(self) -> Agreement:
        """Return the comparison of the witnesses; families are compared by their numbers, as evidence holds them."""
        families = [f.numbers for f in self.positive_dimensional]
        answers = {"regular": self.regular, "positive_dimensional": families, "real": self.real}
        return weigh(self.evidence, {name: answers[name] for name in self.headline})

    def view(self) -> View:
        told = [e.value for e in self.evidence if e.witness == "formula" and e.value is not None]
        counted = self.regular is not None or bool(self.positive_dimensional)
        space = f"of rank {self.loss_rank} on {self.needed_rank} dimensions of functions"
        facts = [("loss", f"{self.loss}, {space}")]
        for s in self.singular or ():
            facts.append((f"on {s.stratum}{f' (dimension {s.dim})' * (s.dim is not None)}", str(s)))
        if self.spurious is not None:
            facts.append(("spurious", f"{self.spurious}, critical in the weights only"))
        if self.index is not None:
            listed = [f"{n} {_PLURAL[kind] if n != 1 else kind}" for kind, n in self.index.items()]
            facts.append(("real ones", ", ".join(listed) or "none"))
        if self.histogram is not None:
            facts.append(("real counts", ", ".join(f"{n}: {k} times" for n, k in self.histogram.items())))
        to_prove = "the same ideals over QQ (a count modulo another prime is further evidence, but no proof)"
        if not counted:
            to_prove = limit_advice(self.limit, "no method for a count is available")
        return View(
            answer=self._answer(told), decided=counted or bool(told), facts=tuple(facts), tables=_real_table(self.real_points),
            notes=tuple(f"- {remark}" for remark in self.remarks), details=(self.accounted,), to_prove=to_prove,
        )  # fmt: skip

    def _answer(self, by_formula: Sequence[Any]) -> str:
        if self.positive_dimensional:
            answer = f"the regular critical points: {' and '.join(map(str, self.positive_dimensional))}"
        elif self.regular is not None:
            answer = f"{self.regular} regular critical point{'' if self.regular == 1 else 's'} over the complex numbers"
        else:
            why = self.limit or "the chart does not meet general fibers in finitely many points"
            answer = f"regular critical points: undecided ({why})"
            if by_formula:
                answer = f"{by_formula[0]} regular critical points by Chern classes alone; they were not counted: {why}"
        zero = f", {self.zero_loss} of them with zero loss" if self.zero_loss else ""
        return answer + zero + ("" if self.real is None else f", {self.real} of them real")


_PLURAL = {"minimum": "minima", "saddle": "saddles", "maximum": "maxima", "degenerate": "degenerate"}


def _real_table(points: Sequence[RealCriticalPoint]) -> tuple[Rows, ...]:
    cells = []
    for point in sorted(points, key=lambda point: float(point.loss[0])):
        listed = [lower[:8] for lower, _ in point.coordinates[:8]] + ["..."] * (len(point.coordinates) > 8)
        cells.append((point.kind, point.loss[0][:10], ", ".join(listed)))
    columns = ("kind", "loss", "coordinates")
    return (Rows(title="real critical points", columns=columns, cells=tuple(cells)),) if cells else ()
