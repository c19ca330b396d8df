"""What builds the site can fail: a worked example with a wrong claim, a link that leads nowhere, a page that loads elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import m2bridge

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from _site import gallery, links, reference, sheets, theorem_map

    modules = (gallery, links, reference, sheets, theorem_map)
    yield {module.__name__.partition(".")[2]: module for module in modules}
    for name in [name for name in sys.modules if name.split(".")[0] == "_site"]:
        del sys.modules[name]


def worked(tmp_path: Path, claim: str) -> Path:
    folder = tmp_path / "docs" / "gallery"
    folder.mkdir(parents=True)
    file = folder / "x.py"
    text = [
        '"""A title\n\nA text.\n"""\n',
        "# %% A sentence.",
        'model = "map:s,t->s;s*t;t^2"',
        "answer = m2bridge.dimension(model, engine=False)",
        "answer",
        f"assert answer.image_dim == {claim}\n",
    ]
    file.write_text("\n".join(text), encoding="utf-8")
    return file


def test_a_worked_example_shows_its_answer(site: Any, tmp_path: Path) -> None:
    file = worked(tmp_path, "2")
    title, text, cells = site["gallery"].parts(file)
    ran, picture = site["gallery"].run(file, cells)
    body = "".join(cell.markdown() for cell in ran)
    notebook = json.loads(site["gallery"].notebook(title, text, ran))
    assert "dimension 2, affine" in notebook["cells"][-1]["outputs"][0]["data"]["text/html"]
    assert notebook["cells"][-1]["source"].endswith("\nanswer")
    assert (title, text) == ("A title", "A text.")
    assert "dimension 2, affine" in body
    assert "assert" not in body
    assert picture.svg().count("<path") > 100


def test_a_sheet_is_the_image_of_the_map(site: Any) -> None:
    umbrella = site["sheets"].sheet(m2bridge.parse_spec("map:s,t->s;s*t;t^2"), lines=5)
    x, y, z = umbrella.points.reshape(-1, 3).T  # in the cube: s, s*t, 2*t^2 - 1
    assert abs(x**2 * (z + 1) / 2 - y**2).max() < 1e-12
    assert umbrella.svg().count("<path") == 16


@pytest.mark.parametrize(
    "spec", ["softmax(d=[2,2,2],a=[1,1],t=2)", "mlp(widths=[2,3,2],r=2)", "map:s->s;s^2;s^3"]
)
def test_every_kind_of_model_has_a_sheet(site: Any, spec: str) -> None:
    surface = site["sheets"].sheet(m2bridge.parse_spec(spec), lines=4)
    assert surface.points.shape == (4, 4, 3)
    assert abs(surface.points).max() <= 1 + 1e-12


def test_a_wrong_claim_stops_the_build(site: Any, tmp_path: Path) -> None:
    file = worked(tmp_path, "3")
    with pytest.raises(AssertionError):
        site["gallery"].run(file, site["gallery"].parts(file)[2])


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ('<a href="b.html#there">', None),
        ('<a href="https://example.org">', None),
        ('<a href="b.html#gone">', "#gone"),
        ('<a href="c.html">', "c.html"),
        ('<img src="missing.png">', "missing.png"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
    ],
)
def test_links_are_followed(site: Any, tmp_path: Path, page: str, complaint: str | None) -> None:
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="there">', encoding="utf-8")
    found = site["links"].broken(tmp_path)
    assert (found == []) is (complaint is None)
    assert complaint is None or complaint in found[0]


def test_the_reference_has_every_command_model_and_name(site: Any) -> None:
    import m2bridge
    from m2bridge.families import FAMILIES
    from m2bridge.questions import sentences

    commands = site["reference"].commands()
    for name in [*sentences(), "cite", "report", "batch", "figure theorem-3.4"]:
        assert f"`m2bridge {name}`" in commands
    assert "`--no-engine`" in commands
    assert all(family.name in site["reference"].models() for family in FAMILIES.values())
    python = site["reference"].python()
    assert all(f"## `{name}`" in python for name in m2bridge.__all__ if not name.startswith("_"))
    assert "| `image_dim` | integer |" in site["reference"].schemas()


def test_the_theorem_map_has_every_claim_and_every_certificate(site: Any, tmp_path: Path) -> None:
    from m2bridge.papers import all_claims

    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "results").symlink_to(ROOT / "results")
    site["theorem_map"].write(docs)
    text = (docs / "theorem-map.md").read_text(encoding="utf-8")
    assert all(f"| `{claim.id}` |" in text for claim in all_claims())
    for file in (ROOT / "results" / "certificates").glob("*.json"):
        assert f"`{file.name} <" in text
