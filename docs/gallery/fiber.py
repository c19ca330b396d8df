"""Which weights define the same function?

The fiber of one layer of attention through random integer weights: one orbit of the symmetries, in agreement with Theorem 3.2 of the paper.
"""

# %% The fiber is decomposed by Macaulay2, and compared with an argument and with the rank of the differential.
model = m2bridge.parse_spec("lightning(d=2,dp=1)")
answer = m2bridge.fiber(model)
answer
assert answer.verdict == "identifiable-up-to-symmetry"
