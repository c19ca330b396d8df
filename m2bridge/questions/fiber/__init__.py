"""Fibers and identifiability: which weights compute the same function."""

from m2bridge.questions.fiber.analysis import fiber, script
from m2bridge.questions.fiber.gauge import apply_gauges, attention_gauge, layer_gauges, torus_gauge
from m2bridge.questions.fiber.points import Point, given_point, random_point, read_weights
from m2bridge.questions.fiber.resolve import stratum_point
from m2bridge.questions.fiber.result import Fiber, FiberComponent, RealPoint
from m2bridge.questions.fiber.skew import counterexample, same_function

__all__ = [
    "Fiber",
    "FiberComponent",
    "Point",
    "RealPoint",
    "apply_gauges",
    "attention_gauge",
    "counterexample",
    "fiber",
    "given_point",
    "layer_gauges",
    "random_point",
    "read_weights",
    "same_function",
    "script",
    "stratum_point",
    "torus_gauge",
]
