"""Models: named families of networks, and user-defined networks and maps.

- what a model is: `base`, `symmetries`, `evaluation` (a model at given weights), `symbolic` (over polynomials); `spec` and
  `catalogue` read specs;
- families: `attention` has what `lightning`, `softmax` and `transformer` share, `virtual` its virtual weights; `mlp`,
  `convolution`, `tensors`;
- user-defined: `user_network` (recorded networks), `polynomial_map` (maps; `rational_cone` of rational ones), `user_code` (files
  that are run).
"""

from m2bridge.families.base import Formula, Model, Symmetry
from m2bridge.families.catalogue import FAMILIES, Family, parse_spec
from m2bridge.families.convolution import Convolution
from m2bridge.families.evaluation import coordinate_jacobian, jacobian, output_jacobian
from m2bridge.families.lightning import DeepLightning, Lightning
from m2bridge.families.mlp import MLP, Linear
from m2bridge.families.polynomial_map import PolynomialMap, from_sympy, from_text, read_map
from m2bridge.families.softmax import Softmax
from m2bridge.families.symbolic import symbolic_map
from m2bridge.families.user_network import UserNetwork, from_callable, from_torch
from m2bridge.linear.residues import Mod

__all__ = [
    "FAMILIES",
    "MLP",
    "Convolution",
    "DeepLightning",
    "Family",
    "Formula",
    "Lightning",
    "Linear",
    "Mod",
    "Model",
    "PolynomialMap",
    "Softmax",
    "Symmetry",
    "UserNetwork",
    "coordinate_jacobian",
    "from_callable",
    "from_sympy",
    "from_text",
    "from_torch",
    "jacobian",
    "output_jacobian",
    "parse_spec",
    "read_map",
    "symbolic_map",
]  # fmt: skip
