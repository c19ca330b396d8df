"""A linear network with a bottleneck

The product of a 3 x 2 and a 2 x 4 matrix: all matrices of rank at most two. The closure is cut out by the minors of size three.
"""

# %% Dimension ten, proved.
model = m2bridge.parse_spec("linear(widths=[4,2,3])")
answer = m2bridge.dimension(model)
answer
assert answer.image_dim == 10
# %% Four cubics: the minors.
closure = m2bridge.closure(model)
closure
assert closure.generator_counts == {3: 4}
