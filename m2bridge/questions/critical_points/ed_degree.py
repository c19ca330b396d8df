"""The generic Euclidean distance degree of a product of projective spaces.

Let X = P^n1 x ... x P^nk of dimension N be mapped by sections of O(w1, ..., wk) without base points and birationally onto its
image. For a general quadric the number of critical points of the loss on the cone over the image is

    sum over i of (-1)^i (2^(N + 1 - i) - 1) deg(c_i(T) h^(N - i)),      h = w1 h1 + ... + wk hk

(Draisma, Horobet, Ottaviani, Sturmfels, Thomas, *The Euclidean distance degree of an algebraic variety*, arXiv:1309.0049, Theorem
5.8, for an embedding). It also holds when the differential loses k >= 1 only in codimension greater than k: the pairs of a point
and a hyperplane that contains the image of the differential there are then irreducible of the same dimension, so they are the
conormal variety, and its class is computed by the same bundles. ``Counter.bundle`` checks this first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import comb, factorial, prod


def generic_ed_degree(dims: Sequence[int], degrees: Sequence[int]) -> int:
    """Return the sum above for dims (n1, ..., nk) and degrees (w1, ..., wk).

    >>> generic_ed_degree((3, 1), (1, 1)), generic_ed_degree((2,), (2,)), generic_ed_degree((1, 1), (1, 1))
    (14, 13, 6)
    """
    top, total = sum(dims), 0
    for chosen in product(*(range(n + 1) for n in dims)):
        i, left = sum(chosen), [n - k for n, k in zip(dims, chosen, strict=True)]
        chern = prod(comb(n + 1, k) for n, k in zip(dims, chosen, strict=True))
        power = factorial(top - i) // prod(map(factorial, left))
        power *= prod(w**n for w, n in zip(degrees, left, strict=True))
        total += (-1) ** i * (2 ** (top + 1 - i) - 1) * chern * power
    return total
