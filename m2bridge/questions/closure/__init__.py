"""The Zariski closure of a model's image: equations, invariants, and what is shown about them."""

from m2bridge.questions.closure.analysis import METHODS, closure
from m2bridge.questions.closure.equations import Equation
from m2bridge.questions.closure.formats import FORMATS
from m2bridge.questions.closure.interpolation import Interpolation, interpolate
from m2bridge.questions.closure.kernels import script
from m2bridge.questions.closure.result import Closure, Membership

__all__ = [
    "FORMATS",
    "METHODS",
    "Closure",
    "Equation",
    "Interpolation",
    "Membership",
    "closure",
    "interpolate",
    "script",
]
