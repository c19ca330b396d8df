"""The twisted cubic

The cone over the rational curve of degree three, cut out by three quadrics: the first example of every book on ideals.
"""

# %% Three quadrics, and the Hilbert series of the cone: how many functions of each degree there are.
model = "map:s,t->s^3;s^2*t;s*t^2;t^3"
closure = m2bridge.closure(model, field="QQ")
closure
assert closure.generator_counts == {2: 3}
assert closure.hilbert_series.text == "(1 + 2*T)/(1 - T)^2"
