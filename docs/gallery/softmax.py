"""Softmax attention

Softmax is not polynomial: it has a dimension, but no ideal. The lower bound is a rank modulo a prime, with random units in place of the exponentials.
"""

# %% Two layers of softmax attention.
model = m2bridge.parse_spec("softmax(d=[3,3,3],a=[2,2],t=3)")
answer = m2bridge.dimension(model, engine=False)
answer
assert (answer.image_dim, answer.certainty.value) == (25, "proved")
