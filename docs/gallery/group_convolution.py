"""Convolution over a group

Two layers that commute with the cyclic group of three elements, with the square of each entry between them.
"""

# %% Row g of the table lists the elements g + h; the output is the value at the identity.
import numpy as np

table = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])


def layers(w, v, x):
    return (x[table] @ w) ** 2 @ v


model = m2bridge.from_callable(layers, {"w": (3,), "v": (3,)}, inputs={"x": (3,)})
# %% The scaling between the layers reduces the dimension by one.
answer = m2bridge.dimension(model, engine=False)
answer
assert answer.image_dim == 5
