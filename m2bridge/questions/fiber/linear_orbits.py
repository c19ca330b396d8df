"""Orbits in the fibers of products of matrices: all (W_1, ..., W_l) with W_l ... W_1 = W, up to changes of basis in between.

GL(d_1) x ... x GL(d_(l-1)) acts by W_i -> C_i W_i C_(i-1)^-1 with C_0 and C_l the identity. The matrices are a representation
of the quiver 0 -> 1 -> ... -> l, a direct sum of intervals [i, j] (Gabriel): the interval lives at the vertices i, ..., j. Here
the two ends are not up to a change of basis, and this is what the numbers of intervals leave open:

    the flag of the kernels of W_i ... W_1 inside ker W, and the flag of the images of W_l ... W_i that contain im W.

Claim: the numbers of intervals and the two flags determine the orbit. Proof: representations with the same numbers are carried
into each other by some (g_0, ..., g_l); the orbits among those with the product W are therefore the cosets of the ends of Aut(R)
in {(g_0, g_l) : g_l W = W g_0}. An endomorphism of R has a part [0,j] -> [0,i] for each i <= j, which for i < l moves the first
end only, a part [i,l] -> [j,l] for each j <= i, which for i > 0 moves the last end only, and [0,l] -> [0,l], which moves both
alike. So the ends of automorphisms are exactly the pairs with g_l W = W g_0 that keep the two flags, and the cosets are the pairs
of flags of the same dimensions.

Let r = rk W. A flag in ker W can move only when it has a proper step, that is when dim ker W = d_0 - r >= 2 and one of its
directions outlives W_1 while another does not; for that one interval [0, j] with 1 <= j < l needs a place at the vertex 1 beside
the r intervals [0, l]: d_1 > r. The same at the other end. Hence

    there are finitely many orbits exactly when (d_0 - r <= 1 or d_1 = r) and (d_l - r <= 1 or d_(l-1) = r),

and then they are as many as there are numbers of intervals with the dimensions d_0, ..., d_l and r times [0, l].
Everything holds over every field.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

MOST_STATES = 20_000
"""Counting stops here; that there are finitely many orbits is known without it."""


def finitely_many(widths: Sequence[int], rank: int) -> bool:
    """Whether {W_l ... W_1 = W} with rk W = `rank` is a finite union of orbits."""
    if len(widths) == 2:
        return True
    first = widths[0] - rank <= 1 or widths[1] == rank
    last = widths[-1] - rank <= 1 or widths[-2] == rank
    return first and last


def orbit_count(widths: Sequence[int], rank: int) -> int | None:
    """Number of ways to write the dimensions as sums of intervals, `rank` of them from end to end; None when it is too large.

    That is the number of orbits where :func:`finitely_many` holds.

    Examples
    --------
    >>> orbit_count([2, 2, 1], 1)
    2
    """
    last = len(widths) - 1
    states = 0

    @cache
    def ways(vertex: int, through: int, others: tuple[int, ...]) -> int:
        """Continuations when `through` intervals from 0 and `others[k - 1]` intervals from k are alive at `vertex`."""
        nonlocal states
        states += 1
        if states > MOST_STATES:
            raise OverflowError
        if vertex == last:
            return int(through == rank)
        total = 0
        for kept in _choices((through, *others), widths[vertex + 1]):
            if kept[0] >= rank:
                born = widths[vertex + 1] - sum(kept)
                total += ways(vertex + 1, kept[0], (*kept[1:], born))
        return total

    try:
        return ways(0, widths[0], ())
    except OverflowError:
        return None


def _choices(alive: tuple[int, ...], room: int) -> list[tuple[int, ...]]:
    """All ways to keep some of the intervals alive, at most `room` of them together."""
    found: list[tuple[int, ...]] = [()]
    for count in alive:
        found = [(*kept, n) for kept in found for n in range(min(count, room - sum(kept)) + 1)]
        if len(found) > MOST_STATES:
            raise OverflowError
    return found


def two_layer_dim(widths: Sequence[int], rank: int) -> int:
    """Dimension of {W_2 W_1 = W} for rk W = `rank`: the largest family of orbits.

    With rk W_1 = r + x and rk W_2 = r + y the kernel of W_1 is a point of Gr(n_0 - x, n_0), n_0 = d_0 - r, the image of W_2 one
    of Gr(y, n_2), and the stabilizer has dimension (h - rk W_1)(h - rk W_2): maps that vanish on im W_1 and land in ker W_2.
    """
    first, h, last = (widths[0] - rank, widths[1], widths[2] - rank)
    return max(
        h * h - (h - rank - x) * (h - rank - y) + x * (first - x) + y * (last - y)
        for x in range(min(first, h - rank) + 1)
        for y in range(min(last, h - rank - x) + 1)
    )
