"""One layer of lightning attention

The neuromanifold of one layer with two-dimensional tokens and one output, M(2,1,2): the smallest one that is singular. Its closure is a quartic hypersurface in a space of six dimensions: the resultant of two binary quadrics.
"""

# %% The dimension is proved from both sides: a minor of the Jacobian that is not zero, and a slice of the weights.
model = m2bridge.parse_spec("lightning(d=2,dp=1)")
answer = m2bridge.dimension(model)
answer
assert answer.image_dim == 5
assert answer.certainty.value == "proved"
# %% Macaulay2 finds the equation of the closure, the singular locus and its components. The strata are the orbits of the weights.
locus = m2bridge.singular_locus(model)
locus
assert (locus.singular_dim, locus.singular_degree) == (4, 3)
