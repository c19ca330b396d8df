"""Enneper's surface

A minimal surface that is the image of a polynomial map of degree three.
"""

# %% Its equation has degree nine; the dimension is two.
model = m2bridge.parse_spec("map:u,v->3*u+3*u*v^2-u^3;3*v+3*u^2*v-v^3;3*u^2-3*v^2")
answer = m2bridge.dimension(model)
answer
assert (answer.image_dim, answer.certainty.value) == (2, "proved")
