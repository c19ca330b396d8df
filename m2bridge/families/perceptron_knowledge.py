"""Knowledge about perceptrons: determinantal varieties, sums of powers, scalings of hidden neurons.

Reference: Kileel, Trager, Bruna, *On the Expressive Power of Deep Polynomial Neural Networks*, arXiv:1905.12207. Images of linear
networks are determinantal varieties.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from m2bridge.families.knowledge import Formula, Knowledge, cited
from m2bridge.families.symmetries import Label, Symmetry

if TYPE_CHECKING:
    from m2bridge.families.perceptron import Perceptron

KILEEL = "Kileel, Trager, Bruna, arXiv:1905.12207"
# Alexander and Hirschowitz: degree r, number of variables, number of summands of the exceptions with r >= 3
_DEFECTIVE = {(3, 5, 7), (4, 3, 5), (4, 4, 9), (4, 5, 14)}


def perceptron_knowledge(network: Perceptron) -> Knowledge:
    """Collect the knowledge about a perceptron; with biases or several exponents, only its symmetries."""
    symmetries = tuple(_between(network, i) for i in range(1, network.layers))
    if not isinstance(network.r, int):
        return Knowledge(symmetries=symmetries)
    return Knowledge(
        formula=dimension_formula(network),
        dimension_bound=_bound(network),
        symmetries=symmetries,
        homogeneous=True,
        perceptron=network,
    )


def determinantal(rank: int, rows: int, columns: int) -> Formula:
    """Return the dimension of the matrices of this size and of rank at most `rank`."""
    r = min(rank, rows, columns)
    return cited(r * (rows + columns - r), "Harris, Algebraic Geometry: A First Course, Proposition 12.2")


def dimension_formula(network: Perceptron) -> Formula:
    """State the dimension where it is a theorem: linear networks, one hidden layer with one output, and equal widths."""
    widths, r = network.widths, network.r
    if r == 1 or network.layers == 1:
        return determinantal(min(widths), widths[0], widths[-1])
    if network.layers == 2 and widths[-1] == 1:
        citation = f"Alexander, Hirschowitz, J. Algebraic Geom. 4 (1995); {KILEEL}, section 2"
        return cited(waring_dim(widths[0], widths[1], r), citation)
    return cited(
        _expected_dim(network),
        "Finkel, Rodriguez, Wu, Yahl, arXiv:2408.04569 (equi-width architectures)",
        ("all widths are equal and >= 2", len(set(widths)) == 1 and widths[0] >= 2),
        ("r >= 2", r >= 2),
    )


def waring_dim(variables: int, summands: int, r: int) -> int:
    """Return the dimension of the affine cone of sums of `summands` r-th powers of linear forms (r >= 2).

    Alexander and Hirschowitz: as expected but for quadrics (symmetric matrices of bounded rank) and four
    exceptions.

    >>> waring_dim(3, 2, 2), waring_dim(3, 5, 4)
    (5, 14)
    """
    if r == 2:
        rank = min(variables, summands)
        return rank * variables - comb(rank, 2)
    expected = min(variables * summands, comb(variables + r - 1, r))
    return expected - ((r, variables, summands) in _DEFECTIVE)


def _expected_dim(network: Perceptron) -> int:
    """Return the number of weights minus scalings of hidden neurons, or the ambient dimension."""
    return min(network.parameter_count - sum(network.widths[1:-1]), network.ambient_dim)


def _bound(network: Perceptron) -> Formula:
    if network.r == 1:
        return dimension_formula(network)
    return cited(_expected_dim(network), f"{KILEEL}, section 3")


def _between(network: Perceptron, i: int) -> Symmetry:
    """Return the scalings of the neurons between two layers; in linear networks all changes of basis."""
    axes: dict[str, tuple[Label, ...]] = {f"W{i}": (1, 0), f"W{i + 1}": (0, -network.exponents[i - 1])}
    axes |= {f"b{i}": (1,)} if network.bias else {}
    if network.r == 1:
        name = f"change of basis between layers {i} and {i + 1}"
        citation = "Trager, Kohn, Bruna, arXiv:1910.01671"
    else:
        name = f"scaling of the neurons of layer {i}"
        citation = (
            f"{KILEEL}, multi-homogeneity" if isinstance(network.r, int) else "homogeneity of the activation"
        )
    return Symmetry(
        name=name,
        citation=citation,
        kind="gl" if network.r == 1 else "torus",
        size=network.widths[i],
        axes=axes,
        shapes=network.parameters,
    )
