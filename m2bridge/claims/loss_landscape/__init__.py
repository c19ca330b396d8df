"""Critical points of losses: the tables of giovanni-marchetti/LinearIndepCode, the public code of *Linear Independence of Polynomial
Compositions and Identifiability of Deep Neural Networks* (arXiv:2608.27113), and ED degrees from the literature.
"""

PAPER = "code of arXiv:2608.27113 (giovanni-marchetti/LinearIndepCode); ED degrees of arXiv:1309.0049 and arXiv:1311.2376"
ORDER = ("public_code", "ed_degrees")
