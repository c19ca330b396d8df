"""Models stage: every network a polynomial map, and the user's own map too."""

from m2bridge.models.arrays import Mod
from m2bridge.models.base import Formula, Model, Symmetry
from m2bridge.models.catalogue import FAMILIES, Family, parse_spec
from m2bridge.models.convolution import Convolution
from m2bridge.models.deep import DeepLightning
from m2bridge.models.jets import Jet
from m2bridge.models.lightning import Lightning
from m2bridge.models.linear import Linear
from m2bridge.models.mlp import MLP
from m2bridge.models.softmax import Softmax

__all__ = [
    "FAMILIES",
    "MLP",
    "Convolution",
    "DeepLightning",
    "Family",
    "Formula",
    "Jet",
    "Lightning",
    "Linear",
    "Mod",
    "Model",
    "Softmax",
    "Symmetry",
    "parse_spec",
]
