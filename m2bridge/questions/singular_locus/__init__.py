"""The singular locus of a neuromanifold: orbits, curves, equations, Macaulay2's singular scheme."""

from m2bridge.questions.singular_locus.analysis import Question, script, singular_locus
from m2bridge.questions.singular_locus.result import Component, SingularLocus, Stratum

__all__ = ["Component", "Question", "SingularLocus", "Stratum", "script", "singular_locus"]
