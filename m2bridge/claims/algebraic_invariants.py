"""Families of invariants of lightning self-attention with one output: do they generate the ideal of the closure?

Alexandr, Duan, Montufar, *Algebraic Invariants of Lightning Self-Attention* (arXiv:2604.15632). Only its abstract was read: the
coefficients of lightning self-attention as coordinates of a variety, with "linear and nonlinear families of invariants, including
Chow-type, low-rank, Veronese-type and Sylvester resultant-based constraints". So these are no statements of the paper: the families
are built here as the words suggest, for d' = 1, and what is decided is whether they suffice. What "Veronese-type" names, beside the
minors of low rank, cannot be told from the abstract, and is not built.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np

from m2bridge.claims.base import Check, Claim, Context, Kind, Size, Verdict, decided, out_of_reach, sizes
from m2bridge.linear.modular import rank_over_q
from m2bridge.models import Lightning
from m2bridge.protocol import read
from m2bridge.questions.closure import closure
from m2bridge.results import Certainty
from m2bridge.scripts import render

PAPER = "Alexandr, Duan, Montufar, arXiv:2604.15632 (families as read from its abstract)"
_DRAWS = 320
"""Random combinations and lines: more than the independent resultants at these sizes, which the script counts."""


def table_to_coefficients(d: int, t: int) -> np.ndarray:
    """The linear map from the coefficients of q_1, ..., q_d to those of the outputs F_j = sum over i and m of x_(j,m) q_m(x_i).

    Rows are the cubic monomials of all tokens in descending lexicographic order, output token after output token.
    """
    monomials = list(combinations_with_replacement(range(d * t), 3))
    place: dict[tuple[int, ...], int] = {tuple(monomial): row for row, monomial in enumerate(monomials)}
    pairs = list(combinations_with_replacement(range(d), 2))
    found = np.zeros((t, len(monomials), d * len(pairs)), dtype=np.int64)
    for j, i, (column, (m, (k, n))) in product(range(t), range(t), enumerate(product(range(d), pairs))):
        found[j, place[tuple(sorted((j * d + m, i * d + k, i * d + n)))], column] += 1
    return found.reshape(t * len(monomials), -1)


def check_linear(size: Size, context: Context) -> Verdict:
    """Whether the networks span the image of :func:`table_to_coefficients`: then all linear invariants are its linear relations.

    Coefficients are linear in A and in V, and unit matrices have rank one: what these give spans what all weights give.
    """
    d, t = size["d"], size["t"]
    model = Lightning(d=d, dp=1, a=size["a"], t=t, parametrization="attention", coordinate_system="full")
    family, units = table_to_coefficients(d, t), np.eye(d, dtype=np.int64)
    matrices = np.eye(d * d, dtype=np.int64).reshape(-1, d, d)
    points = [model.coordinates({"A": A, "V": v[None]}) for A, v in product(matrices, units)]
    networks = np.array(points).T
    span, both = (rank_over_q(M) for M in (networks, np.hstack([networks, family])))
    forms = model.coordinate_count - rank_over_q(family)
    true = span == both == model.coordinate_count - forms
    return decided(
        true, Certainty.PROVED, f"{forms} linear forms in {model.coordinate_count} coefficients, and no others",
        f"networks span {span} dimensions, with the family {both}", forms=forms, span=span,
    )  # fmt: skip


def check_generate(which: int) -> Check:
    """Whether families generate the ideal: all (0), all but resultants (1), resultants alone (2), all but low rank on lines (3)."""

    def check(size: Size, context: Context) -> Verdict:
        model = Lightning(d=size["d"], dp=1, a=size["a"], parametrization="attention")
        found = context.once(closure, model, equations=True)
        if found.completeness not in ("complete", "up-to-degree") or found.equations is None:
            return out_of_reach("no equations of the closure are known to be all of their degrees")
        far = "" if found.completeness == "complete" else f" up to degree {found.degree_bound}"
        key = ("families", model.spec)
        if key not in context.known:
            numbers = np.random.default_rng([context.seed, 62]).integers(1, 10_000, size=997).tolist()
            ideal = [[list(f.coefficients), [list(m) for m in f.monomials]] for f in found.equations]
            given = {"d": model.d, "a": model.a, "p": found.characteristic, "draws": _DRAWS, "numbers": numbers,
                     "idealGenerators": ideal}  # fmt: skip
            context.known[key] = read(
                context.engine.run(render("algebraic_invariants", given), context.limits)
            )
        values = context.known[key]
        if max(values["family_counts"]) >= _DRAWS:
            return out_of_reach("more combinations would have to be drawn")
        names = ("low rank", "low rank on lines", "Chow", "resultants")
        outside = [name for name, fine in zip(names, values["inside"], strict=True) if not fine]
        missing = values["missing"][which]
        listed = ", ".join(f"{count} of degree {degree}" for degree, count in missing)
        counts = dict(zip(names, values["family_counts"], strict=True))
        return decided(
            not outside and not missing, found.certainty, f"the families generate the ideal{far}",
            f"{', '.join(outside)} not in the ideal" if outside else f"not generated: {listed}",
            family_counts=counts, missing=missing, generators={str(k): n for k, n in found.generator_counts.items()},
        )  # fmt: skip

    return check


_SIZES = sizes("d a", (2, 1), (2, 2), (3, 1), (3, 2), (3, 3))
_ALL = Claim(
    id="adm-generate",
    number="All families together (our reading)",
    statement="For d' = 1, the minors of low rank, also on lines, the Chow-type minors of combinations of the quadrics, and the Sylvester resultants of "
    "combinations on lines generate the ideal of the closure.",
    checked="each family, built from its definition, lies in the ideal that `closure` finds from points of the network, and generates it",
    witnesses={
        "template": ("the families, from quadrics with a common factor", "ideal membership by Groebner bases over F_p"),
        "program": ("the ideal, from points of the network's forward pass",),
    },
    about=("generators", "Hilbert function", "image_dim"),
    sizes=_SIZES,
    quick=_SIZES[:2],
    run=check_generate(0),
    kind=Kind.PROBE,
)  # fmt: skip
CLAIMS = (
    Claim(
        id="adm-linear",
        number="Linear invariants (our reading)",
        statement="For d' = 1, all linear invariants say that the output at token j is the sum over i of one table of quadrics, F_j = sum x_(j,m) q_m(x_i).",
        checked="networks at unit matrices, which span those of all weights, span exactly the coefficients that such tables give, of all coefficients of degree three",
        witnesses={
            "program": ("coefficients of the network at unit matrices A and V",), "construction": ("the linear map from tables to coefficients",)
        },
        sizes=sizes("d a t", (2, 1, 2), (2, 2, 2), (2, 2, 3), (3, 1, 2), (3, 3, 2)),
        run=check_linear,
        kind=Kind.PROBE,
    ),
    _ALL,
    _ALL.also(
        id="adm-without-resultants",
        number="Low rank and Chow-type alone (our reading)",
        statement="For d' = 1, the minors of low rank, also on lines, and the Chow-type minors generate the ideal, without resultants.",
        run=check_generate(1),
    ),
    _ALL.also(
        id="adm-resultants",
        number="Resultants alone (our reading)",
        statement="For d' = 1, the Sylvester resultants of combinations on lines generate the ideal.",
        run=check_generate(2),
    ),
    _ALL.also(
        id="adm-without-lines",
        number="Flattenings of the whole table, Chow-type and resultants (our reading)",
        statement="For d' = 1, the minors of the whole table of coefficients, the Chow-type minors and the resultants generate the ideal.",
        run=check_generate(3),
    ),
)  # fmt: skip
