"""Which symmetries does a network have? They are searched in its program, verified, named, and compared with the known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from m2bridge.bounds.model_upper import listed_fields, structural_bound
from m2bridge.bounds.program_upper import UpperBounds
from m2bridge.bounds.searched import MOST_SEARCHED_WEIGHTS
from m2bridge.bounds.upper_bound import UpperBound
from m2bridge.certainty import Certainty
from m2bridge.certificates.points import symmetry_certificates
from m2bridge.errors import InputError, OutOfReachError
from m2bridge.evidence import Evidence, Value
from m2bridge.families import Model
from m2bridge.families.polynomial_map import in_variables, variables_in
from m2bridge.linear.primes import LARGE_PRIME, given_numbers, prime_for
from m2bridge.programs.ranks import GenericRank, generic_rank
from m2bridge.programs.work import OF_DIMENSION, OF_SYMMETRIES, WorkBudget
from m2bridge.questions.kernel import Context, Option, question
from m2bridge.results import Result, register_result
from m2bridge.symmetry.exchanges import exchanged_variables, exchanges, groups_of_swaps
from m2bridge.symmetry.fields import VectorField, each_in_span, in_span
from m2bridge.symmetry.finite import FiniteSymmetry, permutations, signs
from m2bridge.symmetry.names import field_name, known_fields
from m2bridge.symmetry.search import Search
from m2bridge.symmetry.structure import structure
from m2bridge.views import View, shorten

HIGHEST_FIELD_DEGREE = 3
"""The largest degree of vector fields that a user may ask for."""
_MOST_SHOWN_FIELDS = 24  # vector fields that are printed
_MOST_SHOWN_SIGNS = 6  # changes of signs that are printed


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundField:
    """A verified vector field: ``[i, c, [[j, e], ...]]`` moves flat weight i by c times the monomial.

    `name` is None if the symmetry has no standard name; `new` is True if it is not a combination of the model's known
    symmetries, `grouped` that it is one of the groups by structure.
    """

    degree: int
    coefficients: tuple[Value, ...]
    name: str | None
    verified: bool
    new: bool
    grouped: bool = False

    def written(self, variables: Sequence[str] = ()) -> str:
        """Write how the field moves the variables, or the flattened weights w0, w1, ...: ``dw0 = 2*w2, dw2 = w1^2-w0``."""

        def name(j: int) -> str:
            return variables[j] if variables else f"w{j}"

        moved: dict[int, str] = {}
        for i, c, monomial in self.coefficients:
            factors = [name(j) if e == 1 else f"{name(j)}^{e}" for j, e in monomial]
            number = [] if abs(c) == 1 and factors else [str(abs(c))]
            sign = "-" if c < 0 else "+" if i in moved else ""
            moved[i] = moved.get(i, "") + sign + "*".join([*number, *factors])
        return ", ".join(f"d{name(i)} = {text}" for i, text in moved.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetryGroup:
    """A group that follows from the structure of the program: its name, its dimension, the weights that it moves, and a text."""

    name: str
    dim: int
    acts_on: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSymmetry:
    """A group that the model names: whether its generators are verified, and whether the search found them again.

    `verified` and `found` are None where that is not known.
    """

    name: str
    verified: bool | None
    found: bool | None


@register_result
@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetries(Result):
    """The symmetries of a network that were found and verified.

    Attributes
    ----------
    parameters, generic_fiber_dim: number of weights, and the generic corank of the Jacobian at random points (probable).
    symmetry_dim: dimension of the generic orbits of all fields up to the degree, by the verified ones; None where some were not
        searched or not verified, and those that were found do not explain the fiber.
    symmetry_lower_bound: dimension of the generic orbits of the verified fields, proved as a lower bound.
    searched_degree: all fields up to this degree were searched; 0 if not all linear ones were.
    upper_bound: a proved upper bound of the dimension of the image, from these fields and the compositions of the program.
    explains_fiber: whether the generic fiber has the dimension of the orbits.
    groups: symmetries that follow from the structure of the program.
    fields, finite: verified vector fields (none if they are too many to be listed) and finite groups.
    known: the groups that the model names.
    unverified: fields found modulo p whose identity was out of reach.
    complete: whether all fields up to the degree that was asked for were searched, as far as needed to explain the fiber.
    certificate: the identity of each field and, where the bounds meet, the dimension, for `m2bridge check`.
    """

    ANALYSIS: ClassVar[str] = "symmetries"
    VERSION: ClassVar[int] = 5
    HEADLINE: ClassVar[tuple[str, ...]] = ("symmetry_dim", "generic_fiber_dim")

    parameters: int
    generic_fiber_dim: int
    symmetry_dim: int | None
    symmetry_lower_bound: int
    searched_degree: int
    upper_bound: int
    explains_fiber: bool
    groups: tuple[SymmetryGroup, ...]
    fields: tuple[FoundField, ...]
    finite: tuple[FiniteSymmetry, ...]
    known: tuple[NamedSymmetry, ...]
    unverified: int
    complete: bool
    statement: str
    certificate: tuple[Mapping[str, Value], ...] = ()

    @property
    def headline(self) -> tuple[str, ...]:
        return self.HEADLINE[self.symmetry_dim is None :]

    def certified(self) -> frozenset[str]:
        kinds = {document["statement"]["kind"] for document in self.certificate}
        if "dimension" not in kinds:
            return frozenset()
        shown = {"image_dim", "generic_fiber_dim"}
        # orbits lie in fibers: the dimension of both is shown where the verified fields reach that of the fiber
        if self.explains_fiber and ("symmetry" in kinds or not self.generic_fiber_dim):
            shown |= {"symmetry_dim"}
        return frozenset(shown)

    def view(self) -> View:
        facts = [
            ("generic orbits", f"{self._orbits()} in {self.parameters} weights"),
            ("generic fiber", f"dimension {self.generic_fiber_dim}"),
            ("dimension", f"at most {self.upper_bound}"),
        ]
        names = variables_in(self.model)
        fields = [
            ("new field" if f.new else "field", f.name or shorten(f.written(names), 160))
            for f in self.fields
            if not f.grouped
        ]
        facts += [("group", group.text) for group in self.groups]
        finite = [("finite", group.text) for group in self.finite]
        signs = [fact for fact, group in zip(finite, self.finite, strict=True) if group.group == "sign"]
        finite = [fact for fact in finite if fact not in signs]
        for listed, most in (
            (fields, _MOST_SHOWN_FIELDS),
            (finite, _MOST_SHOWN_FIELDS),
            (signs, _MOST_SHOWN_SIGNS),
        ):
            left = len(listed) - most
            facts += listed[:most]
            facts += [("", f"and {left} more (see --json)")] if left > 0 else []
        for item in self.known:
            again = {True: "; also found by the search", False: "; not found by the search", None: ""}[
                item.found
            ]
            verdict = {True: "verified", False: "not a symmetry", None: "not decided"}[item.verified]
            facts.append(("named", f"{item.name}: {verdict}{again}"))
        to_prove = "an upper bound on the dimension of the image that equals its rank"
        if not self.explains_fiber:
            to_prove += ", for example from further symmetries"
        sizes = f"generic orbits of {self._orbits()}, fibers of dimension {self.generic_fiber_dim}"
        left_out = f"; {self._not_searched()}" if self.symmetry_dim is None else ""
        return View(
            answer=sizes + left_out,
            facts=tuple(facts),
            notes=(self.statement,),
            to_prove=to_prove,
        )

    def _orbits(self) -> str:
        if self.symmetry_dim is None:
            return f"dimension at least {self.symmetry_lower_bound}"
        return f"dimension {self.symmetry_dim}"

    def _not_searched(self) -> str:
        """Which vector fields may be missing."""
        if self.complete:
            return f"not verified: {self.unverified} fields found modulo p"
        return _not_searched(self.parameters, self.searched_degree, int(self.options["degree"]))


_NEAR_IDENTITY = (
    " Square roots have two values: scalings are positive, and elements near the identity are meant."
)


def _not_searched(parameters: int, searched: int, degree: int) -> str:
    """Which vector fields of degree at most `degree` were not all searched."""
    first = searched + 1
    degrees = f"degree {first}" if first == degree else f"degree {first} to {degree}"
    return f"not searched: {parameters:,} weights, fields of {degrees}"


@question(
    asks="Symmetries of a network: groups derived from its program, and verified vector fields.",
    quantities={
        "symmetry_dim": "the dimension of the generic orbits of the verified symmetries",
        "generic_fiber_dim": "the dimension of the generic fiber",
        "image_dim": "the dimension of the image, affine",
    },
    example="m2bridge symmetries 'mlp(widths=[5,5,3,1],r=2)'",
    needs_engine=False,
    primes=(2, LARGE_PRIME),
)
def symmetries(
    context: Context,
    model: Model,
    *,
    degree: Annotated[int, Option("Largest degree of the vector fields.", least=1)] = 2,
) -> Symmetries:
    """Find groups and vector fields on the weights that leave a network's function as it is.

    Groups follow from the structure of the program, at any width. In networks with at most 1,500 weights vector fields of degree
    at most `degree` are searched too, degree by degree until the generic fiber is explained.

    Examples
    --------
    >>> found = symmetries("mlp(widths=[2,2,1],r=2)")
    >>> found.symmetry_dim, found.explains_fiber, [field.degree for field in found.fields]
    (3, True, [1, 1, 2])
    """
    if not 1 <= degree <= HIGHEST_FIELD_DEGREE:
        raise InputError(
            f"the degree of fields is at most {HIGHEST_FIELD_DEGREE}, not {degree}", argument="degree"
        )
    program, seed = model.free.program, context.seed
    p = prime_for(given_numbers(model), chosen=context.prime, default=LARGE_PRIME)
    if p < 2 * program.parameter_count:
        raise InputError(f"the prime {p} is too small: most points over F_{p} are special", argument="prime")
    minor = generic_rank(program, p=p, seed=seed)
    if program.polynomial and program.parameter_count <= MOST_SEARCHED_WEIGHTS:
        outcome = _searched(context, model, minor, degree=degree)
    else:
        outcome = _by_structure(model, minor, seed=seed)
        if not program.polynomial and program.parameter_count <= MOST_SEARCHED_WEIGHTS:
            outcome = _searched_further(context, model, minor, outcome, degree=degree)
    rank, corank = minor.rank, program.parameter_count - minor.rank
    bound, explains = outcome.bound, outcome.rank == corank
    exact = explains or (outcome.complete and not outcome.unverified)
    proved = minor.heuristic is None and (explains or bound.value == rank)
    context.add_evidence(*_evidence(outcome.rank, minor, bound, program.parameter_count))
    return context.build_result(
        Symmetries,
        model=model.spec,
        options={"prime": p, "degree": degree},
        certainty=Certainty.PROVED if proved else Certainty.PROBABLE,
        parameters=program.parameter_count,
        generic_fiber_dim=corank,
        symmetry_dim=outcome.rank if exact else None,
        symmetry_lower_bound=outcome.rank,
        searched_degree=outcome.searched_degree,
        upper_bound=bound.value,
        explains_fiber=explains,
        groups=_groups(model),
        fields=_described(model, outcome.fields, p),
        finite=_in_words(model, outcome.finite),
        known=outcome.known,
        unverified=outcome.unverified,
        complete=outcome.complete,
        statement=_statement(
            outcome.rank,
            corank,
            program.parameter_count,
            degree,
            searched=outcome.searched_degree,
            sure=_certainty_of_fiber(proved=proved, heuristic=minor.heuristic is not None),
        )
        + (_NEAR_IDENTITY if program.roots and outcome.rank else ""),
        certificate=symmetry_certificates(
            model, [field.document for field in outcome.fields], minor, bound.argument, bound.value
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was found: verified fields and their rank, finite groups, and the best upper bound of the dimension."""

    fields: Sequence[VectorField]
    rank: int
    finite: Sequence[FiniteSymmetry]
    bound: UpperBound
    searched_degree: int = 0
    complete: bool = False
    unverified: int = 0
    known: tuple[NamedSymmetry, ...] = ()


def _by_structure(model: Model, minor: GenericRank, *, seed: int) -> _Found:
    """Take the symmetries by structure alone, for large or analytic programs."""
    program = model.free.program
    bound = structural_bound(model, p=minor.p, seed=seed)
    fields = listed_fields(program)
    named_fields = known_fields(model.free)
    shown = (
        each_in_span([field for _, field in named_fields], fields, minor.p)
        if named_fields and fields
        else [False] * len(named_fields)
    )
    verdicts: dict[str, bool] = {}
    for (name, _), inside in zip(named_fields, shown, strict=True):
        verdicts[name] = verdicts.get(name, True) and inside
    return _Found(
        fields=fields,
        rank=program.parameter_count - bound.value,
        finite=[*permutations(program), *signs(program)],
        bound=UpperBound(value=bound.value, method=bound.evidence.method, argument=bound.argument),
        known=tuple(
            NamedSymmetry(name=name, verified=inside or None, found=inside)
            for name, inside in verdicts.items()
        ),
    )


def _searched(context: Context, model: Model, minor: GenericRank, *, degree: int) -> _Found:
    """Search vector fields degree by degree, add those by structure, and bound the dimension by compositions too."""
    program, seed, p = model.free.program, context.seed, minor.p
    corank = program.parameter_count - minor.rank
    context.report_progress(
        f"searching fields of degree up to {degree}; the generic fiber has dimension {corank}"
    )
    work = WorkBudget(OF_SYMMETRIES, context.clock.check)
    search = Search(program, p=p, seed=seed, work=work, corank=corank, all_affine=True)
    searched = 0
    with context.keep_partial("the search for vector fields"):
        for highest in range(1, degree + 1):
            context.clock.check()
            search.run(highest, first=highest)
            searched = highest if search.complete else searched
    if not search.explains_fiber:
        search.add_verified(structure(program).fields())
    bounds = UpperBounds(p=p, seed=seed, work=WorkBudget(0.0))
    with context.keep_partial("compositions of the program"):
        context.clock.check()
        bounds = UpperBounds(p=p, seed=seed, work=WorkBudget(OF_SYMMETRIES, context.clock.check))
        bounds.best(program, search.fields, minor.rank)
    finite = (*permutations(program), *signs(program))
    affine = [field for field in search.fields if field.degree <= 1]
    return _Found(
        fields=list(search.fields),
        rank=search.rank,
        finite=[*finite, *exchanges(program, finite, p=p)],
        bound=bounds.best(program, search.fields, minor.rank),
        searched_degree=searched,
        complete=search.complete and context.limit is None,
        unverified=search.unverified,
        known=_known(known_fields(model.free), affine, search),
    )


def _searched_further(
    context: Context, model: Model, minor: GenericRank, outcome: _Found, *, degree: int
) -> _Found:
    """Search vector fields of an analytic program beside those by structure, if these do not explain the fiber."""
    program, seed, p = model.free.program, context.seed, minor.p
    corank = program.parameter_count - minor.rank
    if outcome.rank == corank:
        return outcome
    context.report_progress(
        f"searching fields of degree up to {degree}; the generic fiber has dimension {corank}"
    )
    searched, work = 0, WorkBudget(OF_DIMENSION, context.clock.check)
    with suppress(OutOfReachError), context.keep_partial("the search for vector fields"):
        context.clock.check()
        search = Search(program, p=p, seed=seed, work=work, corank=corank)
        search.add_verified(outcome.fields)
        bounds = UpperBounds(p=p, seed=seed)
        for highest in range(1, degree + 1):
            search.run(highest, first=highest)
            searched = highest if search.complete else searched
            further = [field for field in search.fields if field not in outcome.fields]
            outcome = replace(
                outcome,
                fields=[*outcome.fields, *further],
                rank=max(outcome.rank, search.rank),
                bound=bounds.best(program, search.fields, minor.rank),
                searched_degree=searched,
                complete=search.complete,
                unverified=search.unverified,
            )
    return replace(outcome, complete=outcome.complete and context.limit is None)


def _groups(model: Model) -> tuple[SymmetryGroup, ...]:
    """Return the symmetries by structure, as groups."""
    structural = structure(model.free.program)
    groups = [
        SymmetryGroup(
            name=item.name, dim=item.dim, acts_on=item.moved, text=in_variables(model.spec, item.text)
        )
        for item in structural.families
    ]
    if structural.unused:
        count = len(structural.unused)
        groups.append(
            SymmetryGroup(
                name=f"R^{count}",
                dim=count,
                acts_on=(),
                text=f"translations of {count} unused weight{'s' * (count != 1)}",
            )
        )
    return tuple(groups)


def _described(model: Model, fields: Sequence[VectorField], p: int) -> tuple[FoundField, ...]:
    """Return the fields with their names, and whether groups of the model or by structure contain them."""
    program = model.free.program
    named_fields = [field for _, field in known_fields(model.free)]
    grouped = each_in_span(fields, listed_fields(program), p)
    shown = each_in_span(fields, named_fields, p)
    names = [field_name(program, field) for field in fields]
    return tuple(
        FoundField(
            degree=field.degree,
            coefficients=tuple(field.document),
            name=None if name is None else in_variables(model.spec, name),
            verified=True,
            new=not old,
            grouped=inside,
        )
        for field, name, old, inside in zip(fields, names, shown, grouped, strict=True)
    )


def _in_words(model: Model, finite: Sequence[FiniteSymmetry]) -> tuple[FiniteSymmetry, ...]:
    """Name finite groups as the user does, and add those that exchange some variables of a map where not all can be."""
    told = [
        replace(item, acts_on=tuple(in_variables(model.spec, w) for w in item.acts_on)) for item in finite
    ]
    if not any("x axis 0" in item.acts_on for item in finite):
        told += groups_of_swaps(exchanged_variables(model.user))
    return tuple(told)


def _known(
    named_fields: Sequence[tuple[str, VectorField]], affine: Sequence[VectorField], search: Search
) -> tuple[NamedSymmetry, ...]:
    """Verify the groups that the model names once more, and compare them with the fields of the search."""
    named = []
    for name in dict.fromkeys(name for name, _ in named_fields):
        fields = [field for other, field in named_fields if other == name]
        verified = all(search.verifier.is_symmetry(field) for field in fields)
        again = all(in_span(field, affine, search.p) for field in fields)
        named.append(NamedSymmetry(name=name, verified=verified, found=again))
    return tuple(named)


def _evidence(orbits: int, minor: GenericRank, bound: UpperBound, parameters: int) -> tuple[Evidence, ...]:
    """Bound orbits, image and fiber from both sides; bounds by the Jacobian are proved unless its rank is heuristic."""
    fields, jacobian = "rank of verified vector fields at a point", "weights minus the rank of the Jacobian"
    point = "Jacobian rank at a random integer point"
    over: dict[str, Any] = {"prime": minor.p, "scope": "generic"}
    by_fields = over | {"certainty": Certainty.PROVED, "ancestry": "program"}
    by_rank = over | {"certainty": Certainty.PROVED if minor.heuristic is None else Certainty.PROBABLE}
    left, corank = parameters - bound.value, parameters - minor.rank
    return (
        Evidence("symmetry_dim", orbits, "found", fields, relation=">=", **by_fields),
        Evidence("symmetry_dim", corank, "modular", jacobian, relation="<=", **by_rank),
        Evidence("image_dim", minor.rank, "modular", point, relation=">=", **by_rank),
        Evidence("image_dim", bound.value, "found", bound.method, relation="<=", **by_fields),
        Evidence("generic_fiber_dim", corank, "modular", jacobian, relation="<=", **by_rank),
        Evidence("generic_fiber_dim", left, "found", bound.method, relation=">=", **by_fields),
    )


def _certainty_of_fiber(*, proved: bool, heuristic: bool) -> str:
    """Return the certainty of the dimension of the generic fiber, and of its upper bound by the rank of the Jacobian."""
    if proved:
        return "proved"
    return "probable" if heuristic else "the upper bound is computed, equality is probable"


def _statement(orbits: int, corank: int, parameters: int, degree: int, *, searched: int, sure: str) -> str:
    """State what the fields of the search explain, and which ones were not searched."""
    head = f"Verified vector fields have generic orbits of dimension {orbits} in {parameters} weights."
    if orbits == corank:
        return f"{head} They explain the generic fiber: its dimension is {corank}."
    head += f" The generic fiber has dimension {corank} ({sure})"
    if searched == degree:
        return f"{head}: the rest is not explained by fields of degree at most {degree}."
    tried = f"the rest is not explained by fields of degree at most {searched}; " if searched else ""
    return f"{head}; {tried}{_not_searched(parameters, searched, degree)}."
