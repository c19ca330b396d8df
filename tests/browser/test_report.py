"""The report in a real browser: it loads, sorts, searches, turns, fits a phone, is dark, prints, and works without scripts."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m2bridge.questions.closure import closure
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.singular_locus import singular_locus
from m2bridge.report.page import PageEntry, page
from m2bridge.results import ScriptUse
from tests.browser.conftest import Opened, fits, until

pytestmark = pytest.mark.browser

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
SPECS = [
    "mlp(widths=[2,3,2],r=2)",
    "lightning(d=2,dp=1)",
    "map:s,t->s;s*t;t^2",
    "softmax(d=[2,2,2],a=[1,1],t=2)",
]


@pytest.fixture(scope="module")
def answers() -> list[Dimension]:
    return [dimension(spec, engine=False) for spec in SPECS]


@pytest.fixture(scope="module")
def report(answers: list[Dimension], tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = ScriptUse(name="own", sha256="ab" * 32, text="R = QQ[x];\nprint dim R;\n")
    hostile = replace(answers[0], model=HOSTILE, statement=HOSTILE, scripts=(script,))
    entries = [PageEntry(name=f"{a.model}.json", version="0.2.0", result=a) for a in [*answers, hostile]]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        page([*entries, PageEntry(name="torn.json", trouble="it is torn", damaged=True)], title="A report"),
        encoding="utf-8",
    )
    return path


def column(shown: Any, place: int) -> list[str]:
    cells = shown.locator(f"table.list tbody tr:not(.hidden) td:nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_it_sorts_searches_and_opens_records(report: Path, opened: Opened) -> None:
    shown = opened(report)
    assert shown.title() == "A report"
    assert "it is torn" in shown.inner_text(".bad")
    shown.get_by_role("button", name="image dim").click()
    numbers = [int(text) for text in column(shown, 6)]
    assert numbers == sorted(numbers)
    shown.get_by_role("button", name="image dim").click()
    assert [int(text) for text in column(shown, 6)] == sorted(numbers, reverse=True)
    shown.fill("input[type=search]", "softmax")
    until(shown, "document.querySelector('.search output').textContent === '1 of 5'")
    assert column(shown, 2) == ["softmax(d=[2,2,2],a=[1,1],t=2)"]
    shown.fill("input[type=search]", "")
    until(shown, "document.querySelectorAll('table.list tbody tr.hidden').length === 0")
    shown.click("table.list tbody tr:first-child a")
    assert shown.locator("details.record[open]").count() == 1
    assert shown.locator("details.record[open]").inner_text().count("Evidence") == 1


def test_a_script_is_copied_as_it_is(report: Path, opened: Opened) -> None:
    shown = opened(report)
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.click("details.script summary")
    shown.click("details.script button")
    until(shown, "document.querySelector('details.script button').textContent === 'copied'")
    assert shown.evaluate("navigator.clipboard.readText()") == "R = QQ[x];\nprint dim R;\n"


def coloured(shown: Any, place: str) -> float:
    """The part of a canvas that is painted."""
    return float(
        shown.locator(place).first.evaluate(
            "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
            " for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n / (d.length / 4); }"
        )
    )


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_is_legible(report: Path, opened: Opened, shots: Path, width: int, dark: bool) -> None:
    shown = opened(report, width=width, dark=dark)
    assert fits(shown)
    ink, paper = (
        shown.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor")
    )
    lightness = [sum(int(n) for n in text[4:-1].split(", ")) / 765 for text in (ink, paper)]
    assert (lightness[0] > lightness[1]) is dark
    assert abs(lightness[0] - lightness[1]) > 0.6
    shown.screenshot(path=shots / f"report-{width}-{'dark' if dark else 'light'}.png", full_page=True)


def test_tables_fit_and_specs_break_after_separators(opened: Opened, tmp_path: Path) -> None:
    answers = [closure("lightning(d=2,dp=1)"), singular_locus("lightning(d=2,dp=1)")]
    entries = [PageEntry(name=f"{a.ANALYSIS}.json", version="0.2.0", result=a) for a in answers]
    path = tmp_path / "report.html"
    path.write_text(page(entries, title="A report"), encoding="utf-8")
    shown = opened(path, width=1300)
    widths = shown.eval_on_selector_all(".wide", "all => all.map(x => [x.scrollWidth, x.clientWidth])")
    assert [scroll <= client for scroll, client in widths] == [True, True]
    lines = shown.eval_on_selector_all("td.model", _LINES_OF_CELLS)
    assert all(line.endswith((",", ")")) for cell in lines for line in cell), lines


# The lines of each cell, by the rectangles of the pieces between its possible breaks.
_LINES_OF_CELLS = """cells => cells.map(cell => {
  const lines = [];
  let bottom = null;
  for (const node of cell.childNodes) {
    if (node.nodeType !== Node.TEXT_NODE) continue;
    const range = document.createRange();
    range.selectNode(node);
    const boxes = range.getClientRects();
    if (boxes.length !== 1) return ["broken: " + node.data];
    if (boxes[0].bottom !== bottom) lines.push("");
    bottom = boxes[0].bottom;
    lines[lines.length - 1] += node.data;
  }
  return lines;
})"""


def test_it_is_read_without_scripts(report: Path, opened: Opened) -> None:
    shown = opened(report, script=False)
    assert shown.locator("table.list tbody tr").count() == 5
    assert not shown.locator(".search").is_visible()
    shown.click("table.list tbody tr:first-child a")
    assert shown.locator("details.record[open]").count() == 1


def test_it_prints(report: Path, opened: Opened, tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pip install 'm2bridge[browser]'")
    shown = opened(report)
    shown.pdf(path=tmp_path / "report.pdf")
    text = "".join(sheet.extract_text() for sheet in pypdf.PdfReader(tmp_path / "report.pdf").pages)
    assert text.count("proved") >= 5
    assert "softmax" in text
    assert "How to cite" in text


def test_ten_thousand_records_open_in_seconds(
    answers: list[Dimension], opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "many.html"
    entries = [
        PageEntry(name=f"r{i}", version="0.2.0", result=replace(answers[i % 4], seed=i))
        for i in range(10_000)
    ]
    path.write_text(page(entries, title="Many"), encoding="utf-8")
    (tmp_path / "blank.html").write_text("<title>blank</title>", encoding="utf-8")
    shown = opened(tmp_path / "blank.html")
    session = shown.context.new_cdp_session(shown)
    session.send(
        "Performance.enable", {"timeDomain": "threadTicks"}
    )  # the processor's time, whatever else it does
    start = time.monotonic()
    shown.goto(path.as_uri())
    shown.wait_for_selector("html.script")
    worked = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}[
        "TaskDuration"
    ]
    seconds = time.monotonic() - start
    print(
        f"10,000 records: {path.stat().st_size / 1e6:.0f} MB, {worked:.1f} s of work, {seconds:.1f} s on this machine"
    )
    assert 0 < worked < 15
    shown.fill("input[type=search]", "softmax")
    until(shown, "document.querySelector('.search output').textContent === '2500 of 10000'")
