"""Polynomial perceptrons x -> W_h s(... s(W_1 x)), s(x) = x^r: statements of two papers about their dimensions.

Kileel, Trager, Bruna, *On the Expressive Power of Deep Polynomial Neural Networks* (arXiv:1905.12207), and Finkel, Rodriguez, Wu,
Yahl, *Activation degree thresholds and expressiveness of polynomial neural networks* (arXiv:2408.04569).
"""

from __future__ import annotations

from m2bridge.certainty import Certainty
from m2bridge.families import MLP, Perceptron
from m2bridge.papers.base import CheckContext, Claim, Kind, Size, Verdict, sizes
from m2bridge.papers.dimensions import ABOUT, dimension_claim
from m2bridge.questions.dimension import Dimension, dimension

PAPER = "Kileel, Trager, Bruna, arXiv:1905.12207; Finkel, Rodriguez, Wu, Yahl, arXiv:2408.04569"


def expected(model: Perceptron) -> int:
    """Return the number of weights minus one scaling for each hidden neuron, without a bound by the ambient space."""
    weights = sum(a * b for a, b in zip(model.widths, model.widths[1:], strict=False))
    return weights - sum(model.widths[1:-1])


def filling(model: Perceptron) -> int:
    """Return the dimension of the ambient space: the number of coefficients of the outputs."""
    return model.coordinate_count


def check_recursion(size: Size, context: CheckContext) -> Verdict:
    """Check dim V_(d_0..d_h) <= dim V_(d_0..d_k) + dim V_(d_k..d_h) - d_k for every hidden layer k."""
    widths = tuple(size["widths"])

    def answered(sub_widths: tuple[int, ...]) -> Dimension:
        return context.once(dimension, MLP(widths=sub_widths, r=size["r"]))

    network = answered(widths)
    for k in range(1, len(widths) - 1):
        first, last = answered(widths[: k + 1]), answered(widths[k:])
        bound = first.upper_bound + last.upper_bound - widths[k]
        computed = {"image_dim": network.image_dim, "bound": bound, "layer": k}
        if network.lower_bound > bound:
            reason = f"dimension at least {network.lower_bound}, bound {bound}"
            return Verdict.fails(Certainty.PROVED, computed, reason, **computed)
        if network.upper_bound > first.lower_bound + last.lower_bound - widths[k]:
            return Verdict.out_of_reach("the dimensions are not proved")
    reason = f"dimension {network.image_dim}, bound {bound} at the last hidden layer"
    return Verdict.holds(Certainty.PROVED, reason, **computed)


_NAMES = "widths r"
_WITNESSES = {
    "program": ("exact rank of the forward pass's Jacobian (lower bound)", "float64 singular values"),
    "construction": ("scalings of neurons, ambient space, flattenings (upper bounds)",),
    "template": ("Macaulay2's rank of the Jacobian",),
}
_EXPECTED = dimension_claim(
    MLP, expected,
    id="ktb-high-degree",
    number="High activation degrees (Kileel, Trager, Bruna, Theorem 14)",
    statement="For fixed widths, none of the hidden ones one, and r large enough, the dimension is that of all weights up to one scaling for each "
    "hidden neuron: d_h + sum over i of d_i (d_(i-1) - 1). (The statement gives no threshold; the rows show degrees where it holds.)",
    checked="the printed number against a dimension proved from both sides, at degrees that are large for the widths",
    witnesses=_WITNESSES,
    sizes=sizes(_NAMES, ((2, 2, 1), 5), ((2, 3, 1), 6), ((3, 2, 2), 4), ((2, 3, 2), 6), ((2, 2, 2, 1), 4)),
)  # fmt: skip
_FILLING = sizes(_NAMES, ((2, 3, 1), 2), ((2, 2, 1), 2), ((2, 3, 1), 4), ((2, 4, 2), 2), ((2, 2, 3, 1), 2))
_FILLS = dimension_claim(
    MLP, filling,
    id="filling",
    number="Filling architectures",
    statement="Small architectures that fill their ambient space, and one that does not: does the network fill its space?",
    checked="whether the dimension is the number of coefficients",
    witnesses=_WITNESSES,
    sizes=_FILLING,
    quick=_FILLING[:2],
    kind=Kind.PROBE,
)  # fmt: skip
CLAIMS = (
    Claim(
        id="ktb-recursive-bound",
        number="Recursive bound (Kileel, Trager, Bruna)",
        statement="dim V(d_0, ..., d_h) <= dim V(d_0, ..., d_k) + dim V(d_k, ..., d_h) - d_k for every 0 < k < h.",
        checked="all dimensions, proved from both sides, and the inequality for every hidden layer",
        witnesses=_WITNESSES,
        about=ABOUT,
        sizes=sizes(_NAMES, ((2, 2, 2, 1), 2), ((2, 3, 2, 1), 2), ((3, 2, 2, 2), 2), ((2, 2, 2, 2, 2), 2)),
        run=check_recursion,
    ),
    _EXPECTED,
    _EXPECTED.also(
        id="ktb-low-degree",
        number="The same number at low degrees",
        statement="Is r already large enough at r = 2, 3, 4? Where the ambient space is too small, or quartics are defective, it is not.",
        checked="the same number, where the theorem does not apply",
        sizes=sizes(_NAMES, ((2, 2, 1), 2), ((2, 3, 1), 3), ((3, 3, 1), 2), ((3, 5, 1), 4)),
        kind=Kind.PROBE,
    ),
    _FILLS.also(
        id="alexander-hirschowitz",
        number="One hidden layer, the defective cases (Alexander, Hirschowitz; Kileel, Trager, Bruna, section 2)",
        statement="One hidden layer with one output computes sums of d_1 powers of linear forms. Where the count of weights suffices to fill the "
        "space of forms, it is filled but for four exceptions, and there one dimension is missing: does the network fill its space?",
        checked="whether the dimension is the number of coefficients: false at the four exceptions",
        sizes=sizes(_NAMES, ((3, 5, 1), 4), ((4, 9, 1), 4), ((5, 7, 1), 3), ((5, 14, 1), 4)),
    ),
    _FILLS,
    _EXPECTED.also(
        id="frwy-equal-widths",
        number="Equal widths (Finkel, Rodriguez, Wu, Yahl)",
        statement="With all widths equal to d >= 2 the dimension is the expected one, h (d^2 - d) + d, for every r >= 2.",
        checked="the printed number against a dimension proved from both sides",
        sizes=sizes(
            _NAMES, ((2, 2, 2), 2), ((2, 2, 2), 3), ((3, 3, 3), 2), ((2, 2, 2, 2), 2), ((3, 3, 3, 3), 2), ((4, 4, 4), 2)
        ),
    ),
)  # fmt: skip
