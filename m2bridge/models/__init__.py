"""Models stage: every network a polynomial map, and the user's own map too."""

from m2bridge.models.arrays import Mod
from m2bridge.models.base import Formula, Model, Symmetry
from m2bridge.models.catalogue import parse_spec
from m2bridge.models.jets import Jet
from m2bridge.models.lightning import Lightning

__all__ = ["Formula", "Jet", "Lightning", "Mod", "Model", "Symmetry", "parse_spec"]
