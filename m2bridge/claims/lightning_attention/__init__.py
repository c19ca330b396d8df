"""Henry, Marchetti, Kohn, *Geometry of Lightning Self-Attention: Identifiability and Dimension*, arXiv:2408.17221v3."""

PAPER = "Henry, Marchetti, Kohn, arXiv:2408.17221v3"
