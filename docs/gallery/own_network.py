"""Your own network

A forward pass written with NumPy is recorded once, as a short list of array instructions; every question is asked of that list. Here: one attention head with three-dimensional tokens.
"""


# %% The network, as one writes it.
def attention(X, Q, K, V):
    scores = (K @ X).T @ (Q @ X)
    return V @ X @ scores


model = m2bridge.from_callable(attention, {"Q": (1, 3), "K": (1, 3), "V": (2, 3)}, inputs={"X": (3, 2)})
# %% It has twelve weights, and two symmetries that m2bridge finds by itself: the lower and the upper bound meet.
answer = m2bridge.dimension(model)
answer
assert (answer.image_dim, answer.certainty.value) == (10, "proved")
# %% The symmetries, searched and verified as polynomial identities.
m2bridge.symmetries(model)
