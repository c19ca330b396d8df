"""Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention: Identifiability and Dimension*, arXiv:2408.17221v3."""

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221v3"

ORDER = (
    "lemma-3.1", "lemma-3.5", "theorem-3.2", "corollary-a.2", "corollary-3.3", "theorem-3.4", "corollary-a.6", "lemma-3.6",
    "equation-12", "equation-13", "theorem-3.7", "corollary-3.8", "three-symmetries", "parameter-count", "theorem-3.9",
    "conjecture-3.10", "conjecture-3.10-dimension", "figure-3", "lemma-a.3", "proposition-a.5", "figure-1", "section-4-skip",
    "section-4-heads",
)  # fmt: skip
"""The claims in the order of the paper, by prefixes of their names."""

MISPRINTS = (
    ("Definition 2 and Equation 5", "Q_i and K_i are a_i x d_(i-1), and there are sum d_(i-1) (2 a_i + d_i) weights."),
    ("Equation 12", "The last factor is x_(k_l~)^T A_1 x_k, not x_l~^T A_1 x_k."),
    ("Equation 15", "It pairs x_i^T A x_j where Equation 1 has x_j^T A x_i, which is another convention."),
    ("After Equation 26", '"Equation 11" means Equation 10.'),
    (
        "Equation 34", "S(x_1^T A x_2) V x_2 has the factor t - 1: of the tokens x_1, x_2, ..., x_2 all but the first are x_2. Theorem 3.9 stays true."
    ),
    ("Corollary 3.3, proof", "2ad + dd' - a^2 is the dimension of the space of (A, V); that of {rk A <= a} is 2ad - a^2."),
    (
        "Appendix A.2 and A.6, proofs", "x^T A x need not be irreducible if rk A > 1: x^2 - y^2 factors. It is if the symmetric part of A has a rank "
        "above 2. Theorem 3.2 is true all the same."
    ),
    ("Corollary A.6, proof", '"Non-real" means not proportional to a real form.'),
)  # fmt: skip
"""Misprints of the paper, and how each is read. No statement depends on these."""
