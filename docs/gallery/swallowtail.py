"""The swallowtail

All polynomials x^4 + a x^2 + b x + c with a double root: a surface in the space of (a, b, c), parametrized by the double root and a.
"""

# %% The discriminant of the quartic, which has degree five in these coordinates.
model = m2bridge.parse_spec("map:r,a->a;-4*r^3-2*a*r;3*r^4+a*r^2")
closure = m2bridge.closure(model, field="QQ")
closure
