"""The ledger as a document: Markdown and one HTML page that needs nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from m2bridge.cli import main
from m2bridge.papers import claim
from m2bridge.papers.base import CheckContext, Status
from m2bridge.papers.ledger import Ledger, verify
from m2bridge.report import ledger_html, ledger_markdown
from m2bridge.report.ledger import duration, verdict_words
from tests.replay import ReplayEngine

CLAIMS = ("lemma-3.1", "lemma-a.3", "section-4-skip")
VOID = {"meta", "br", "hr", "img", "link", "input"}
OUTSIDE = ("src", "href", "srcset", "data", "action", "poster", "style")
"""Attributes through which a page could load something."""


class Page(HTMLParser):
    """A page whose elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.outside: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.outside += [(name, value) for name, value in attrs if name in OUTSIDE or name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def ledger(replay: ReplayEngine) -> Ledger:
    return verify([claim(name) for name in CLAIMS], CheckContext(engine=replay), quick=True)


def rows(markdown: str) -> list[list[str]]:
    """Cells of the table's rows, without the heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] not in ("size", "---")]


def test_markdown_has_a_row_for_each_verdict(ledger: Ledger) -> None:
    found = rows(ledger_markdown(ledger))
    assert len(found) == len(ledger.entries)
    for row, entry in zip(found, ledger.entries, strict=True):
        assert len(row) == 5
        assert row[0] == ", ".join(f"{name}={value}" for name, value in entry.size.items())
        assert row[1] == verdict_words(entry)
        assert row[1].endswith(entry.certainty.value)
        assert row[4] == duration(entry)
        assert row[2] == entry.reason


@pytest.mark.parametrize("write", [ledger_markdown, ledger_html], ids=["markdown", "html"])
def test_a_report_contains_statement_check_and_correction(
    ledger: Ledger, write: Callable[[Ledger], str]
) -> None:
    text = unescape(write(ledger))
    for name in CLAIMS:
        item = claim(name)
        named = [name for names in item.witnesses.values() for name in names]
        assert all(
            part in text for part in (item.number, item.statement, item.checked, *named, *item.witnesses)
        )
        assert item.quote is None or item.quote in text
        if item.correction is not None:
            correction = item.correction
            parts = (correction.smallest, correction.witness, correction.macaulay2.strip(), correction.reason)
            assert all(part in text for part in (*parts, correction.unaffected, correction.repaired))
    assert '"generic_rank": 5' in text  # the computed witness of Lemma A.3
    assert "seed 0" in text
    assert "Macaulay2 " in text


def test_a_statement_that_holds_has_no_correction(replay: ReplayEngine) -> None:
    ledger = verify([claim("lemma-3.1")], CheckContext(engine=replay), quick=True)
    assert "Repaired" not in ledger_markdown(ledger)
    assert "Repaired" not in ledger_html(ledger)


def test_html_is_well_formed_and_needs_nothing_from_outside(ledger: Ledger) -> None:
    text = ledger_html(ledger)
    page = Page(text)
    assert page.open == []
    assert page.outside == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.seen)
    assert page.seen.count("tr") == len(ledger.entries) + len(CLAIMS)
    assert page.seen.count("h2") == len(CLAIMS) + 1  # the misprints
    assert text.startswith("<!doctype html>")
    assert "charset='utf-8'" in text
    assert not re.search(r"https?:|url\(|@import", text)


NASTY = "a < b & c | d\n<script>alert(1)</script> 'q' \"r\""


def test_a_reason_with_special_characters_stays_one_cell(ledger: Ledger) -> None:
    first = replace(ledger.entries[0], status=Status.OUT_OF_REACH, reason=NASTY)
    damaged = replace(ledger, entries=(first, *ledger.entries[1:]))
    row = rows(ledger_markdown(damaged))[0]

    assert row[2] == " ".join(NASTY.split()).replace("|", "\\|")
    assert len(rows(ledger_markdown(damaged))) == len(ledger.entries)
    page = Page(ledger_html(damaged))
    assert page.open == []
    assert "script" not in page.seen
    assert NASTY in "".join(page.text)


def test_each_status_has_a_distinct_word(ledger: Ledger) -> None:
    words = set()
    for status in Status:
        entry = replace(ledger.entries[0], status=status, witness=None)
        text = ledger_markdown(replace(ledger, entries=(entry,)))
        words.add(rows(text)[0][1])
        assert Page(ledger_html(replace(ledger, entries=(entry,)))).open == []
    assert len(words) == len(Status)
    assert sum(word.endswith(", probable") for word in words) == 5


def test_a_cached_row_does_not_pretend_to_have_taken_no_time(ledger: Ledger) -> None:
    cached = replace(ledger.entries[0], cached=True, seconds=0.0)
    quick = replace(ledger.entries[0], cached=False, seconds=0.0001)
    found = rows(ledger_markdown(replace(ledger, entries=(cached, quick))))
    assert [row[4] for row in found] == ["cached", "< 0.001"]


@pytest.mark.parametrize(("ending", "begins"), [(".md", "# Ledger: "), (".html", "<!doctype html>")])
def test_the_ending_of_the_report_chooses_its_format(
    ending: str, begins: str, replay: ReplayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("m2bridge.cli.verify.open_engine", lambda *_, **__: replay)
    report = tmp_path / f"report{ending}"
    report.write_text("an older report", encoding="utf-8")
    assert main(["verify", "lemma-a.3", "--quick", "--report", str(report)]) == 0
    assert report.read_text(encoding="utf-8").startswith(begins)
    assert list(tmp_path.iterdir()) == [report]
