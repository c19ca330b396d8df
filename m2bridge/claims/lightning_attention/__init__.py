"""Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention: Identifiability and Dimension*, arXiv:2408.17221v3."""

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221v3"

ORDER = (
    "lemma-3.1", "lemma-3.5", "theorem-3.2", "corollary-a.2", "corollary-3.3", "theorem-3.4", "corollary-a.6", "lemma-3.6",
    "equation-12", "equation-13", "theorem-3.7", "corollary-3.8", "three-symmetries", "parameter-count", "theorem-3.9",
    "conjecture-3.10", "conjecture-3.10-dimension", "figure-3", "lemma-a.3", "proposition-a.5", "figure-1", "section-4-skip",
    "section-4-heads", "misprints",
)  # fmt: skip
"""The claims in the order of the paper, by how their names begin."""
