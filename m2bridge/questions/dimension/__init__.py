"""The dimension of a neuromanifold and of the generic fiber, proved from both sides where that can be done."""

from m2bridge.questions.dimension.analysis import dimension
from m2bridge.questions.dimension.macaulay2 import script
from m2bridge.questions.dimension.result import Dimension, FormulaCheck, NumericWitness

__all__ = ["Dimension", "FormulaCheck", "NumericWitness", "dimension", "script"]
