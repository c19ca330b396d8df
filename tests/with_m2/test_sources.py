"""Maps whose source is given by equations: every component of the source counts.

The second computation in the random tests decomposes nothing: it eliminates the variables from the graph of the map, in a script
written here, and takes the radical of what is left. That is the ideal of the closure of the whole image.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from m2bridge import scripts
from m2bridge.cli import main
from m2bridge.engine import Engine, EngineInfo, ProcessEngine, find_engine
from m2bridge.errors import InputError
from m2bridge.questions import source as sources
from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import dimension
from m2bridge.questions.singular_point import singular_point
from m2bridge.questions.source import ClosedPoint, PointField, Source, field_rank
from m2bridge.results import Certainty
from m2bridge.scripts import Script

CONE_AND_PLANE = "x*z-y^2;x*w-y*z"
"""Where x is not 0: (x, y, y^2/x, y^3/x^2), the cone over the twisted cubic; x = 0 forces y = 0: the plane of z and w."""


# -- known answers, derived ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [None, "QQ"])
@pytest.mark.parametrize(
    ("spec", "degree", "codim", "parts"),
    [
        # p = a*s, q = s with a^7 = 2: p^7 = a^7 s^7 = 2 q^7, irreducible over QQ by Eisenstein
        ("map:a,s->a*s;s|a^7-2", 7, 1, [(1, 7)]),
        # the cubic cone projects to the quadric y*w = z^2, the plane x = y = 0 to the plane y = 0: y*(y*w - z^2)
        (f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", 3, 1, [(2, 1), (2, 2)]),
        ("map:x,y->x;y|x*y", 2, 1, [(1, 1), (1, 1)]),  # both axes
        (
            "map:x,y,z->x;y;z|x*z;y*z",
            1,
            1,
            [(1, 1), (2, 1)],
        ),  # a plane and a line: the degree is that of the plane
        ("map:x,y->x|x^2", 1, 0, [(0, 1)]),  # a double line is a line: the image is the point 0
        ("map:x,y->x^2|x^2-2", 1, 0, [(0, 1)]),  # one point, 2
        ("map:x,y->x|x^2-2", 2, 1, [(0, 2)]),  # two conjugate points
        ("map:x,y,z->x;y;z|x*y-z^2;2*x*y-2*z^2", 2, 1, [(2, 2)]),  # an equation given twice
        ("map:x,y->x;y|x^2+y^2", 2, 1, [(1, 2)]),  # two conjugate lines through a rational point
    ],
)
def test_closures_of_every_component(
    engine: Engine, spec: str, degree: int, codim: int, parts: list[tuple[int, int]], field: Any
) -> None:
    found = closure(spec, field=field, engine=engine)
    assert (found.completeness, found.degree, found.codim) == ("complete", degree, codim)
    assert found.certainty is (Certainty.PROVED if field else Certainty.PROBABLE)
    assert found.agreement is True
    assert found.components is not None
    if field:
        assert sorted((c.dim, c.degree) for c in found.components) == parts
    else:  # over F_p a component may split further
        assert sum(c.degree for c in found.components) == sum(d for _, d in parts)


@pytest.mark.parametrize(
    ("spec", "dim"),
    [
        # 0 on the cubic cone, where z^2 = y*w; on the plane (z^2, w*z^2), which is dominant
        (f"map:x,y,z,w->z^2-y*w;w*z^2-y*w^2|{CONE_AND_PLANE}", 2),
        ("map:a,s->a*s;s|a^7-2", 1),
        ("map:x,y,z->z;z^2|x*z;y*z", 1),
        ("map:x,y,z->x;y;x*z|x*z;y*z", 2),
        ("map:x,y->x|x^2-2", 0),
        ("map:x,y->y|x^2", 1),
    ],
)
def test_dimensions_over_all_components(engine: Engine, spec: str, dim: int) -> None:
    found = dimension(spec, engine=engine)
    assert (found.image_dim, found.agreement) == (dim, True)
    assert found.lower_bound <= dim <= found.upper_bound


def test_without_macaulay2_what_was_not_seen_is_not_claimed() -> None:
    found = dimension(f"map:x,y,z,w->z^2-y*w;w*z^2-y*w^2|{CONE_AND_PLANE}", engine=False)
    assert found.lower_bound <= 2 <= found.upper_bound
    assert "perhaps of one component only" in found.statement
    one_of_many = dimension("map:v,x,y,z,w->x^2-2|x^2-2;v*w-1;y*z-v", engine=False)
    assert one_of_many.certainty is Certainty.PROBABLE


@pytest.mark.parametrize(
    ("spec", "at", "verdict", "local"),
    [
        (
            f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}",
            [0, 0, 0, 1],
            "singular",
            2,
        ),  # on the quadric and on the plane
        (f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", [0, 0, 1, 1], "smooth", 2),  # on the plane alone
        (f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", [1, 2, 4, 8], "smooth", 2),  # on the quadric alone
        (
            "map:x,y,z->x;y;z|x*z;y*z",
            [0, 0, 5],
            "smooth",
            1,
        ),  # on the line alone, where the closure has dimension 1
        ("map:x,y,z->x;y;z|x*z;y*z", [0, 3, 0], "smooth", 2),
        ("map:x,y,z->x;y;z|x*z;y*z", [0, 0, 0], "singular", 2),
        ("map:x,y->x;y|x^2+y^2", [0, 0], "singular", 1),
    ],
)
def test_points_of_unions(engine: Engine, spec: str, at: list[int], verdict: str, local: int) -> None:
    found = singular_point(spec, at={"x": at}, engine=engine)
    assert (found.verdict, found.local_dim, found.agreement) == (verdict, local, True)
    assert found.jacobian_rank is None or found.jacobian_rank <= found.image_dim


def test_an_empty_source_is_an_error(engine: Engine) -> None:
    with pytest.raises(InputError, match="no common zero"):
        closure("map:x,y->x|x*y-1;x", engine=engine)
    with pytest.raises(InputError, match="no common zero"):
        dimension("map:x,y->x|x*y-1;x", engine=engine)


# -- random cases against elimination ------------------------------------------------------------------------------------------

NAMES = ["x", "y", "z", "w"]


def random_polynomial(rng: np.random.Generator, degree: int, terms: int, constant: bool = True) -> str:
    parts = []
    for _ in range(terms):
        size = int(rng.integers(0 if constant else 1, degree + 1))
        factors = [str(rng.choice(NAMES)) for _ in range(size)]
        parts.append("*".join([f"({int(rng.integers(1, 4) * rng.choice([-1, 1]))})", *factors]))
    return "+".join(parts)


def random_source(rng: np.random.Generator) -> list[str]:
    """Equations whose zeros are, by construction, often several components, conjugate ones, or multiple ones."""
    kind = int(rng.integers(6))
    one, other, third = (random_polynomial(rng, 1, 3) for _ in range(3))
    quadric = random_polynomial(rng, 2, 3)
    if kind == 0:  # a hypersurface and a smaller part
        return [f"({one})*({other})", f"({one})*({quadric})"]
    if kind == 1:  # conjugate parts
        return [f"x^{int(rng.integers(2, 6))}-{int(rng.choice([2, 3, 5, 7]))}", quadric]
    if kind == 2:  # conjugate hyperplanes that meet in a rational line
        return [f"({one})^2-{int(rng.choice([2, 3, 5]))}*({other})^2"]
    if kind == 3:  # a multiple part
        return [f"({one})^2*({quadric})", f"({one})*({other})"]
    if kind == 4:  # two quadrics through a common plane
        return [f"x*({one})+y*({other})", f"x*({third})+y*({quadric})"]
    return [
        quadric,
        f"({quadric})*({one})",
        f"({one})*({other})",
    ]  # equations that follow from others, in part


def reference(
    engine: EngineInfo, directory: Path, polynomials: list[str], constraints: list[str], ours: list[str]
) -> str:
    """What plain Macaulay2 says: dimension, degree, whether our equations generate the same ideal."""
    n = len(polynomials)
    text = f"""
    R = QQ[{",".join(NAMES)}, u_0..u_{n - 1}, MonomialOrder => Eliminate {len(NAMES)}];
    G = ideal({",".join(constraints)}) + ideal({",".join(f"u_{i} - ({f})" for i, f in enumerate(polynomials))});
    if G == 1 then (print "empty"; exit 0);
    S = QQ[u_0..u_{n - 1}];
    E = radical sub(eliminate({{{",".join(NAMES)}}}, G), S);
    I = ideal({",".join(ours) or "0_S"});
    print(dim E, degree E, E == I);
    """
    file = directory / "reference.m2"
    file.write_text(text)
    done = subprocess.run(
        [str(engine.path), "--script", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("seed", range(14))
def test_random_sources_against_elimination(engine: Engine, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, 2024])
    constraints = random_source(rng)
    polynomials = [random_polynomial(rng, 2, 2, constant=False) for _ in range(int(rng.integers(2, 4)))]
    spec = f"map:{','.join(NAMES)}->{';'.join(polynomials)}|{';'.join(constraints)}"
    if reference(find_engine(), tmp_path, polynomials, constraints, []) == "empty":
        with pytest.raises(InputError, match="no common zero"):
            closure(spec, field="QQ", engine=engine)
        return
    found = closure(spec, field="QQ", engine=engine)
    written = [re.sub(r"z(\d+)", r"u_\1", f.text()) for f in found.equations or ()]
    said = reference(find_engine(), tmp_path, polynomials, constraints, written)
    assert said == f"({found.image_dim}, {found.degree}, true)", spec
    assert (found.completeness, found.certainty, found.agreement) == ("complete", Certainty.PROVED, True), (
        spec
    )
    size = dimension(spec, engine=engine, seed=seed)
    assert (size.image_dim, size.agreement) == (found.image_dim, True), spec
    modular = closure(spec, engine=engine, seed=seed)
    assert (modular.image_dim, modular.degree, modular.completeness) == (
        found.image_dim,
        found.degree,
        "complete",
    ), spec
    assert modular.agreement is True


# -- mistakes are noticed ------------------------------------------------------------------------------------------------------


def lose_one(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    decomposed = sources.decomposed

    def fewer(*args: Any, **options: Any) -> Source | None:
        found = decomposed(*args, **options)
        assert found is not None
        kept = [c for i, c in enumerate(found.components) if i != number]
        return replace(found, components=tuple(kept))

    monkeypatch.setattr(sources, "decomposed", fewer)


@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_component_is_a_contradiction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    spec = f"map:x,y,z,w->z^2-y*w;w*z^2-y*w^2|{CONE_AND_PLANE}"
    lose_one(monkeypatch, number)
    for field in (None, "QQ"):
        found = closure(spec, field=field, engine=engine)
        assert found.agreement is False
        assert found.completeness != "complete"
        assert found.certainty is not Certainty.PROVED
    assert dimension(spec, engine=engine).agreement is False
    assert singular_point(spec, at={"x": [0, 0, 0, 1]}, engine=engine).agreement is False
    for command in (["closure", spec], ["dimension", spec]):
        assert main(command) == 3
        assert "disagree" in capsys.readouterr().err


def test_a_component_lost_inside_the_template_is_a_contradiction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}"
    render = scripts.render

    def damaged(*args: Any, **options: Any) -> Script:
        script = render(*args, **options)
        return replace(
            script, text=script.text.replace("else minimalPrimes C;", "else drop(minimalPrimes C, 1);")
        )

    monkeypatch.setattr(scripts, "render", damaged)
    assert closure(spec, engine=engine).agreement is False
    assert dimension(spec, engine=engine).agreement is False


def test_a_wrong_differential_in_the_template_is_a_contradiction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = scripts.render

    def damaged(*args: Any, **options: Any) -> Script:
        script = render(*args, **options)
        return replace(
            script, text=script.text.replace("both := evaluated(mapDifferential |", "both := evaluated(")
        )

    monkeypatch.setattr(scripts, "render", damaged)
    assert dimension(f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", engine=engine).agreement is False


def test_when_decomposition_is_out_of_reach_only_what_was_seen_is_claimed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("m2bridge.questions.source.decomposed", lambda *_, **__: None)
    found = closure("map:a,s->a*s;s|a^7-2", engine=engine)
    assert (found.completeness, found.degree, found.certainty) == ("seen-part", None, Certainty.PROBABLE)
    assert any("every component" in line for line in found.not_shown)
    assert (
        dimension(f"map:x,y,z,w->y|{CONE_AND_PLANE}", engine=engine).statement.count("one component only")
        == 1
    )


def test_interpolation_of_a_source_with_equations_is_never_complete(engine: Engine) -> None:
    for spec in ("map:a,s->a*s;s|a^7-2", f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", "map:x,y->x;y|x*y-1"):
        for field in (None, "QQ"):
            found = closure(spec, method="interpolation", field=field, engine=engine)
            assert (found.completeness, found.degree, found.certainty) == (
                "seen-part",
                None,
                Certainty.PROBABLE,
            )


# -- primes --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [32003, 8388593, 31991])
def test_numbers_that_default_primes_divide(engine: Engine, p: int) -> None:
    """The same map up to invertible factors: always a conic cone, two-dimensional, and smooth where it was."""
    for spec in (
        f"map:x,y->{p}*x^2;x*y;1/{p}*y^2",
        f"map:x,y,z->x^2;x*y;y^2|{p}*x-z",
        f"map:x,y,z->1/{p}*x^2;x*y;{p}*y^2|z-1/{p}",
    ):
        for field in (None, "QQ"):
            found = closure(spec, field=field, engine=engine)
            assert (found.image_dim, found.degree, found.completeness, found.agreement) == (
                2,
                2,
                "complete",
                True,
            ), spec
        assert dimension(spec, engine=engine).image_dim == 2
    for x in (Fraction(p), Fraction(1, p)):
        at = singular_point("map:x,y->x;y;x*y", at={"x": x, "y": x}, engine=engine)
        assert (at.jacobian_rank, at.verdict, at.agreement) == (2, "smooth", True)


def test_a_chosen_prime_that_divides_is_refused(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("closure", "dimension"):
        assert main([command, "map:x,y->x;1/101*y", "--prime", "101"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "divides the number 1/101" in said
        named = said.split("--prime ")[2].split(" ")[0]
        assert main([command, "map:x,y->x;1/101*y", "--prime", named, "--json"]) == 0
        capsys.readouterr()


def test_a_source_that_changes_modulo_the_default_prime(engine: Engine) -> None:
    """x^2 + 2x - 32002 = (x + 1)^2 modulo 32003, which divides none of the coefficients: two points over QQ."""
    found = closure("map:x,y->x|x^2+2*x-32002", engine=engine)
    assert (found.degree, found.field) == (2, "F_31991")
    chosen = closure("map:x,y->x|x^2+2*x-32002", field=32003, engine=engine)
    assert any("use another prime" in line for line in chosen.not_shown)


@pytest.mark.parametrize("p", [32003, 8388593])
@pytest.mark.parametrize("field", [None, "QQ"])
def test_maps_that_are_smaller_modulo_a_default_prime(engine: Engine, p: int, field: Any) -> None:
    """No coefficient is divisible by p, but x + y and x + (p+1) y are the same modulo p.

    Over QQ they are two coordinates A, B: (A, B) fills the plane, and A^2, A*B, B^2 is the conic cone.
    """
    one, other = "x+y", f"x+{p + 1}*y"
    for constraint in ("", "|z-x", "|z^2-2"):
        names = "x,y,z" if constraint else "x,y"
        plane = closure(f"map:{names}->{one};{other}{constraint}", field=field, engine=engine)
        assert (plane.image_dim, plane.codim, plane.completeness) == (2, 0, "complete")
        conic = f"map:{names}->({one})^2;({one})*({other});({other})^2{constraint}"
        found = closure(conic, field=field, engine=engine)
        assert (found.image_dim, found.degree, found.completeness, found.agreement) == (
            2,
            2,
            "complete",
            True,
        )


# -- the pieces ----------------------------------------------------------------------------------------------------------------


def test_arithmetic_at_a_closed_point() -> None:
    """u with u^2 = 2 modulo 5, where 2 is no square; x = u, y = 1 + u."""
    point = ClosedPoint(
        component=0, prime=5, modulus=(3, 0, 1), variables=((0, 1), (1, 1)), smooth=True, rank=0
    )
    here = PointField(point)
    assert here.value({(2, 0): 1, (0, 0): -2}) == 0
    assert here.value({(0, 2): 1, (0, 1): -2, (0, 0): -1}) == 0  # (1 + u)^2 = 3 + 2u = 2(1 + u) + 1
    assert here.value({(1, 0): Fraction(1, 2)}) == here.value({(1, 0): 3})
    one, u = here.context(1), here.variables[0]
    assert field_rank([[one, u], [u, u * u]]) == 1
    assert field_rank([[one, u], [u, one]]) == 2
    assert field_rank([]) == 0


def test_sources_with_each_macaulay2(engine_info: EngineInfo) -> None:
    with ProcessEngine(engine_info) as macaulay2:
        for spec, degree in (("map:a,s->a*s;s|a^7-2", 7), (f"map:x,y,z,w->y;z;w|{CONE_AND_PLANE}", 3)):
            found = closure(spec, field="QQ", engine=macaulay2)
            assert (found.degree, found.completeness, found.agreement) == (degree, "complete", True)
