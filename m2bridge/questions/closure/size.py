"""Dimension and degree of the image, computed on the parametrization without equations.

The rank of the parametrization's Jacobian at a point bounds the dimension from below. The degree is the number of points in which
a random linear space of complementary dimension meets the image, counted in the weights and divided by the degree of the map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence
from m2bridge.linear.modular import echelon_mod
from m2bridge.protocol import Values
from m2bridge.questions.closure.image import Matrix, Span
from m2bridge.questions.closure.stages import EMPTY, LimitStop, Report, Setting

_SHARE_FOR_DEGREE = 0.25
"""Share of the time left. Completeness may rest on the count, and what comes after it needs time too."""
_SECTION_DRAWS = 3
"""Number of random sections that are tried."""
_SMALLEST_SECTION_PRIME = 1000
"""Over a smaller field a random section is often special."""


# -- the dimension ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSize:
    """The linear span of the image over F_p and the dimension of the cone over the image.

    `cone_dim` is the largest rank over several primes, a lower bound of the dimension over QQ; `rank_over_prime` is the rank over
    the prime of the computation.
    """

    span: Span
    cone_dim: int
    rank_over_prime: int
    evidence: tuple[Evidence, ...] = ()

    @property
    def codim(self) -> int:
        """Return the codimension of the closure in its linear span."""
        return self.span.dim - self.cone_dim

    @property
    def drops(self) -> bool:
        """Return whether the rank over F_p is smaller than over QQ."""
        return self.rank_over_prime < self.cone_dim

    @property
    def dense(self) -> bool:
        """Return whether the image is dense in the whole space, which ranks modulo p show over QQ."""
        return self.codim == 0 and not self.span.linear_forms


def measure(setting: Setting, span: Span) -> ImageSize:
    """Compute the dimension of the image by ranks at random points; a formula of the literature is compared.

    Raises
    ------
    InputError
        Modulo p the span is smaller than the image over QQ.
    """
    image, prime = setting.image, setting.prime
    primes = (image.large_prime, image.second_prime, prime)
    ranks = {p: image.dim(setting.rng(1), p) for p in primes}
    best = max(primes, key=lambda p: ranks[p])  # each rank is a lower bound over QQ
    if span.dim < ranks[best]:
        raise InputError(
            f"modulo {prime} the image spans {span.dim} dimensions, over QQ it has {ranks[best]}: use another prime"
        )
    return ImageSize(
        span=span,
        cone_dim=ranks[best],
        rank_over_prime=ranks[prime],
        evidence=_dimension_evidence(setting, ranks, best),
    )


def _dimension_evidence(setting: Setting, ranks: Mapping[int, int], best: int) -> tuple[Evidence, ...]:
    exact = {"relation": ">=", "certainty": Certainty.PROVED}
    method = "rank of the parametrization's Jacobian at a random point"
    evidence = [
        setting.statement(
            "image_dim", ranks[p] - setting.image.homogenized, "modular", method, prime=p, field=over, **exact
        )
        for p, over in ((best, "QQ"), (setting.prime, f"F_{setting.prime}"))
    ]
    formula = setting.model.knowledge.formula
    if formula is not None and formula.applies and formula.value is not None:
        evidence.append(
            Evidence(
                "image_dim", formula.value, "formula", formula.citation, ancestry="literature", field="QQ"
            )
        )
    return tuple(evidence)


# -- the degree ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeCount:
    """The degree of the image, counted on the parametrization; None if it was not counted, for the reason in `report`.

    `distinct`: the number of points of the section separated by a linear form; a proof over QQ requires it.
    """

    degree: int | None = None
    distinct: int | None = None
    stop: LimitStop | None = None
    report: Report = EMPTY


def count_degree(setting: Setting, size: ImageSize, equation_degree: int | None = None) -> DegreeCount:
    """Count the degree without equations; a formula of the literature is compared, never used.

    A linear space and a point have nothing to count; a hypersurface has the degree of its equation, if that is known.
    """
    if size.codim <= 0 or size.cone_dim == 0:  # negative if the kernel contradicts the program
        return DegreeCount()
    formula = setting.model.knowledge.closure_degree
    compared: tuple[Evidence, ...] = ()
    if formula is not None and formula.value is not None:
        compared = tuple(
            Evidence("degree", formula.value, "formula", formula.citation, ancestry="literature", field=over)
            for over in ("QQ", f"F_{setting.prime}")
        )
    if equation_degree is not None:
        method = "degree of the one equation of a hypersurface"
        stated = setting.statement("degree", equation_degree, "interpolation", method)
        return DegreeCount(report=Report(evidence=(*compared, stated)))
    if setting.prime < _SMALLEST_SECTION_PRIME:
        reason = f"{setting.prime} is too small for random sections"
    else:
        values = _points_of_section(setting, size)
        if values is not None:
            return _counted(setting, values, compared)
        reason = setting.context.limit or "every random section of the parametrization was special"
    sentence = f"an independent count of the degree: {reason}"
    return DegreeCount(report=Report(evidence=compared, not_shown=(sentence,)))


def _counted(setting: Setting, values: Values, compared: tuple[Evidence, ...]) -> DegreeCount:
    degree = values["section"] // values["fiber"]
    method = "points of a random linear section of the parametrization, over the degree of the map"
    detail = {name: values.get(name) for name in ("section", "fiber", "distinct")}
    evidence = setting.statement(
        "degree", degree, "parametrization", method, seconds=values.run.seconds, detail=detail
    )
    return DegreeCount(
        degree=degree, distinct=values.get("distinct"), report=Report(evidence=(*compared, evidence))
    )


def _points_of_section(setting: Setting, size: ImageSize) -> Values | None:
    """Count the points of a random linear section of the parametrization, and of a fiber.

    The linear space contains :func:`random_section` as a hyperplane. None if Macaulay2 reached its limit or the random
    choice was special.
    """
    setting.context.report_progress("degree of the parametrization")
    image, p = setting.image, setting.prime
    count, forms = image.source.parameter_count, random_section(setting, size)[1]
    rng = np.random.default_rng(setting.context.seed + 1)
    for _ in range(_SECTION_DRAWS):
        weights = image.source.draw_weights(rng, p)
        moving = moving_weights(image.tangents_at(weights, p)[1][:count].T, p)
        if len(moving) == len(forms) - image.padded:
            break
    else:  # every point was special, or the image has a smaller dimension over F_p
        return None
    request = {
        "p": p,
        "point": [int(x) for w in weights.values() for x in w.reshape(-1)],
        "fixed": sorted(set(range(count)) - set(moving)),
        "chosen": list(size.span.basis),
        "forms": forms[: len(moving)].tolist(),
        "homogenized": image.padded,
        "wantDistinct": setting.rational,
    }
    values, _ = setting.context.run_template(
        "closure_section", request, image.source, share=_SHARE_FOR_DEGREE
    )
    section, fiber = values.get("section"), values.get("fiber")
    if not section or not fiber or section % fiber:
        return None
    return values


def random_section(setting: Setting, size: ImageSize) -> tuple[Matrix, Matrix]:
    """Return a random linear space of dimension `codim` as a graph over some coordinates; it should meet the closure in 0 only.

    A basis, one vector per column, and the linear forms that vanish on it, one per row. The coordinates stay single variables:
    equations restricted to the space stay sparser than in a random basis (5 times faster for M(4,1,1)).
    """
    dim, codim, p = size.span.dim, size.codim, setting.prime
    rng = setting.rng(6)
    order = rng.permutation(dim)
    free, bound = order[:codim], order[codim:]
    graph = rng.integers(0, p, size=(dim - codim, codim))
    basis, forms = np.zeros((dim, codim), dtype=np.int64), np.zeros((dim - codim, dim), dtype=np.int64)
    basis[free], basis[bound] = np.eye(codim, dtype=np.int64), graph
    forms[:, bound], forms[:, free] = np.eye(dim - codim, dtype=np.int64), -graph
    return basis, rng.integers(0, p, size=(dim - codim, dim - codim)) @ forms % p


def moving_weights(jacobian: Matrix, p: int) -> tuple[int, ...]:
    """Return weights whose differentials are a basis of all: with the others held at general values, the map stays dominant.

    The remaining map is finite onto a dense subset of the image. `jacobian` has one row per coordinate, at a random point over
    F_p; late weights are preferred.

    >>> moving_weights(np.array([[1, 2, 0], [2, 4, 1]]), 101)
    (1, 2)
    """
    last = jacobian.shape[1] - 1
    return tuple(sorted(last - i for i in echelon_mod(jacobian[:, ::-1], p)[1]))
