"""Models: named families of networks, and user-defined networks and maps.

- definition of a model: `spec_fields` (its spec), `base` (its program, coordinates and constraints), `evaluation` (a model
  at given weights), `symbolic` (over polynomials), `target_grading`; `spec` and `catalogue` read specs;
- knowledge about a model: `knowledge`, `symmetries`, and `*_knowledge`;
- families: `attention` has the layers that `self_attention` (with its `attention_options`) and `transformer` share, `virtual`
  has virtual weights, `segre` the coordinates of one layer; `perceptron`, `convolution`, `tensors`;
- user-defined: `user_network` (recorded networks), `polynomial_map` (maps; `rational_cone` of rational ones), `user_code` (files
  that are run).
"""

from m2bridge.families.attention_options import DeepLightning, Lightning, Softmax
from m2bridge.families.base import Formula, Model, Symmetry
from m2bridge.families.catalogue import FAMILIES, Family, parse_spec
from m2bridge.families.convolution import Convolution
from m2bridge.families.evaluation import coordinate_jacobian, jacobian, output_jacobian
from m2bridge.families.perceptron import MLP, Linear, Perceptron
from m2bridge.families.polynomial_map import PolynomialMap, from_sympy, from_text, read_map
from m2bridge.families.self_attention import Attention
from m2bridge.families.symbolic import symbolic_map
from m2bridge.families.user_network import UserNetwork, from_callable, from_torch
from m2bridge.linear.residues import Mod

__all__ = [
    "FAMILIES", "MLP", "Attention", "Convolution", "DeepLightning", "Family", "Formula", "Lightning",
    "Linear", "Mod", "Model", "Perceptron", "PolynomialMap", "Softmax", "Symmetry", "UserNetwork",
    "coordinate_jacobian", "from_callable", "from_sympy", "from_text", "from_torch", "jacobian",
    "output_jacobian", "parse_spec", "read_map", "symbolic_map",
]  # fmt: skip
