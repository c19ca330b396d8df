"""What one layer of attention can and cannot reach: its real image, the boundary, and the rest of the Zariski closure."""

from m2bridge.questions.boundary.analysis import boundary, script
from m2bridge.questions.boundary.decide import Decision, decide
from m2bridge.questions.boundary.result import Boundary, Experiment, OrbitPlace, Part, Point

__all__ = [
    "Boundary",
    "Decision",
    "Experiment",
    "OrbitPlace",
    "Part",
    "Point",
    "boundary",
    "decide",
    "script",
]
