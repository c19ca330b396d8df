"""Every network a polynomial map, and the user's own map too.

Where to look:

- what a model is: `base`, `symmetries`, `evaluation` (a model at given weights), `symbolic` (over polynomials); `spec` and
  `catalogue` read specs;
- families: `attention` has what `lightning`, `softmax` and `transformer` share, `virtual` its virtual weights; `mlp`,
  `convolution`, `tensors`;
- the user's own: `own` (recorded networks), `custom` (polynomial maps; `polynomials` and `systems` of them), `code` (files that
  are run), `pytorch` (and `aten`, its operations), `checkpoints` (weights), `ideals`.
"""

from m2bridge.linear.residues import Mod
from m2bridge.models.base import Formula, Model, Symmetry
from m2bridge.models.catalogue import FAMILIES, Family, parse_spec
from m2bridge.models.convolution import Convolution
from m2bridge.models.custom import PolynomialMap, from_sympy, from_text, read_map
from m2bridge.models.evaluation import coordinate_jacobian, jacobian, output_jacobian
from m2bridge.models.lightning import DeepLightning, Lightning
from m2bridge.models.mlp import MLP, Linear
from m2bridge.models.own import OwnNetwork, from_callable
from m2bridge.models.softmax import Softmax
from m2bridge.models.symbolic import symbolic_map

__all__ = [
    "FAMILIES", "MLP", "Convolution", "DeepLightning", "Family", "Formula", "Lightning", "Linear", "Mod", "Model", "OwnNetwork",
    "PolynomialMap", "Softmax", "Symmetry", "coordinate_jacobian", "from_callable", "from_sympy", "from_text", "jacobian",
    "output_jacobian", "parse_spec", "read_map", "symbolic_map",
]  # fmt: skip
