"""The singular locus of a neuromanifold: orbits, curves, equations, Macaulay2's singular scheme."""

from m2bridge.analyses.singular_locus.analysis import Question, script, singular_locus
from m2bridge.analyses.singular_locus.result import Component, SingularLocus, Stratum, TheoremCheck

__all__ = ["Component", "Question", "SingularLocus", "Stratum", "TheoremCheck", "script", "singular_locus"]
