"""The dimension of the image of a source that is given by equations.

The source is cut into its components; the dimension of the image is the largest over them. Lower bounds are ranks at points of
every component, upper bounds are the components' dimensions. Without Macaulay2 there are only points that solving in turn
happens to meet, and then nothing is said about the components that they miss.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from m2bridge.errors import InputError, NoEngineError
from m2bridge.linear.modular import rank_mod
from m2bridge.linear.primes import MACAULAY2_PRIME, given_numbers, prime_for
from m2bridge.linear.residues import Mod
from m2bridge.models.custom import PolynomialMap
from m2bridge.questions.dimension.result import Dimension
from m2bridge.questions.kernel import Asking
from m2bridge.questions.source import Source, lost_component, rank_evidence, ranks_at_points, source_of
from m2bridge.results import Certainty, Evidence, proves, said

_DRAWS = 12


def constrained_dimension(ask: Asking, model: PolynomialMap, p: int) -> Dimension:
    """The dimension of the image: the largest over the components of the source."""
    source = _decomposed(ask, model, p)
    ask.evidence += [*_counted(model, source), *_drawn(model, p=p, seed=ask.seed)]
    ask.evidence += [] if source is None else _by_components(model, source)
    proved = [e for e in ask.evidence if e.certainty is Certainty.PROVED]
    lower = max([0, *(e.value for e in proved if e.relation == ">=")])
    upper = min(e.value for e in proved if e.relation == "<=")
    answer = max([0, *(e.value for e in ask.evidence if e.quantity == "image_dim" and e.relation == ">=")])
    parameters, fiber = _sizes(model, source, answer)
    expected = min(parameters, model.coordinate_count)
    return ask.answer(
        Dimension,
        model=model.spec,
        options={"prime": p},
        certainty=Certainty.PROVED if lower == upper else Certainty.PROBABLE,
        parameters=parameters,
        image_dim=answer,
        generic_fiber_dim=fiber,
        lower_bound=lower,
        upper_bound=upper,
        symmetry_dim=0,
        span_dim=model.coordinate_count,
        expected_dim=expected,
        defect=expected - answer,
        formula=None,
        numeric_rank=None,
        numeric=None,
        statement=_statement(source, lower=lower, upper=upper, answer=answer),
        certificate=None,
    )


def _decomposed(ask: Asking, model: PolynomialMap, p: int) -> Source | None:
    """The source by Macaulay2; None without one, or when it reached its limits."""
    if ask.refused:
        return None
    q = prime_for(given_numbers(model), chosen=None, default=min(p, MACAULAY2_PRIME))
    try:
        return source_of(model, ask, prime=q)
    except NoEngineError:
        if ask.required:
            raise
        return None


def _by_components(model: PolynomialMap, source: Source) -> list[Evidence]:
    """Upper bounds by the components' dimensions, ranks at points of each, and what contradicts the decomposition."""
    over_q = source.characteristic == 0
    sure = over_q and source.covered is True
    bound = max(min(c.dim, model.coordinate_count) for c in source.components)
    found = [
        said(
            "image_dim", bound, "components", f"dimension of the source's largest component over {source.field}",
            relation="<=", certainty=Certainty.PROVED if sure else Certainty.PROBABLE, prime=source.characteristic or None,
            detail={"dims": [c.dim for c in source.components]},
        )
    ]  # fmt: skip
    if source.covered is False:
        found += lost_component(source.field, source.characteristic)
    return found + rank_evidence(ranks_at_points(model, source))


def _counted(model: PolynomialMap, source: Source | None) -> list[Evidence]:
    """Upper bounds by counting; constraints are counted where no components are known, a proof where few are seen through."""
    size = min(model.coordinate_count, len(model.variables))
    found = [
        proves("image_dim", size, "ambient", "number of coordinates, number of variables", relation="<=")
    ]
    if source is None:
        method = "number of variables minus number of constraints"
        bound = proves("image_dim", model.parameter_dim, "parameters", method, relation="<=")
        sure = Certainty.PROVED if model.parameter_dim_proved else Certainty.PROBABLE
        found.append(replace(bound, certainty=sure))
    return found


def _drawn(model: PolynomialMap, *, p: int, seed: int) -> list[Evidence]:
    """Ranks at points that solving in turn finds, some variables being 0 at times so that several components are met.

    Where the differentials of the constraints are independent, the point lifts to characteristic zero by Hensel's lemma, and
    the rank on the tangent space is a proved lower bound. Nothing is said about components that were not met.
    """
    rng = np.random.default_rng([seed, 17])
    best: int | None = None
    for draw in range(_DRAWS):
        zero = np.flatnonzero(rng.random(len(model.variables)) < 0.4).tolist() if draw % 2 else ()
        try:
            x = model.draw_point(rng, p, zero=tuple(zero))
        except InputError:
            continue
        point = {"x": Mod(x, p)}
        normals = model.constraint_jacobian(point).values
        own = rank_mod(normals, p)
        if own < len(model.constraints):
            continue
        rank = rank_mod(np.concatenate([model.coordinate_jacobian(point).values, normals]), p) - own
        best = rank if best is None else max(best, rank)
    method = "rank at points of the source that lift to characteristic zero"
    return [] if best is None else [proves("image_dim", best, "modular", method, relation=">=", prime=p)]


def _sizes(model: PolynomialMap, source: Source | None, answer: int) -> tuple[int, int]:
    """The dimension of the source, and that of a generic fiber over a part of the image of dimension `answer`."""
    if source is None:
        return model.parameter_dim, model.parameter_dim - answer
    ranks: dict[int, int] = {}
    for point in source.points:
        if point.smooth:
            ranks[point.component] = max(ranks.get(point.component, 0), point.rank)
    largest = [c.dim for i, c in enumerate(source.components) if ranks.get(i) == answer]
    return source.dim, max(largest, default=source.dim) - answer


def _statement(source: Source | None, *, lower: int, upper: int, answer: int) -> str:
    if source is None:
        told = "The components of the source were not computed: only points that solving its equations in turn meets were seen, "
        told += "perhaps of one component only."
    else:
        unchecked = "; that these are all was not checked a second time" if source.covered is None else ""
        told = f"{source.sentence[0].upper()}{source.sentence[1:]}{unchecked}."
    if lower == upper:
        return f"The dimension is {answer}: a lower and an upper bound meet, both proved. {told}"
    rest = "probable, being the largest rank at random points of all components"
    rest = "not known to be more" if source is None else rest
    return f"The dimension is proved to lie between {lower} and {upper}; {answer} is {rest}. {told}"
