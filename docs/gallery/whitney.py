"""The Whitney umbrella

The image of (s, t) to (s, st, t^2): a surface with a pinch point, and a closure that contains more real points than the image.
"""

# %% One cubic equation.
model = m2bridge.parse_spec("map:s,t->s;s*t;t^2")
closure = m2bridge.closure(model, field="QQ")
closure
assert closure.generator_counts == {3: 1}
# %% The origin is the pinch point: the tangent space there has three dimensions.
m2bridge.singular_point(model, at={"s": 0, "t": 0})
