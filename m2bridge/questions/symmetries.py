"""Which symmetries does a network have? They are searched in its program, verified, named, and compared with the known ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from m2bridge.engine import Engine, Limits
from m2bridge.errors import InputError, NotPolynomialError
from m2bridge.linear.primes import given_numbers, prime_for
from m2bridge.linear.residues import DEFAULT_PRIME, check_prime
from m2bridge.models import Model
from m2bridge.programs.ranks import generic_rank
from m2bridge.questions.workbench import model_of
from m2bridge.results import Certainty, Evidence, Result, Value, register_result, weigh
from m2bridge.symmetry.algebra import LieAlgebra, in_span, lie_algebra
from m2bridge.symmetry.bounds import Bounds
from m2bridge.symmetry.fields import VectorField, orbit_rank
from m2bridge.symmetry.finite import FiniteSymmetry, finite_symmetries
from m2bridge.symmetry.known import declared_fields, known_fields
from m2bridge.symmetry.names import field_name
from m2bridge.symmetry.search import Search

Report = Callable[[str], None]
SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundField:
    """A verified vector field: ``[i, c, [[j, e], ...]]`` moves flat weight i by c times the monomial.

    `name` is None where it is none that people know; `new` says that it is no combination of the model's known symmetries.
    """

    degree: int
    coefficients: tuple[Value, ...]
    name: str | None
    verified: bool
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSymmetry:
    """A symmetry that the model or the user names: whether its generators are verified, and whether the search found them again.

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
    symmetry_dim: dimension of the generic orbits of the verified fields, proved as a lower bound.
    upper_bound: a proved upper bound of the dimension of the image, from these fields and the cuts of the program.
    explains_fiber: whether the generic fiber has the dimension of the orbits.
    fields, finite: what was found. known, declared: what the model and the user name.
    algebra: the Lie algebra of the affine fields. unverified: fields found modulo p whose identity was out of reach.
    complete: whether all fields up to the degree were searched, as far as needed to explain the fiber.
    """

    ANALYSIS: ClassVar[str] = "symmetries"
    VERSION: ClassVar[int] = 1

    parameters: int
    generic_fiber_dim: int
    symmetry_dim: int
    upper_bound: int
    explains_fiber: bool
    fields: tuple[FoundField, ...]
    finite: tuple[FiniteSymmetry, ...]
    known: tuple[NamedSymmetry, ...]
    declared: tuple[NamedSymmetry, ...]
    algebra: LieAlgebra | None
    unverified: int
    complete: bool
    statement: str


def symmetries(
    model: Model | str,
    *,
    engine: Engine | bool | None = None,
    prime: int | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Report | None = None,
    degree: int = 2,
    declared: Sequence[Mapping[str, Any]] | None = None,
) -> Symmetries:
    """Vector fields of degree at most `degree` and finite groups that leave a polynomial network's function as it is.

    Parameters
    ----------
    degree
        The highest degree of fields; they are searched degree by degree until the generic fiber is explained.
    declared
        Symmetries that the user states, verified and never believed: groups and fields as certificates write them,
        ``{"group": "gl", "size": 2, "axes": {"Q": [1, 0], "K": [-1, 0]}}`` or ``{"field": [[0, 1, [[0, 1]]]]}``.

    Examples
    --------
    >>> found = symmetries("mlp(widths=[2,2,1],r=2)")
    >>> found.symmetry_dim, found.explains_fiber, [field.degree for field in found.fields]
    (3, True, [1, 1, 2])
    """
    start = time.perf_counter()
    model = model_of(model)
    if degree < 1 or degree > 3:
        raise InputError(f"the degree of fields is 1, 2 or 3, not {degree}", argument="degree")
    program = model.free.program
    if not program.polynomial or program.vanishing:
        raise NotPolynomialError(
            f"{model.spec}: symmetries are searched for polynomial networks with free weights"
        )
    chosen = None if prime is None else check_prime(prime)
    p = prime_for(given_numbers(model), chosen=chosen, default=DEFAULT_PRIME)
    if p < 2 * program.parameter_count:
        raise InputError(f"the prime {p} is too small: most points over F_{p} are special", argument="prime")
    seconds = min(SECONDS, (limits and limits.wall_seconds) or SECONDS)
    rank = generic_rank(program, p=p, seed=seed).rank
    corank = program.parameter_count - rank
    if progress:
        progress(f"searching fields of degree up to {degree}; the generic fiber has dimension {corank}")
    search = Search(program, p=p, seed=seed, seconds=seconds, corank=corank, all_affine=True)
    stated = _declared(model, search, declared if declared is not None else getattr(model, "declared", ()))
    found = search.run(degree)
    bound = Bounds(p=p, seed=seed, seconds=seconds).best(program, found.fields, rank)
    fields = list(found.fields)
    known = known_fields(model.free)
    affine = [field for field in fields if field.degree <= 1]
    evidence = _evidence(found.rank, rank, bound.value, program.parameter_count, bound.method, p)
    return Symmetries(
        model=model.spec,
        options={"prime": p, "degree": degree},
        certainty=Certainty.PROVED,
        agreement=weigh(evidence).verdict,
        evidence=evidence,
        seed=seed,
        seconds=time.perf_counter() - start,
        parameters=program.parameter_count,
        generic_fiber_dim=corank,
        symmetry_dim=found.rank,
        upper_bound=bound.value,
        explains_fiber=found.explains_fiber,
        fields=tuple(
            FoundField(
                degree=field.degree,
                coefficients=tuple(field.document),
                name=field_name(program, field),
                verified=True,
                new=not in_span(field, [item for _, item in known], p),
            )
            for field in fields
        ),
        finite=finite_symmetries(program),
        known=_known(known, affine, search, p),
        declared=stated,
        algebra=lie_algebra(affine, orbit_rank(affine, search.point, p), p),
        unverified=found.unverified,
        complete=found.complete,
        statement=_statement(found.rank, corank, program.parameter_count, degree, complete=found.complete),
    )


def _declared(model: Model, search: Search, given: Sequence[Mapping[str, Any]]) -> tuple[NamedSymmetry, ...]:
    """Verify what the user states, and keep what holds."""
    found = []
    for number, item in enumerate(given, start=1):
        name = str(item.get("name", f"declared symmetry {number}"))
        verdicts = [search.verifier.is_symmetry(field) for field in declared_fields(model, item)]
        verdict = None if None in verdicts else all(verdicts)
        if verdict:
            for field in declared_fields(model, item):
                search.take(field)
        found.append(NamedSymmetry(name=name, verified=verdict, found=None))
    return tuple(found)


def _known(
    known: Sequence[tuple[str, VectorField]], affine: Sequence[VectorField], search: Search, p: int
) -> tuple[NamedSymmetry, ...]:
    groups: dict[str, list[VectorField]] = {}
    for name, field in known:
        groups.setdefault(name, []).append(field)
    return tuple(
        NamedSymmetry(
            name=name,
            verified=all(search.verifier.is_symmetry(field) for field in items),
            found=all(in_span(field, affine, p) for field in items),
        )
        for name, items in groups.items()
    )


def _evidence(
    orbits: int, rank: int, upper: int, parameters: int, method: str, p: int
) -> tuple[Evidence, ...]:
    return (
        Evidence(
            quantity="symmetry_dim", witness="found", method="rank of verified vector fields at a point",
            value=orbits, relation=">=", certainty=Certainty.PROVED, prime=p, scope="generic",
        ),
        Evidence(
            quantity="symmetry_dim", witness="modular", method="weights minus the rank of the Jacobian",
            value=parameters - rank, relation="<=", certainty=Certainty.PROVED, prime=p, scope="generic",
        ),
        Evidence(
            quantity="image_dim", witness="modular", method="Jacobian rank at a random integer point",
            value=rank, relation=">=", certainty=Certainty.PROVED, prime=p, scope="generic",
        ),
        Evidence(
            quantity="image_dim", witness="found", method=method, value=upper, relation="<=",
            certainty=Certainty.PROVED, prime=p, scope="generic",
        ),
    )  # fmt: skip


def _statement(orbits: int, corank: int, parameters: int, degree: int, *, complete: bool) -> str:
    head = f"Verified vector fields have generic orbits of dimension {orbits} in {parameters} weights."
    if orbits == corank:
        return f"{head} They explain the generic fiber: its dimension is {corank}, proved."
    searched = "all" if complete else "some"
    return (
        f"{head} The generic fiber has dimension {corank} (at most that is proved, equality is probable): "
        f"the rest is not explained by {searched} fields of degree at most {degree}."
    )
