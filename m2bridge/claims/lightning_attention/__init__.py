"""Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention: Identifiability and Dimension*, arXiv:2408.17221v3."""

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221v3"

SAID_ABOUT = ("singular-locus", "boundary", "fiber")
"""Questions to whose answers the paper prints something; see `said`."""

ORDER = (
    "lemma_3_1",
    "theorem_3_2",
    "corollary_3_3",
    "theorem_3_4_singular",
    "theorem_3_4_boundary",
    "lemma_3_6",
    "theorem_3_7",
    "corollary_3_8",
    "theorem_3_9",
    "conjecture_3_10",
    "lemma_a_3",
    "proposition_a_5",
    "section_4",
    "misprints",
)
"""The files in the order of the paper."""
