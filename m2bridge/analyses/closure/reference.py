"""Analyses stage, closure: the script of the reference method, for reading or for running by hand."""

from __future__ import annotations

from m2bridge.analyses.closure.kernels import best_source
from m2bridge.analyses.closure.primes import check_prime
from m2bridge.models.base import Model
from m2bridge.scripts import Script, render

TEMPLATE = "closure_kernel"
_PRIME = 32003
_HILBERT_DEGREES = 6


def script(model: Model, *, prime: int = _PRIME, seed: int = 0) -> Script:
    """The script that ``closure(model, method="kernel")`` runs; over QQ for the prime 0. It draws nothing, whatever `seed` is."""
    if prime:
        check_prime(prime)
    source = best_source(model)
    values = {**source.m2_parameters, "p": prime, "hilbertDegrees": _HILBERT_DEGREES}
    return render(TEMPLATE, values, partial=source.m2_partial)
