"""The site in a real browser, from files: no errors or requests, search answers, pictures turn, phones and paper fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Opened, fits
from tests.browser.test_report import coloured

pytestmark = pytest.mark.browser

SITE = ROOT / "docs/_build/html"
PAGES = [
    "index",
    "install",
    "first-result",
    "certainty",
    "theory",
    "gallery/index",
    "gallery/attention",
    "reference/commands",
]


@pytest.fixture(autouse=True)
def _built() -> None:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_and_fits(name: str, opened: Opened, shots: Path) -> None:
    for width in (390, 1400):
        shown = opened(SITE / f"{name}.html", width=width)
        assert shown.locator("h1").count() >= 1
        assert fits(shown)
        shown.screenshot(path=shots / f"site-{name.replace('/', '-')}-{width}.png")


def test_the_help_text_describes_the_program(opened: Opened, shots: Path) -> None:
    shown = opened(SITE / "index.html", dark=True)
    text = shown.inner_text("article")
    assert "dimension 10, affine" in text
    assert "proved" in text
    assert shown.locator("math msubsup").count() >= 4  # the equation
    assert shown.locator("figure.sheet canvas").bounding_box()["y"] < 900
    assert coloured(shown, "figure.sheet canvas") > 0.03
    shown.screenshot(path=shots / "site-index-dark.png")


def test_search_works_without_a_server(opened: Opened) -> None:
    shown = opened(SITE / "search.html")
    shown.goto((SITE / "search.html").as_uri() + "?q=skew")
    shown.wait_for_selector("#search-results li a")
    names = shown.locator("#search-results li a").all_inner_texts()
    assert any("Theory" in name or "ledger" in name.lower() for name in names), names


def test_a_picture_of_the_gallery_turns(opened: Opened) -> None:
    shown = opened(SITE / "gallery/whitney.html")
    canvas = shown.locator("figure.sheet canvas")
    before = canvas.screenshot()
    canvas.focus()
    for _ in range(4):
        shown.keyboard.press("ArrowRight")
    shown.wait_for_timeout(300)
    assert canvas.screenshot() != before
    assert coloured(shown, "figure.sheet canvas") > 0.05


def test_a_page_prints(opened: Opened, tmp_path: Path) -> None:
    pypdf: Any = pytest.importorskip("pypdf", reason="pip install 'm2bridge[browser]'")
    shown = opened(SITE / "first-result.html")
    shown.pdf(path=tmp_path / "page.pdf")
    text = "".join(sheet.extract_text() for sheet in pypdf.PdfReader(tmp_path / "page.pdf").pages)
    assert "First result" in text
    assert "m2bridge cite" in text
