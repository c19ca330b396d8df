"""A skip connection

One head of attention with a skip connection: the identity is added to the output, which translates the image and does not change its dimension.
"""


# %% The scaling of V against the scores is still a symmetry.
def attention(X, Q, K, V):
    return X + V @ X @ ((K @ X).T @ (Q @ X))


model = m2bridge.from_callable(attention, {"Q": (1, 2), "K": (1, 2), "V": (2, 2)}, inputs={"X": (2, 3)})
answer = m2bridge.dimension(model, engine=False)
answer
assert (answer.image_dim, answer.certainty.value) == (6, "proved")
