"""Models stage: every network a polynomial map, and the user's own map too."""

from m2bridge.models.arrays import Mod
from m2bridge.models.base import Formula, Model, Symmetry
from m2bridge.models.catalogue import FAMILIES, Family, parse_spec
from m2bridge.models.convolution import Convolution
from m2bridge.models.custom import PolynomialMap, from_sympy, from_text
from m2bridge.models.deep import DeepLightning
from m2bridge.models.derivatives import jacobian
from m2bridge.models.files import read_map
from m2bridge.models.jets import Jet
from m2bridge.models.lightning import Lightning
from m2bridge.models.linear import Linear
from m2bridge.models.mlp import MLP
from m2bridge.models.softmax import Softmax
from m2bridge.models.symbolic import symbolic_map
from m2bridge.models.tracing import TracedNetwork, from_callable

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
    "PolynomialMap",
    "Softmax",
    "Symmetry",
    "TracedNetwork",
    "from_callable",
    "from_sympy",
    "from_text",
    "jacobian",
    "parse_spec",
    "read_map",
    "symbolic_map",
]
