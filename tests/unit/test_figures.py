"""Figures from records and equations: what is drawn is what was computed. No Macaulay2."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from m2bridge import records
from m2bridge.cli import main
from m2bridge.errors import DisagreementError, InputError
from m2bridge.families import DeepLightning, Softmax, parse_spec
from m2bridge.figures import plotting, slices
from m2bridge.figures.section import section
from m2bridge.figures.zero_sets import zero_set
from m2bridge.papers.lightning_attention.figures import figure1, named_slices
from m2bridge.papers.lightning_attention.figures import widths as width_figure
from m2bridge.papers.lightning_attention.figures.figure1 import interactive
from m2bridge.papers.lightning_attention.figures.widths import measured_rank
from m2bridge.questions.boundary.criterion import decide
from m2bridge.questions.dimension import Dimension, dimension

# the resultant of two binary quadrics (Sylvester's determinant): the equation of M(2,1,2), as Macaulay2 writes it
from tests.marking import slow_except
from tests.running import run_command

RESULTANT = "z2^2*z3^2-z1*z2*z3*z4+z0*z2*z4^2+z1^2*z3*z5-2*z0*z2*z3*z5-z0*z1*z4*z5+z0^2*z5^2"


# -- slices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "equation", "marks"),
    [
        # substituted by hand into the resultant (a0 b2 - a2 b0)^2 - (a0 b1 - a1 b0)(a1 b2 - a2 b1)
        ("conoid", "x^2+4*y^2*z^2-y^2", [(0, 0, -0.5), (0, 0, 0.5)]),
        ("umbrella", "x^2+y^2*z", [(0, 0, 0)]),
        ("handle", "x^2*z^2-x^2-4*y^2", [(0, 0, -1), (0, 0, 1)]),
        ("crossing", "x^2*z^2+x^2-y^2", []),
    ],
)
def test_named_slices(name: str, equation: str, marks: list[tuple[float, ...]]) -> None:
    part = figure1.section(named_slices.SLICES[name], [RESULTANT])
    assert slices.text_of(part.polynomial) == equation
    assert np.allclose(part.boundary_points, np.array(marks, dtype=float).reshape(-1, 3), atol=1e-3)
    assert part.check.roots > 500
    assert part.check.failures == ()


@pytest.mark.parametrize("seed", slow_except({0, 5}, range(8)))
def test_random_slices_agree_with_the_equation(seed: int) -> None:
    part = figure1.section(slices.random_slice(seed, named_slices.MODEL), [RESULTANT], grid=12)
    assert part.check.failures == ()
    assert part.check.drawn > 500


def test_a_random_slice_of_a_map_with_fractions_goes_through_its_image() -> None:
    model = parse_spec("map:a,b,c->1/2*a*b;b*c;a*c;1/3*a*b*c")
    a, b, c = 1, 2, 2  # what this seed draws
    assert slices.random_slice(1, model).origin == (Fraction(a * b, 2), b * c, a * c, Fraction(a * b * c, 3))


def test_drawn_weights_reach_the_drawn_points() -> None:
    cut = named_slices.SLICES["umbrella"]
    for patch in figure1.section(cut, [RESULTANT]).patches:
        reached = named_slices.MODEL.coordinates({"A": patch.A, "V": patch.V})
        assert np.allclose(reached.reshape(-1, 6), cut.points(patch.points.reshape(-1, 3)), atol=1e-9)


def test_solid_and_dotted_are_decided_exactly() -> None:
    """Every piece of the singular curve, at a rational point in its middle, against the exact decision."""
    for name in ("conoid", "umbrella", "handle", "crossing"):
        cut = named_slices.SLICES[name]
        for curve in figure1.section(cut, [RESULTANT], grid=6).curves:
            middle = curve.points[len(curve.points) // 2]
            z = Fraction(float(middle[2])).limit_denominator(10**6)
            assert np.allclose(middle[:2], 0, atol=1e-9)
            point = tuple(o + z * u for o, u in zip(cut.origin, cut.directions[2], strict=True))
            assert decide(named_slices.MODEL, point).where == ("image" if curve.in_image else "closure-only")


@pytest.mark.parametrize(
    "wrong",
    [
        RESULTANT.replace("+z0^2*z5^2", "-z0^2*z5^2"),
        RESULTANT.replace("-2*z0*z2*z3*z5", "+2*z0*z2*z3*z5"),
        RESULTANT.replace("-2*z0*z2*z3*z5", "-3*z0*z2*z3*z5"),
    ],
)
def test_a_wrong_equation_is_caught(wrong: str) -> None:
    with pytest.raises(DisagreementError, match="vanish"):
        figure1.section(named_slices.SLICES["conoid"], [wrong])


def test_the_grid_catches_a_wrong_restriction(monkeypatch: pytest.MonkeyPatch) -> None:
    right = slices.restrict

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        first = next(iter(found))
        return {**found, first: -found[first]}

    monkeypatch.setattr(figure1, "restrict", wrong)
    with pytest.raises(DisagreementError) as caught:
        figure1.section(named_slices.SLICES["conoid"], [RESULTANT])
    assert any("satisfy" in str(conflict) for conflict in caught.value.fields["conflicts"])


def test_the_grid_catches_a_surface_with_a_sheet_too_many() -> None:
    """An equation times a factor vanishes on every drawn point, but has roots without weights."""
    from m2bridge.papers.lightning_attention.figures.crosscheck import compare
    from m2bridge.papers.lightning_attention.figures.surface import singular_curves, surface

    cut = named_slices.SLICES["umbrella"]
    right = slices.restrict(slices.closure_equation([RESULTANT], named_slices.MODEL), cut)
    polynomial = {(i + 1, j, k): c for (i, j, k), c in right.items()}  # times x - 1/3
    for exponents, c in right.items():
        polynomial[exponents] = polynomial.get(exponents, Fraction(0)) - c / 3
    check = compare(cut, polynomial, surface(cut), singular_curves(cut)[0])
    assert any("weights" in failure for failure in check.failures)


def test_the_grid_catches_a_missing_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    right = figure1.surface
    monkeypatch.setattr(figure1, "surface", lambda cut: right(cut)[1:])
    with pytest.raises(DisagreementError) as caught:
        figure1.section(named_slices.SLICES["handle"], [RESULTANT])
    assert any("diagonals" in str(conflict) for conflict in caught.value.fields["conflicts"])


def slice_file(tmp_path: Path, **changes: Any) -> Path:
    document = {**named_slices.SLICES["umbrella"].document(), **changes}
    path = tmp_path / "slice.json"
    path.write_text(json.dumps(document))
    return path


def test_slice_files_are_read_back(tmp_path: Path) -> None:
    assert named_slices.read_slice(str(slice_file(tmp_path))) == named_slices.SLICES["umbrella"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"directions": [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 2], [0, 0, 1, 0, 0, 0]]}, "dependent"),
        ({"directions": [[0, 0, 0, 0, 0, 1]]}, "directions"),
        ({"origin": [1, 2, 3]}, "the 6 coordinates"),
        ({"origin": [1] * 40}, "the 6 coordinates"),
        ({"origin": [0.5, "x", 0, 0, 0, 0]}, "'x'"),
        ({"box": [[1, -1], [-1, 1], [-1, 1]]}, "low < high"),
        ({"box": "wide"}, "box"),
        ({"view": 3}, "view"),
    ],
)
def test_bad_slices_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        named_slices.read_slice(str(slice_file(tmp_path, **changes)))


def test_slices_that_cut_no_surface(tmp_path: Path) -> None:
    inside = slice_file(  # all multiples of nu = x1: inside the closure
        tmp_path, origin=[1, 0, 0, 0, 0, 0],
        directions=[[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]],
    )  # fmt: skip
    with pytest.raises(InputError, match="degenerate"):
        figure1.section(named_slices.read_slice(str(inside)), [RESULTANT])
    far = slice_file(tmp_path, box=[[5, 6], [0.01, 0.02], [3, 4]])
    with pytest.raises(InputError, match="empty"):
        figure1.section(named_slices.read_slice(str(far)), [RESULTANT])


def test_unknown_slice() -> None:
    with pytest.raises(InputError, match="--slice"):
        named_slices.read_slice("nothing")


# -- slices of any hypersurface --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
def test_the_zero_set_of_a_sphere(n: int) -> None:
    """x^2 + y^2 (+ z^2) = 1/4: corners have norm 1/2, and the length of the circle and the area of the sphere are pi."""
    ball = {tuple(e): Fraction(1) for e in (2 * np.eye(n, dtype=int)).tolist()} | {(0,) * n: Fraction(-1, 4)}
    cells = zero_set(ball, np.array([[-1.0, 1.0]] * n))
    assert np.allclose(np.linalg.norm(cells, axis=-1), 0.5, atol=1e-4)
    sides = cells[:, 1:] - cells[:, :1]
    normals = np.cross(*sides.swapaxes(0, 1)) / 2 if n == 3 else sides[:, 0]
    assert np.linalg.norm(normals, axis=1).sum() == pytest.approx(np.pi, rel=0.01)
    if n == 3:
        assert ((normals * cells.mean(axis=1)).sum(axis=1) >= 0).all()  # they point outwards


def test_the_zero_set_of_a_discriminant_reaches_its_cuspidal_edge() -> None:
    """The discriminant of T^3 + x T^2 + y T + z has a cuspidal edge at the cubes (T - t)^3, that is at (-3t, 3t^2, -t^3)."""
    terms = {(3, 0, 1): 4, (2, 2, 0): -1, (1, 1, 1): -18, (0, 3, 0): 4, (0, 0, 2): 27}
    surface = zero_set({e: Fraction(c) for e, c in terms.items()}, np.array([[-1.0, 1.0]] * 3))
    for t in np.linspace(-0.3, 0.3, 25):
        edge = np.array([-3 * t, 3 * t**2, -(t**3)])
        assert np.linalg.norm(surface - edge, axis=-1).min() < 0.015  # 0.07 on the uniform grid


# -- Figure 3 ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def widths() -> list[Dimension]:
    return [dimension(Softmax(d=(delta,) * 3, a=(2, 2), t=3), engine=False) for delta in (3, 4, 5)]


def drawn_estimates(path: Path) -> list[tuple[float, float]]:
    """The positions of the blue markers in an SVG, as they stand in the file."""
    text = path.read_text(encoding="utf-8")
    uses = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill: #0072b2', text)
    return [(float(x), float(y)) for x, y in uses if x]


def test_changing_one_computed_value_shows_in_the_picture(widths: list[Dimension], tmp_path: Path) -> None:
    changed = [widths[0], replace(widths[1], image_dim=widths[1].image_dim - 3), widths[2]]
    pictures = []
    for name, results in (("true", widths), ("changed", changed)):
        rows = width_figure.rows_of(results)
        path = tmp_path / f"{name}.svg"
        width_figure.draw_widths(rows, path, title="", citation="Eq. 16")
        document, table = width_figure.width_data(rows, title="", models=[r.model for r in results])
        plotting.write_data(path, document, width_figure.WIDTH_COLUMNS, table)
        pictures.append(path)
    true, false = (drawn_estimates(path) for path in pictures)
    differ = [i for i, (a, b) in enumerate(zip(true, false, strict=True)) if abs(a[1] - b[1]) > 1]
    # the legend's marker is drawn too; of the three points exactly the second has moved
    assert len(true) in (3, 4)
    assert differ == [1]
    assert "differs" not in pictures[0].read_text(encoding="utf-8")
    assert "differs" in pictures[1].read_text(encoding="utf-8")
    with pictures[1].with_suffix(".csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["estimated"] != row["expected"] for row in table] == [False, True, False]


def test_figure_3_draws_records(widths: list[Dimension], tmp_path: Path) -> None:
    arguments = ["figure", "3", "-o", str(tmp_path / "figure.svg")]
    for result in widths:
        arguments += ["--record", str(records.save(result, tmp_path))]
    assert main(arguments) == 0
    document = json.loads((tmp_path / "figure.json").read_text())
    # Equation 16 by hand for l = 2, a = 2, d = delta: 2 * 2 (2 delta - 2) + delta^2
    assert [row["estimated"] for row in document["rows"]] == [4 * (2 * x - 2) + x * x for x in (3, 4, 5)]


def test_figure_3_refuses_records_whose_witnesses_disagree(widths: list[Dimension], tmp_path: Path) -> None:
    path = records.save(replace(widths[0], agreement=False), tmp_path)
    assert main(["figure", "3", "-o", str(tmp_path / "f.svg"), "--record", str(path)]) == 3
    assert not (tmp_path / "f.svg").exists()


def test_certainty_is_the_marker(widths: list[Dimension]) -> None:
    from m2bridge.certainty import Certainty

    rows = width_figure.rows_of([replace(widths[0], certainty=Certainty.PROBABLE)])
    assert rows[0].certainty == "probable"
    assert width_figure.MARKERS["probable"] != width_figure.MARKERS["proved"]


def test_paper_method_in_float64_finds_small_dimensions() -> None:
    # Equation 16 and Equation 14 (two scalings fewer), by hand: 25 and 23 for delta = 3, l = 2, a = 2
    assert measured_rank(Softmax(d=(3, 3, 3), a=(2, 2), t=3), seed=0, precision="float64") == 25
    assert measured_rank(DeepLightning(d=(3, 3, 3), a=(2, 2), t=3), seed=0, precision="float64") == 23


def test_two_records_of_one_width_are_refused(widths: list[Dimension]) -> None:
    with pytest.raises(InputError, match="width"):
        width_figure.rows_of([widths[0], widths[0]])


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", slow_except({"svg"}, ["png", "pdf", "svg"]))
def test_the_same_data_give_the_same_bytes(ending: str, widths: list[Dimension], tmp_path: Path) -> None:
    rows = width_figure.rows_of(widths)
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for path in (first, second):
        width_figure.draw_widths(rows, path, title="title", citation="Eq. 16")
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 5000


def test_interactive_figure_needs_no_network_and_holds_weights(tmp_path: Path) -> None:
    path = tmp_path / "figure.html"
    part = figure1.section(named_slices.SLICES["umbrella"], [RESULTANT], grid=6)
    figure1.draw(part, path)
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link)[^>]+(?:src|href)=", text)
    assert "A = [[" in text
    surface = interactive(part).data[0]
    assert np.asarray(surface.text).shape == np.asarray(surface.x).shape  # one text a point


@pytest.mark.parametrize(
    ("figure", "ending", "package"), [("3", "pdf", "matplotlib"), ("1", "html", "plotly")]
)
def test_missing_library_is_named(
    figure: str,
    ending: str,
    package: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import importlib

    right = importlib.import_module

    def missing(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return right(name, *arguments)

    monkeypatch.setattr(plotting, "importlib", SimpleNamespace(import_module=missing))
    assert main(["figure", figure, "-o", str(tmp_path / f"f.{ending}")]) == 2
    message = capsys.readouterr().err
    assert package in message
    assert "m2bridge[plot]" in message


def test_libraries_are_imported_only_when_used() -> None:
    import sys

    code = "import sys, m2bridge.cli as c; c.build_app(); print([m for m in ('matplotlib', 'plotly') if m in sys.modules])"
    process = run_command([sys.executable, "-c", code])
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["1", "-o", "figure.jpg"],
        ["1", "-o", "nowhere/figure.png"],
        ["1", "-o", "figure.png", "--slice", "nothing"],
        ["1", "-o", "figure.png", "--slice", "umbrella", "--random-slice"],
        ["3", "-o", "figure.png", "--widths", "9..3"],
        ["3", "-o", "figure.png", "--widths", "a..b"],
        ["3", "-o", "figure.png", "--model", "linear"],
        ["3", "-o", "figure.png", "--paper-method", "float16"],
        ["3", "-o", "figure.png", "--record", "missing.json"],
        ["theorem-3.4", "-o", "figure.html", "--d", "2", "--dp", "1"],
        ["theorem-3.4", "-o", "figure.png"],
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["figure", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("figure", "interactive"),
    [
        (["1"], True),
        (["slice", "map:t->t^2;t^3"], True),
        (["theorem-3.4"], False),
        (["3"], False),
        (["landscape", "lightning(d=2,dp=1)"], False),
    ],
)
def test_help_names_the_formats_that_can_be_written(
    figure: list[str], interactive: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    main(["figure", figure[0], "--help"])
    assert ("svg or html" in capsys.readouterr().out) is interactive
    code = main(["figure", *figure, "-o", "/dev/null/picture.html"])
    message = capsys.readouterr().err
    assert code == 2
    assert ("png, pdf, svg" in message) is not interactive


def test_a_random_slice_of_a_map_that_vanishes_at_all_small_integers() -> None:
    factor = "s*(s-1)*(s+1)*(s-2)*(s+2)"
    model = parse_spec(f"map:s,t,u->{factor};{factor}*t;{factor}*u")
    assert any(slices.random_slice(0, model).origin)


@pytest.mark.parametrize("equations", [None, ("z0", "z1", "z2")])
def test_singular_points_are_unknown_without_equations_of_a_component(
    equations: tuple[str, ...] | None,
) -> None:
    locus: Any = SimpleNamespace(
        model=str(named_slices.MODEL.spec), equations=(RESULTANT,), codim=1, seed=1,
        components=[SimpleNamespace(equations=equations)],
    )  # fmt: skip
    singular = section(locus, named_slices.SLICES["umbrella"]).singular
    assert (singular is None) == (equations is None)
