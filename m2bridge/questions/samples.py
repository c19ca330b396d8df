"""How many inputs a rank needs: what one input can show of a network.

One place, because the count was once made in several places and wrongly in each.
"""

from __future__ import annotations

from math import prod

from m2bridge.models import DeepLightning, Lightning, Model


def outputs_per_input(model: Model) -> int:
    """A bound of the number of independent outputs that one input gives.

    An attention layer, with or without skip connection, is F(X X^T) X: at a fixed input X all its derivatives by the weights are
    of the form G X with G of size d' x d, so that d' min(d, t) of the d' t outputs are independent and not more.
    """
    if model.output_shape is None:
        return 1
    if isinstance(model, (Lightning, DeepLightning)):
        width, tokens = model.input_shape
        return int(model.output_shape[0]) * min(width, tokens)
    return max(1, prod(model.output_shape))


def inputs_for(model: Model, count: int, *, spare: int) -> int:
    """Inputs that give at least `count` outputs which may be independent, and `spare` inputs more."""
    return -(-count // outputs_per_input(model)) + spare
