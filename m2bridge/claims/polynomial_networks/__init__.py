"""Polynomial perceptrons: Kileel, Trager, Bruna, *On the Expressive Power of Deep Polynomial Neural Networks* (arXiv:1905.12207), and
Finkel, Rodriguez, Wu, Yahl, *Activation degree thresholds and expressiveness of polynomial neural networks* (arXiv:2408.04569).
"""

PAPER = "Kileel, Trager, Bruna, arXiv:1905.12207; Finkel, Rodriguez, Wu, Yahl, arXiv:2408.04569"
