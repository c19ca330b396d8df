"""The Steiner surface

The projection (xy, yz, xz) of the Veronese surface, on a chart: three double lines that meet in a triple point.
"""

# %% A quartic with one equation.
model = m2bridge.parse_spec("map:x,y,z->x*y;y*z;x*z;x^2+y^2+z^2")
closure = m2bridge.closure(model, field="QQ")
closure
assert closure.degree == 4
