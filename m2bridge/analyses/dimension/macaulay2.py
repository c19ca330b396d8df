"""Analyses stage: Macaulay2 as a further witness of a dimension, where that is cheap. A model enters, evidence leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from m2bridge.analyses.workbench import Workbench, opened
from m2bridge.engine import Engine, Limits
from m2bridge.errors import EngineError, NoEngineError, NotPolynomialError, OutOfReachError
from m2bridge.linear.residues import DEFAULT_PRIME
from m2bridge.models import Mod, Model
from m2bridge.programs.degrees import degrees
from m2bridge.results import Certainty, EngineUse, Evidence, ScriptUse
from m2bridge.scripts import Script, render

TEMPLATE = "dimension"
MOST_M2_PARAMETERS, MOST_M2_COORDINATES, MOST_M2_DEGREE = 60, 1500, 6
M2_SECONDS = 20.0

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What Macaulay2 said, or why it was not asked."""

    evidence: tuple[Evidence, ...] = ()
    engine: EngineUse | None = None
    scripts: tuple[ScriptUse, ...] = field(default=())


def _question(free: Model, p: int, seed: int) -> tuple[dict[str, Any], dict[str, object]]:
    """Random weights, and the template's values that pass them on."""
    weights = free.draw_weights(np.random.default_rng([seed, 9]), p)
    return weights, {"p": p, "point": free.flatten(weights).tolist()}


def script(model: Model, *, prime: int = DEFAULT_PRIME, seed: int = 0) -> Script:
    """The script that :func:`~m2bridge.analyses.dimension.dimension` runs at small sizes."""
    free = model.free
    _, values = _question(free, prime, seed)
    return render(TEMPLATE, {**free.m2_parameters, **values}, partial=free.m2_partial)


def ask_macaulay2(
    model: Model,
    engine: Engine | bool | None,
    *,
    p: int,
    seed: int,
    limits: Limits,
    keep: Path | None,
    report: Report | None,
) -> Asked:
    """Macaulay2's rank of the Jacobian of the coordinates at the same kind of point, and its value there."""
    if engine is False:
        return _unasked("not asked")
    free = model.free
    try:
        small = (
            free.polynomial
            and free.parameter_count <= MOST_M2_PARAMETERS
            and free.coordinate_count <= MOST_M2_COORDINATES
            and degrees(free.program)[0] <= MOST_M2_DEGREE
        )
        free.m2_parameters  # noqa: B018 - raises where there is no twin
    except (NotPolynomialError, OutOfReachError):
        small = False
    if not small:
        return _unasked("not asked: too large for it to be cheap, or not polynomial")
    seconds = limits.wall_seconds or M2_SECONDS
    if engine is None:
        seconds = min(seconds, M2_SECONDS)
    capped = Limits(wall_seconds=seconds, memory_bytes=limits.memory_bytes)
    weights, question = _question(free, p, seed)
    try:
        with opened(None if engine is True else engine) as ready:
            bench = Workbench(ready, limits=capped, keep=keep, progress=report)
            start = time.perf_counter()
            values, stopped = bench.ask_within_limits(TEMPLATE, question, free)
            spent = time.perf_counter() - start
            use, scripts = bench.engine_use, tuple(bench.scripts)
    except NoEngineError:
        return _unasked("no Macaulay2 found; the other witnesses answer")
    except EngineError as error:
        if engine is not None and engine is not True:
            raise
        return _unasked(f"Macaulay2 failed: {error}")
    rank = values.integer("jacobian_rank") if "jacobian_rank" in values else None
    said = list(values.integers("image_point")) if "image_point" in values else None
    own = free.coordinates({name: Mod(value, p) for name, value in weights.items()}).values.tolist()
    found = [
        Evidence(
            quantity="image_dim",
            witness="macaulay2",
            method="rank of the Jacobian at a random point" if stopped is None else "stopped by its limit",
            value=rank,
            relation=">=",
            certainty=Certainty.PROVED,
            prime=p,
            seconds=spent,
        )
    ]
    if rank is not None:
        found.append(
            Evidence(
                quantity="image_dim",
                witness="macaulay2",
                method="that rank is generic unless the point is special",
                value=rank,
                relation="=",
                certainty=Certainty.PROBABLE,
                prime=p,
            )
        )
    if said is not None:
        for witness, value in (("macaulay2", said), ("modular", own)):
            found.append(
                Evidence(
                    quantity="image_point",
                    witness=witness,
                    method="target coordinates at the point",
                    value=value,
                    certainty=Certainty.PROVED,
                    prime=p,
                )
            )
    return Asked(evidence=tuple(found), engine=use, scripts=scripts)


def _unasked(reason: str) -> Asked:
    return Asked(
        evidence=(
            Evidence(
                quantity="image_dim",
                witness="macaulay2",
                method=reason,
                value=None,
                relation=">=",
                certainty=Certainty.PROBABLE,
            ),
        )
    )
