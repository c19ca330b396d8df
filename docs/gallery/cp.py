"""Tensors of rank two

The sum of two products of vectors: a CP decomposition of 2 x 2 x 2 tensors. Almost every complex tensor of this shape is one.
"""

# %% The factors are the weights.
import numpy as np


def cp(A, B, C):
    return np.einsum("ir,jr,kr->ijk", A, B, C)


model = m2bridge.from_callable(cp, {"A": (2, 2), "B": (2, 2), "C": (2, 2)})
answer = m2bridge.dimension(model, engine=False)
answer
assert (answer.image_dim, answer.certainty.value) == (8, "proved")
