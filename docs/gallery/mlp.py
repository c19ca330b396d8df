"""A quadratic perceptron

Three hidden neurons with the activation x^2, two inputs, two outputs. The image is dense in the space of pairs of binary quadrics.
"""

# %% The dimension is that of the whole space of pairs of quadrics.
model = m2bridge.parse_spec("mlp(widths=[2,3,2],r=2)")
answer = m2bridge.dimension(model)
answer
assert answer.image_dim == 6
# %% The symmetries: scalings of each neuron, and their permutations.
m2bridge.symmetries(model)
