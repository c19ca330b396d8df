"""A tensor train

A tensor of shape 2 x 2 x 2 x 2 as a product of four cores with ranks (2, 2, 2), written as a network without inputs.
"""

# %% The cores are the weights, the entries of the tensor are the coordinates.
import numpy as np


def train(A, B, C, D):
    return np.einsum("ia,ajb,bkc,cl->ijkl", A, B, C, D)


shapes = {"A": (2, 2), "B": (2, 2, 2), "C": (2, 2, 2), "D": (2, 2)}
model = m2bridge.from_callable(train, shapes)
# %% A change of basis at each of the three bonds leaves the tensor unchanged; only the middle one reduces the dimension here.
answer = m2bridge.dimension(model, engine=False)
answer
assert answer.image_dim == 12
