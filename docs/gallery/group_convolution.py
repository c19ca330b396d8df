"""Convolution over a group

Layers that commute with the cyclic group of three elements.
"""

# %% The dimension.
model = m2bridge.parse_spec("group-convolution(group=C3,layers=2,r=2)")
answer = m2bridge.dimension(model)
answer
