"""A convolutional network

Two layers of filters of length two with the activation x^2.
"""

# %% The dimension, with the formula of the literature beside it.
model = m2bridge.parse_spec("convolution(filters=[2,2],r=2)")
answer = m2bridge.dimension(model)
answer
assert answer.certainty.value == "proved"
# %% The equations of its closure.
m2bridge.closure(model)
