"""A user-defined network

A forward pass written with NumPy is recorded once, as a short list of array instructions, the program; every question uses this program. Here: one attention head with three-dimensional tokens.
"""


# %% The network as a Python function.
def attention(X, Q, K, V):
    scores = (K @ X).T @ (Q @ X)
    return V @ X @ scores


model = m2bridge.from_callable(attention, {"Q": (1, 3), "K": (1, 3), "V": (2, 3)}, inputs={"X": (3, 2)})
# %% It has twelve weights, and two symmetries that m2bridge finds: the lower and the upper bound are equal.
answer = m2bridge.dimension(model)
answer
assert (answer.image_dim, answer.certainty.value) == (10, "proved")
# %% The symmetries, searched and verified as polynomial identities.
m2bridge.symmetries(model)
