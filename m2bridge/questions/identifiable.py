"""Which functions of the weights does the network's function determine, and up to what?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Annotated, Any, ClassVar

import numpy as np

from m2bridge.bounds.model_upper import listed_fields, trivial_bounds
from m2bridge.bounds.searched import MOST_SEARCHED_WEIGHTS
from m2bridge.certainty import Certainty
from m2bridge.certificates.produce import MOST_CHECKED_INSTRUCTIONS, certificate, lower_by_minor, spec_of
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.evidence import Evidence
from m2bridge.families import Model
from m2bridge.families.polynomial_map import by_variable, in_variables, variables_in
from m2bridge.frontends.recording import record
from m2bridge.frontends.weight_functions import is_compared, weight_function
from m2bridge.limits import LimitReached
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.programs.instructions import flat_parts
from m2bridge.programs.points import WEIGHTS, integers
from m2bridge.programs.program import Program, parse_program
from m2bridge.programs.ranks import generic_rank
from m2bridge.programs.work import OF_DIMENSION, OF_SYMMETRIES, WorkBudget
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.results import Result, register_result
from m2bridge.symmetry.fields import VectorField
from m2bridge.symmetry.identifiability import (
    DETERMINED,
    NOT_DETERMINED,
    entries_read,
    extended,
    finite_move,
    first_moving,
    freedoms,
    kept_rank,
    moves,
    multiplied,
    neighbouring_products,
    with_function,
)
from m2bridge.symmetry.identities import Verifier
from m2bridge.symmetry.search import Search
from m2bridge.symmetry.structure import structural_rank
from m2bridge.views import Rows, View, shorten

_MOST_SHOWN_WEIGHTS = 200  # larger weights are not shown as examples
_MOST_VERIFIED_FIELDS = 500  # more symmetries are not verified one by one
UNDECIDED = "not moved by the symmetries found"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiableFunction:
    """A function of the weights: its text, what is determined of it, and a symmetry that moves it; None if none does."""

    function: str
    verdict: str
    moved_by: str | None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiable(Result):
    """What the function of a network determines of its weights, near generic weights.

    Attributes
    ----------
    parameters: the number of weights.
    symmetry_dim, generic_fiber_dim: the dimension of the orbits of the symmetries found, and of the generic fiber.
    explains_fiber: whether these are equal; only then a function that no symmetry moves is determined.
    functions: one row for each function. `verdict` is determined (locally: finitely many values), what it is determined up to,
        not determined, or not moved by the symmetries found, if these do not explain the fiber.
    example: for one function that is moved, two weights with the same function of the network and different values; None for
        large networks.
    verdict: that of the function that was asked for; None for a table.
    certificate: of this verdict, for `m2bridge check`: symmetries that keep the function and explain the generic fiber, or one
        that moves it.
    """

    ANALYSIS: ClassVar[str] = "identifiable"
    VERSION: ClassVar[int] = 2
    HEADLINE: ClassVar[tuple[str, ...]] = ("verdict", "explains_fiber")

    parameters: int
    symmetry_dim: int
    generic_fiber_dim: int
    explains_fiber: bool
    functions: tuple[IdentifiableFunction, ...]
    example: Mapping[str, Any] | None
    verdict: str | None = None
    certificate: tuple[Mapping[str, Any], ...] = ()

    @property
    def headline(self) -> tuple[str, ...]:
        return self.HEADLINE[1:] if self.verdict is None else self.HEADLINE[:1]

    def certified(self) -> frozenset[str]:
        """Return the verdict, if the checker can compare the text of the function, unless it was a Python function."""
        shown = [document["statement"]["verdict"] for document in self.certificate]
        if shown != [self.verdict]:
            return frozenset()
        text = self.options["function"]
        shapes = parse_program(self.certificate[0]["statement"]["function"]).parameters
        shapes = dict.fromkeys(variables_in(self.model), ()) or shapes
        return frozenset({"verdict"} if text is None or is_compared(text, shapes) else ())

    def view(self) -> View:
        rows = tuple((row.function, row.verdict, row.moved_by or "") for row in self.functions)
        one = self.functions[0] if len(self.functions) == 1 else None
        count = sum(row.verdict == DETERMINED for row in self.functions)
        answer = (
            f"{one.function}: {one.verdict}" if one else f"{count} of {len(rows)} functions are determined"
        )
        answer = answer if rows else "no function was decided"
        fiber = f"symmetries of dimension {self.symmetry_dim}, generic fiber of dimension {self.generic_fiber_dim}"
        table = "The table rests on symmetries that were verified here; --function NAME gives one row a certificate."
        local = "Determined means up to finitely many values: signs and permutations may remain."
        left = "The symmetries that were found do not explain the generic fiber; others may move what these do not."
        return View(
            answer=answer,
            decided=any(row.verdict != UNDECIDED for row in self.functions),
            facts=(("fiber", fiber), *self._example()),
            tables=(
                Rows(
                    title="Functions of the weights",
                    columns=("function", "determined", "moved by, for example"),
                    cells=rows,
                ),
            ),
            notes=(
                local,
                *(() if self.explains_fiber else (left,)),
                *((table,) if self.verdict is None else ()),
            ),
            to_prove=self._to_prove(),
        )

    def _to_prove(self) -> str:
        if self.certificate:
            return "a certificate of this text: `check` reads no broadcasting, no exponents from 1000 on, and @ of matrices only"
        if self.explains_fiber:
            return "an identity that shows that all symmetries keep the functions that none was found to move"
        return "symmetries that explain the generic fiber"

    def _example(self) -> list[tuple[str, str]]:
        """Show two weights with the same function of the network."""
        if self.example is None:
            return []
        return [(key, shorten(str(value).replace("'", ""), 160)) for key, value in self.example.items()]


@question(
    asks="Which functions of the weights are determined by the function of the network, and up to what.",
    quantities={
        "explains_fiber": "whether the symmetries found explain the generic fiber",
        "verdict": "what is determined of the function",
    },
    example="m2bridge identifiable 'lightning(d=3,dp=3,a=2,t=3)' --function 'K.T @ Q'",
    needs_engine=False,
    primes=(2, LARGE_PRIME),
)
def identifiable(
    context: Context,
    model: Model,
    *,
    function: Annotated[
        Any,
        Option(
            "Function of the weights, e.g. 'K.T @ Q' (default: each weight, and each product of weights of "
            "neighbouring layers).",
            read=str,
        ),
    ] = None,
) -> Identifiable:
    """Decide which functions of the weights are determined by the network's function, near generic weights.

    `function` is a text with ``+ - * @ **``, ``.T`` and indices, or in Python a function of the weights as keyword arguments.
    Without it, all weights and all products of neighbouring weights are listed. A function that a verified symmetry moves is not
    determined; one that all of them keep is determined locally if they explain the generic fiber.

    Examples
    --------
    >>> found = identifiable("lightning(d=3,dp=3,a=2,t=3)")
    >>> [(row.function, row.verdict) for row in found.functions][2:]
    [('V', 'determined up to scale'), ('Q.T @ K', 'determined up to scale')]
    """
    program = model.free.program
    p = prime_for(given_numbers(model), chosen=context.prime, default=LARGE_PRIME)
    functions = _functions(model, function)
    try:
        decision = _Decision(context, model, p)
    except LimitReached:
        context.add_evidence(*trivial_bounds(model))
        raise
    rows: dict[str, _Decided] = {}
    with context.keep_partial("functions of the weights"):
        for name, recorded in functions.items():
            context.clock.check()
            context.report_progress(f"function {name}")
            rows[name] = decision.decide(recorded)
    asked = next(iter(rows.values()), None) if function is not None else None
    documents: tuple[Mapping[str, Any], ...] = ()
    with context.keep_partial("the certificate"):
        context.clock.check()
        documents = () if asked is None else _certificate(model, decision, asked)
    sure = decision.explains_fiber and decision.minor.heuristic is None
    sure = sure and all(row.verdict != UNDECIDED for row in rows.values())
    certainty = Certainty.COMPUTED if sure else Certainty.PROBABLE
    method = "rank of the symmetries and of the Jacobian"
    context.add_evidence(
        Evidence(
            "explains_fiber", decision.explains_fiber, "modular", method, prime=p, certainty=certainty, scope="generic"
        )
    )  # fmt: skip
    if asked is not None:
        certainty = Certainty.PROVED if documents else certainty
        value = None if asked.verdict == UNDECIDED else asked.verdict
        method = _method(asked.verdict, explains_fiber=decision.explains_fiber)
        context.add_evidence(
            Evidence("verdict", value, "found", method, prime=p, certainty=certainty, scope="generic")
        )
    return context.build_result(
        Identifiable,
        model=model.spec,
        options={"prime": p, "function": function if isinstance(function, str) else None},
        certainty=certainty,
        parameters=program.parameter_count,
        symmetry_dim=decision.rank,
        generic_fiber_dim=decision.corank,
        explains_fiber=decision.explains_fiber,
        functions=tuple(
            IdentifiableFunction(function=name, verdict=row.verdict, moved_by=row.moved_by)
            for name, row in rows.items()
        ),
        example=None if asked is None else decision.example(next(iter(functions.values()))),
        verdict=None if asked is None else asked.verdict,
        certificate=documents,
    )


def _method(verdict: str, *, explains_fiber: bool) -> str:
    """State which symmetries decide the verdict, or why it is open."""
    if verdict == DETERMINED:
        return "symmetries that keep the function and explain the generic fiber"
    if verdict == NOT_DETERMINED:
        return "a symmetry that moves the function"
    if verdict != UNDECIDED:
        return "symmetries that keep the function, and one that moves it"
    reason = (
        "this was not verified as an identity" if explains_fiber else "they do not explain the generic fiber"
    )
    return f"the symmetries found keep the function, but {reason}"


def _certificate(model: Model, decision: _Decision, asked: _Decided) -> tuple[Mapping[str, Any], ...]:
    """Return the certificate of a verdict; none if it needs more vector fields than are listed, or a rank that is heuristic."""
    function, fields = asked.function, asked.fields
    moved = asked.verdict == NOT_DETERMINED
    too_few = len(fields) < (1 if moved else decision.corank)
    too_long = max(len(function.instructions), len(decision.program.instructions)) > MOST_CHECKED_INSTRUCTIONS
    if (
        asked.verdict == UNDECIDED
        or too_few
        or too_long
        or not function.polynomial
        or model.free is not model
    ):
        return ()
    point = {"seed": decision.seed, "stream": WEIGHTS, "fixed": []}
    argument = {"prime": decision.p, "weights": point, "fields": [field.document for field in fields]}
    if not moved:
        lower = lower_by_minor(decision.program, decision.minor)
        if lower is None:
            return ()
        argument["lower"] = lower
    statement = {"kind": "identifiable", "function": function.text, "verdict": asked.verdict}
    return (certificate(decision.program, statement, argument, spec=spec_of(model)),)


def _functions(model: Model, function: str | Callable[..., Any] | None) -> Mapping[str, Program]:
    """Return the functions that are asked about: the given one, or all weights and products of neighbouring weights."""
    program = model.free.program
    shapes = program.parameters
    named = partial(by_variable, model.spec)
    if isinstance(function, str):
        return {function: weight_function(function, shapes, named)}
    if callable(function):
        recorded = record(function, shapes).program
        if len(recorded.outputs) != 1:
            raise InputError("the function of the weights must return one array", argument="function")
        name = getattr(function, "__name__", "function")
        return {f"{name}()" if name in shapes else name: recorded}
    if function is not None:
        raise InputError("the function must be a string or a Python function", argument="function")
    names = variables_in(model.spec) or shapes
    return {name: weight_function(name, shapes, named) for name in names} | neighbouring_products(program)


@dataclass(frozen=True, slots=True)
class _Decided:
    """A verdict about a function, a symmetry that moves it, in words, and what a certificate of the verdict names.

    `function` is multiplied by a new weight if it is determined up to that. `fields` keep it, or are one that moves it; none if
    they are too many.
    """

    verdict: str
    moved_by: str | None
    function: Program
    fields: Sequence[VectorField]


class _Decision:
    """Decides about functions, with the symmetries by structure and, where these do not explain the fiber, those of a search."""

    def __init__(self, context: Context, model: Model, p: int) -> None:
        program = model.free.program
        self.spec, self.program, self.p, self.seed = model.spec, program, p, context.seed
        self.structural = self.rank = structural_rank(program, p=p, seed=self.seed)
        self.minor = generic_rank(
            program,
            p=p,
            seed=self.seed,
            upper=program.parameter_count - self.rank,
            memory_limit=context.limits.memory_bytes,
            report=context.progress,
        )
        self.searched: list[VectorField] = []
        self.corank = program.parameter_count - self.minor.rank
        if self.rank < self.corank and program.parameter_count <= MOST_SEARCHED_WEIGHTS:
            work = WorkBudget(OF_SYMMETRIES if program.polynomial else OF_DIMENSION, context.clock.check)
            with suppress(OutOfReachError), context.keep_partial("the search for vector fields"):
                search = Search(program, p=p, seed=self.seed, work=work, corank=self.corank)
                if not program.polynomial:
                    search.add_verified(listed_fields(program))
                search.run(2)
                self.rank = max(self.rank, search.rank)
                self.searched = list(search.fields)
        self.explains_fiber = self.rank == self.corank

    def decide(self, function: Program) -> _Decided:
        """Decide about one function."""
        moving = self._moving(function)
        if moving is None:
            keeping = self._keeping(function) if self.explains_fiber else None
            verdict = UNDECIDED if keeping is None else DETERMINED
            return _Decided(verdict, None, function, keeping or ())
        text, field = moving
        for freedom in (
            freedoms(function.instructions[function.outputs[0][1]].shape) if self.explains_fiber else ()
        ):
            product = multiplied(function, freedom)
            keeping = self._keeping(product, freedom.motions(self.program.parameter_count))
            if keeping is not None and self._rank_of(function) > prod(freedom.shape):
                return _Decided(freedom.text, text, product, keeping)
        return _Decided(NOT_DETERMINED, text, function, (field,))

    def _rank_of(self, function: Program) -> int:
        """Return the generic rank of a function of the weights: with a smaller one its multiples may be all its values."""
        return generic_rank(function, p=self.p, seed=self.seed, upper=function.parameter_count).rank

    def example(self, function: Program) -> dict[str, Any] | None:
        """Return two weights with the same function of the network at which the function of the weights differs."""
        moving = first_moving(self.program, function, p=self.p, seed=self.seed)
        if moving is None or self.program.parameter_count > _MOST_SHOWN_WEIGHTS:
            return None
        point = np.random.default_rng(self.seed).integers(1, 10, size=self.program.parameter_count)
        moved = finite_move(moving[1], [int(w) for w in point])
        if moved is None:
            return None
        return {"weights": self._named(point.tolist()), "same function": self._named(moved)}

    def _named(self, flat: Sequence[Any]) -> dict[str, Any]:
        """Arrange flat weights as arrays of exact texts."""
        values = np.array([str(w) for w in flat], dtype=object)
        layout = flat_parts(self.program.parameters)
        arrays = {name: values[entries].reshape(shape).tolist() for name, shape, entries in layout}
        return dict(by_variable(self.spec, arrays))

    def _moving(self, function: Program) -> tuple[str, VectorField] | None:
        """Return a symmetry that moves the function at a random point, in words and as a vector field."""
        moving = first_moving(self.program, function, p=self.p, seed=self.seed)
        if moving is not None:
            return in_variables(self.spec, moving[0]), moving[1]
        point = integers(self.seed, WEIGHTS, self.program.parameter_count, self.p)
        for field in self.searched:
            if moves(function, field, point, self.p):
                return f"a vector field of degree {field.degree}", field
        return None

    def _keeping(
        self, function: Program, motions: Sequence[VectorField] = ()
    ) -> Sequence[VectorField] | None:
        """Return the symmetries, with motions of a further weight, if all keep the function, as an identity; else None.

        If the program with the function has fewer symmetries by structure, vector fields are extended one by one.
        """
        count = self.program.parameter_count
        if (
            not self.searched
            and kept_rank(self.program, function, p=self.p, seed=self.seed) == self.structural
        ):
            fields = listed_fields(with_function(self.program, function))
            return [field for field in fields if field.moved[0] < count]
        network = [*self.searched, *listed_fields(self.program)]
        if len(network) < self.corank:
            return None
        keeping = extended(network, function, motions, p=self.p, seed=self.seed)
        if keeping is None:
            return None
        read = entries_read(function, p=self.p, seed=self.seed)
        unsure = [field for field in keeping if not read.isdisjoint(field.moved)]
        if len(unsure) > _MOST_VERIFIED_FIELDS:
            return None
        verifier = Verifier(function, self.p, self.seed) if unsure else None
        if verifier is not None and not all(verifier.is_symmetry(field) for field in unsure):
            return None
        return list(dict.fromkeys(keeping))
