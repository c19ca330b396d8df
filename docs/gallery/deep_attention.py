"""Two layers of lightning attention

Deep lightning attention, whose generic fibers the paper describes. The computed dimension is compared with the formula of the paper, which is never used as evidence.
"""

# %% Two layers of width three, attention matrices of rank two, three tokens.
model = m2bridge.parse_spec("deep-lightning(d=[3,3,3],a=[2,2],t=3)")
answer = m2bridge.dimension(model, engine=False)
answer
assert answer.certainty.value == "proved"
assert answer.formula.agrees
