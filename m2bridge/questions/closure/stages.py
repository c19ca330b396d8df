"""What all stages of a closure share: the computation's setting, the ways in which a stage ends, and its report.

A stage is a function from frozen values to one frozen value::

    image -> ImageSize -> DegreeCount -> EquationSearch -> Conclusion -> Lift        (interpolation)
    image -> ImageSize -> RingKernel                                                 (the kernel of the ring map)

:mod:`~m2bridge.questions.closure.findings` makes the answer from these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from m2bridge.errors import OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families.base import Model
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import primes_below
from m2bridge.questions.closure.image import Image
from m2bridge.questions.kernel import Context

T = TypeVar("T")


# -- how a stage ends ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LimitStop:
    """A limit of time or memory ended a stage before its result was finished."""

    reason: str

    @classmethod
    def of(cls, reached: LimitReached) -> LimitStop:
        """Name the limit, and the option that raises it unless it is that of the time."""
        advice = f"; increase {reached.option}" if reached.option not in (None, "--timeout") else ""
        return cls(reached.reason + advice)


@dataclass(frozen=True, slots=True)
class TooFewPoints:
    """Points over F_p do not determine the equations of `degree` or of a higher degree."""

    degree: int


@dataclass(frozen=True, slots=True)
class BadPrime:
    """The image over F_p is, or may be, smaller than the image over QQ."""


Obstacle = LimitStop | TooFewPoints | BadPrime


# -- what is shown of the equations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Complete:
    """The equations generate the ideal of the closure.

    `exact`: the argument uses no random choice except the prime. Equations over QQ that reduce to these modulo p and vanish on
    the image are then complete over QQ (:mod:`~m2bridge.questions.closure.lifting`).
    """

    exact: bool


# -- reports ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The evidence of a stage, and in sentences what the stage showed and what it left open."""

    evidence: tuple[Evidence, ...] = ()
    shown: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()

    def __add__(self, other: Report) -> Report:
        return Report(
            evidence=self.evidence + other.evidence,
            shown=self.shown + other.shown,
            not_shown=self.not_shown + other.not_shown,
        )


EMPTY = Report()


# -- the setting -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is computed: the closure of `image`, over F_p, and over QQ if `rational`."""

    context: Context
    model: Model
    image: Image
    prime: int
    rational: bool

    @property
    def patient(self) -> bool:
        """Return whether the user allows an hour or more: then steps run that end for few models within minutes."""
        return self.context.clock.allows_an_hour

    def rng(self, *stream: int) -> np.random.Generator:
        """Return the random generator of a stream; the same one for the same seed and stream."""
        return np.random.default_rng([self.context.seed, *stream])

    def other_primes(self, count: int) -> list[int]:
        """Return large primes, other than that of the computation, that divide no number of the model."""
        large, numbers = self.image.large_prime, self.image.numbers
        return primes_below(large, count=count, without=self.prime, numbers=numbers)

    def statement(self, quantity: str, value: Any, witness: str, method: str, **more: Any) -> Evidence:
        """Make evidence about the field of its prime, which is that of the computation unless `more` has another.

        A number over F_p and the same number over QQ are different quantities.
        """
        fields = {"prime": self.prime, **more}
        fields.setdefault("field", f"F_{fields['prime']}" if fields["prime"] else "QQ")
        return Evidence(quantity, value, witness, method, **fields)

    def count_statement(
        self, witness: str, method: str, counts: Mapping[int, int], p: int | None
    ) -> Evidence:
        """Make evidence about the number of minimal generators of each degree."""
        value = {str(degree): count for degree, count in sorted(counts.items())}
        return self.statement("generators", value, witness, method, prime=p)

    def attempt(self, step: str, stage: Callable[[], T], ended: Callable[..., T]) -> T:
        """Return the value of a stage, or of ``ended(stop=..., report=...)`` if a limit ends it; the answer names the limit."""
        try:
            return stage()
        except LimitReached as limit:
            reached = limit
        except OutOfReachError as error:
            reached = LimitReached(str(error), None)
        self.context.note_limit(reached.at_step(step))
        return ended(stop=LimitStop.of(reached), report=Report(not_shown=(limit_sentence(step),)))


def limit_sentence(step: str) -> str:
    """Return the sentence of `not_shown` for a step that a limit ended."""
    return f"{step}: a limit was reached"
