"""Knowledge about a model in addition to its definition: data with citations.

A formula of the literature is compared with the computed answer, or used in an answer as a named theorem. Symmetries are
verified at random points before a bound uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from m2bridge.families.symmetries import SearchedSymmetries, Symmetry
from m2bridge.programs.points import NOTHING_HELD, Held

if TYPE_CHECKING:
    from m2bridge.families.perceptron import Perceptron
    from m2bridge.families.self_attention import Attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A number from the literature, with its hypotheses evaluated for one model.

    `value` is None when a hypothesis fails: outside its hypotheses a formula does not apply. `argument` names the method if the
    proof is given beside the code, so that the number does not depend on the literature.
    """

    value: int | None
    citation: str
    hypotheses: tuple[tuple[str, bool], ...]
    argument: str | None = None

    @property
    def applies(self) -> bool:
        return all(holds for _, holds in self.hypotheses)


def cited(value: int, citation: str, *hypotheses: tuple[str, bool], argument: str | None = None) -> Formula:
    """Build a formula; its value is None if a hypothesis fails.

    >>> cited(8, "Harris, Proposition 12.2", ("rank >= 1", False)).value is None
    True
    """
    holds = all(truth for _, truth in hypotheses)
    return Formula(
        value=value if holds else None, citation=citation, hypotheses=hypotheses, argument=argument
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Knowledge about one model; empty unless a family states it.

    Attributes
    ----------
    formula: the dimension of the image.
    closure_degree: the degree of the closure of the image; it holds over every field.
    dimension_bound: an upper bound of the dimension of the image.
    symmetries: groups that act on the weights without changing the function.
    gauge: weight entries to which the symmetries give fixed values: a slice on which ranks are those of the whole model.
    samples: an estimate of how many inputs show the generic rank on the slice; by default it is determined with the rank.
    homogeneous: whether every coordinate is homogeneous in each weight array.
    attention: the network itself where the arguments about self-attention apply: no mask, no tied weights, no positions, no
        powers of scores, and with softmax one head and no skip connections.
    perceptron: the network itself where it is a perceptron with one exponent for all layers and no biases.
    searched: symmetries that were searched and verified for a user-defined model; None for a family.
    """

    formula: Formula | None = None
    closure_degree: Formula | None = None
    dimension_bound: Formula | None = None
    symmetries: tuple[Symmetry, ...] = ()
    gauge: Held = NOTHING_HELD
    samples: int | None = None
    homogeneous: bool = False
    attention: Attention | None = None
    perceptron: Perceptron | None = None
    searched: SearchedSymmetries | None = None

    @property
    def layer(self) -> Attention | None:
        """Return the network itself where it is one layer of lightning attention by (Q, K, V) or (A, V)."""
        attention = self.attention
        return None if attention is None or attention.numbered else attention

    @property
    def matrix_product(self) -> tuple[int, ...] | None:
        """Return the widths of a network that is a product of matrices; None for others."""
        perceptron = self.perceptron
        return None if perceptron is None or perceptron.r != 1 else perceptron.widths


NOTHING_KNOWN = Knowledge()
