"""Compare two checkpoints: whether they compute the same function, and whether a symmetry maps one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from m2bridge.certainty import Certainty
from m2bridge.errors import InputError
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.questions.equal import (
    ROUNDING,
    SINGLE_ROUNDING,
    comparison,
    comparison_certificate,
    comparison_up_to,
    relative_distance,
)
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.questions.normal_form import Move, normal_form
from m2bridge.questions.point import RationalizeOption, one_of, resolve, weights_option, weights_or_path
from m2bridge.results import Result, register_result
from m2bridge.symmetry.alignment import alignment
from m2bridge.views import View, shorten

OtherOption = Annotated[
    Any, Option("Second weights (required), in the format of --at.", flag="--and", read=weights_or_path)
]


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Same(Result):
    """Whether two weights compute the same function.

    Attributes
    ----------
    first, second: the weights, exact.
    verdict: same, different, or undecided.
    example: for different functions an input and both outputs, exact, where one was found.
    distance: the largest relative difference of outputs at random inputs in float64; None if the functions are equal and no
        tolerance was given.
    carried: whether symmetries map one to the other: True if both have the same normal form; False if the normal forms differ
        and use every declared group, so that no declared symmetry does; None if this was not decided.
    relation: symmetries by structure that map the first weights to the second ones in float64, up to rounding or the
        tolerance; None if there are none, or exact normal forms were compared.
    first_moves, second_moves: the group elements that map each to the normal form; empty unless `carried`.
    certificate: the pair as a certificate of equal functions, or of different ones with an input; None without a proof.
    """

    ANALYSIS: ClassVar[str] = "same"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("same_function",)

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    verdict: Literal["same", "different", "undecided"]
    example: Mapping[str, Any] | None
    distance: float | None
    carried: bool | None
    relation: tuple[str, ...] | None
    first_moves: tuple[Move, ...]
    second_moves: tuple[Move, ...]
    certificate: Mapping[str, Value] | None

    def certified(self) -> frozenset[str]:
        return frozenset({"same_function"} if self.certificate else ())

    def view(self) -> View:
        answers = {"same": "same function", "different": "different functions"}
        facts = []
        if self.example is not None:
            values = [
                f"{key} {shorten(str(value).replace(chr(39), ''), 80)}" for key, value in self.example.items()
            ]
            facts.append(("different at", ", ".join(values)))
        if self.distance is not None:
            facts.append(("distance", f"relative difference of outputs {self.distance:.1e} in float64"))
        for which, moves in (("first", self.first_moves), ("second", self.second_moves)):
            facts += [(f"{which}, {m.group}", shorten(str(m.element).replace("'", ""), 100)) for m in moves]
        facts += [("symmetry", text) for text in self.relation or ()]
        notes = {
            True: ("Symmetries relate them: these elements map both to one normal form.",),
            False: ("No declared symmetry of the model relates them.",),
            None: (),
        }[self.carried if self.verdict == "same" else None]
        if self.verdict == "different" and self.distance is not None and self.distance < ROUNDING:
            notes = (
                f"The difference has the size of rounding errors; --tolerance {ROUNDING} ignores such differences.",
            )
        if (
            self.verdict == "undecided"
            and self.distance is not None
            and ROUNDING <= self.distance < SINGLE_ROUNDING
        ):
            notes = (
                "The difference is larger than rounding errors in float64, and has the size of those in float32; "
                f"--tolerance {SINGLE_ROUNDING} ignores such differences.",
            )
        answer = answers.get(self.verdict, self.verdict)
        decided = self.verdict != "undecided"
        return View(
            answer=answer, decided=decided, facts=tuple(facts), notes=notes, to_prove=self._to_prove()
        )

    def _to_prove(self) -> str:
        """Return what would prove the answer: this depends on which comparison was made."""
        if self.certainty is Certainty.NUMERIC:
            return "a comparison without a tolerance"
        if all(item.witness != "float64" for item in self.evidence):
            return "a comparison of all coefficients (there are too many)"
        if self.verdict == "different":
            return "an input at which the outputs differ, with bounds of the rounding errors"
        if self.relation:
            return "the symmetry above in exact arithmetic (it was found in float64)"
        return "a symmetry that maps one to the other (the network is not polynomial: it has no coefficients to compare)"


def _read_tolerance(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _bad_tolerance(text) from None


def _bad_tolerance(value: object) -> InputError:
    return InputError(f"the tolerance must be at least 0 and less than 1, not {value}", argument="tolerance")


@question(
    asks="Whether two sets of weights define the same function, and whether symmetries relate them.",
    quantities={"same_function": "whether both sets of weights define the same function"},
    example="m2bridge same 'mlp(widths=[2,3,2],r=2)' --at a.npz --and b.npz",
    needs_engine=False,
    takes_prime=False,
)
def same(
    context: Context,
    model: Model,
    at: Annotated[Any, weights_option("First weights (required)")] = None,
    other: OtherOption = None,
    *,
    rationalize: RationalizeOption = None,
    tolerance: Annotated[
        float | None,
        Option(
            "Relative difference of outputs up to which two functions count as the same (at least 0, less than 1).",
            read=_read_tolerance,
        ),
    ] = None,
) -> Same:
    """Decide whether two sets of weights define the same function, by comparing all coefficients over QQ if possible.

    For different functions the answer contains an input where they differ; both answers contain a certificate. If both have
    the same normal form under the declared symmetries (:mod:`m2bridge.questions.normal_form`), it contains the group elements.

    Examples
    --------
    >>> a, b = {"W1": [[3], [2]], "W2": [[1, 1]]}, {"W1": [[1], [6]], "W2": [["4", "1/4"]]}
    >>> answer = same("mlp(widths=[1,2,1],r=2)", a, b, engine=False)
    >>> answer.verdict, answer.carried
    ('same', True)
    >>> answer = same("mlp(widths=[1,2,1],r=2)", at=a, other={"W1": [[1], [1]], "W2": [[12, 1]]}, engine=False)
    >>> answer.verdict, answer.carried
    ('same', False)
    """
    if at is None or other is None:
        raise InputError("same requires two sets of weights: --at and --and")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise _bad_tolerance(tolerance)
    first, second = (
        resolve(model, one_of(weights, None, rationalize), context.seed) for weights in (at, other)
    )
    weights = (first.weights, second.weights)
    if tolerance is None:
        compared = comparison(model, *weights, context.seed)
    else:
        compared = comparison_up_to(model, *weights, context.seed, tolerance)
    distance = (
        None if compared.same and tolerance is None else relative_distance(model, *weights, context.seed)
    )
    forms, carried = [], None
    if compared.same is not False and tolerance is None and model.knowledge.symmetries:
        forms = [normal_form(model, point.weights, context.seed) for point in (first, second)]
        equal = all((forms[0].weights[name] == forms[1].weights[name]).all() for name in model.parameters)
        carried = True if equal else None if forms[0].left or forms[1].left else False
    relation = None
    if compared.same and not forms:
        with suppress(OverflowError):  # weights outside of the range of float64 are not aligned
            start, end = (point.vector.astype(np.float64) for point in (first, second))
            relation = alignment(model.program, start, end, max(ROUNDING, tolerance or 0.0))
    context.add_evidence(compared.evidence)
    if carried:
        method = "one normal form under the known symmetries"
        evidence = Evidence("same_function", True, "symmetry", method, certainty=Certainty.PROVED)
        context.add_evidence(replace(evidence, scope="at-point", ancestry="construction"))
    decided = True if carried else compared.same
    proved = compared.certainty is Certainty.PROVED or bool(carried)
    return context.build_result(
        Same,
        model=model.spec,
        options={"rationalize": rationalize, "tolerance": tolerance},
        certainty=Certainty.PROVED if proved and decided is not None else compared.certainty,
        first=first.document(None),
        second=second.document(None),
        verdict="undecided" if decided is None else "same" if decided else "different",
        example=compared.example,
        distance=distance,
        carried=carried,
        relation=None if relation is None else tuple(relation),
        first_moves=forms[0].moves if carried else (),
        second_moves=forms[1].moves if carried else (),
        certificate=comparison_certificate(model, first.vector, second.vector, compared),
    )
