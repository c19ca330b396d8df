"""Rank stage: the second witness. Matrices enter, ranks with their certainty leave; no template is read here.

``modular`` is exact over F_p, ``integer`` exact over QQ, ``numeric`` float64 with a visible gap, ``ball``
rigorous over RR; ``attention`` writes the Jacobian of deep attention networks without ever holding all of
it.
"""
