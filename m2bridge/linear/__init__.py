"""Exact and rigorous linear algebra, once: F_p (`residues`, `modular`, `mod`), QQ (`integer`, `lifting`), float64 (`numeric`),
and `balls`.

`primes` has the primes and how one is chosen; `stream` the random numbers that certificates name by a seed.
"""
