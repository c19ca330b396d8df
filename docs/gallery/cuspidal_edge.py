"""A cuspidal edge

The image of (s, t) to (s, t^2, t^3): a surface with a whole line of singular points.
"""

# %% One equation of degree three.
model = m2bridge.parse_spec("map:s,t->s;t^2;t^3")
closure = m2bridge.closure(model, field="QQ")
closure
assert closure.generator_counts == {3: 1}
# %% Every point of the edge is singular; here is one.
m2bridge.singular_point(model, at={"s": 1, "t": 0})
