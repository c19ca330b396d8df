"""A bottleneck of two neurons

With two hidden neurons and three inputs, a network of squares computes a quadratic form of rank at most two. The closure of the image is defined by the determinant of a symmetric matrix.
"""

# %% Five of six dimensions.
model = m2bridge.parse_spec("mlp(widths=[3,2,1],r=2)")
answer = m2bridge.dimension(model)
answer
assert answer.image_dim == 5
# %% The one equation is the symmetric determinant, of degree three.
closure = m2bridge.closure(model, field="QQ")
closure
assert closure.generator_counts == {3: 1}
