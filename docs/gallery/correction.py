"""Where a theorem as printed fails

Theorem 3.4 of the paper lists the singular points of one layer. For 1 < a < d, and d' >= 2 or a >= 3, there are more of them, and the record contains a counterexample.
"""

# %% M(3,2,2): the orbit with rk A = 1 and rk V = 2 is singular, and was printed as smooth.
model = m2bridge.parse_spec("lightning(d=3,dp=2,a=2)")
locus = m2bridge.singular_locus(model)
locus
assert locus.singular_dim == 10
assert locus.theorem.agrees is False
