"""The report page: every record is there, hostile text stays text, damage is named, nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from m2bridge import boxes, from_callable, records
from m2bridge.batch.store import Store
from m2bridge.cli import main
from m2bridge.errors import InputError
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.report.cite import sentence
from m2bridge.report.explain import explain
from m2bridge.report.page import PageEntry, page
from m2bridge.results import ScriptUse
from m2bridge.views import Rows, View

HOSTILE = """<script>alert(1)</script>'"><img src=x onerror=alert(2)> {{ 7*7 }} </style>"""


@pytest.fixture(scope="module")
def answer() -> Dimension:
    return dimension("lightning(d=2,dp=1)", engine=False)


class Tags(HTMLParser):
    """The tags of a page, their attributes, and what stands outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def entry(answer: Dimension, **changes: object) -> PageEntry:
    return PageEntry(name="a.json", version="0.2.0", result=replace(answer, **changes))  # type: ignore[arg-type]


def test_a_page_contains_answer_evidence_and_citation(answer: Dimension) -> None:
    seen = Tags(page([entry(answer)], title="One answer"))
    assert "One answer" in seen.text
    for words in ("dimension 5, affine", "proved", "≤ 5", "m2bridge 0.2.0", r"\cite{m2bridge}"):
        assert words in seen.text
    assert "Kohn" in seen.text  # whose formula is compared
    assert page([entry(answer), entry(answer, seed=1)], title="t").count("@misc{m2bridge,") == 1


def test_hostile_text_stays_text(answer: Dimension) -> None:
    script = ScriptUse(name=HOSTILE, sha256="ab" * 32, text=HOSTILE)
    hostile = entry(
        answer, model=HOSTILE, statement=HOSTILE, scripts=(script,), limit=HOSTILE, options={"x": HOSTILE}
    )
    damaged = PageEntry(name=HOSTILE, trouble=HOSTILE, damaged=True)
    text = page([hostile, damaged, PageEntry(name=HOSTILE, trouble=HOSTILE)], title=HOSTILE)
    seen = Tags(text)
    assert [tag for tag, _ in seen.tags].count("script") == 1
    assert not [tag for tag, _ in seen.tags if tag in ("img", "iframe", "link", "object", "base")]
    assert not [name for _, attrs in seen.tags for name in attrs if name.startswith("on")]
    assert HOSTILE in seen.text
    assert "49" not in re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL).split("</style>")[-1]


def test_nothing_is_loaded_from_elsewhere(answer: Dimension) -> None:
    seen = Tags(page([entry(answer)], title="t"))
    for _, attrs in seen.tags:
        assert not [
            v for k, v in attrs.items() if k in ("src", "href", "action") and not (v or "").startswith("#")
        ]
    assert any("default-src 'none'" in (attrs.get("content") or "") for _, attrs in seen.tags)


def test_every_row_leads_to_its_record(answer: Dimension) -> None:
    seen = Tags(page([entry(answer, seed=seed) for seed in range(5)], title="t"))
    ids = {attrs["id"] for _, attrs in seen.tags if "id" in attrs}
    targets = {(attrs.get("href") or "#")[1:] for tag, attrs in seen.tags if tag == "a"}
    assert targets == ids == {f"r{number}" for number in range(1, 6)}


def test_a_thousand_records_are_summarized(answer: Dimension) -> None:
    text = page([entry(answer, seed=seed) for seed in range(1_001)], title="t")
    assert text.count('<details class="record">') == 1_001
    assert len(text) < 3_500 * 1_001


def test_the_command_reads_files_and_stores_and_names_what_is_damaged(
    answer: Dimension, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records.save(answer, tmp_path / "records")
    (tmp_path / "records" / "broken.json").write_text('{"schema_version": 2, "analysis"', encoding="utf-8")
    store = Store.open_for_writing(tmp_path / "store")
    job = {"analysis": "dimension", "model": answer.model, "parameters": {}, "size": 1, "tags": []}
    parts = {
        "store_version": 1,
        "job": job,
        "message": None,
        "limits": {},
        "seconds": 1.0,
        "attempts": [],
        "engine": None,
    }
    good, failed, torn = "a" * 64, "b" * 64, "c" * 64
    document = records.to_document(answer)
    store.write(good, {**parts, "key": good, "outcome": "complete", "result": document})
    store.write(
        failed, {**parts, "key": failed, "outcome": "timed-out", "message": "too long", "result": None}
    )
    store.write(torn, {**parts, "key": torn, "outcome": "complete", "result": document})
    path = store.path_of(torn)
    path.write_bytes(path.read_bytes()[:-40])
    store.close()
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "records"), str(tmp_path / "store"), "-o", str(out)]) == 0
    seen = Tags(out.read_text(encoding="utf-8")).text
    assert "broken.json" in seen
    assert "cccccccccccc" in seen
    assert "timed-out: too long" in seen
    assert "5 records" in capsys.readouterr().out


def test_it_is_an_error_that_every_record_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    assert main(["report", str(tmp_path / "broken.json"), "-o", str(tmp_path / "report.html")]) == 2
    assert "damaged: broken.json: " in capsys.readouterr().err


def test_a_user_defined_network_is_called_by_its_name(tmp_path: Path) -> None:
    def gate(x: Any, U: Any, V: Any) -> Any:
        return (U @ x) * (V @ x)

    model = from_callable(gate, {"U": (2, 3), "V": (2, 3)}, inputs={"x": (3,)}, name="my gate")
    records.save(dimension(model, engine=False), tmp_path)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report.html")]) == 0
    assert "my gate, 12 weights" in Tags((tmp_path / "report.html").read_text(encoding="utf-8")).text


@pytest.mark.parametrize("place", ["missing/report.html", "."])
def test_a_place_that_cannot_be_written_to_is_refused(place: str, tmp_path: Path, answer: Dimension) -> None:
    records.save(answer, tmp_path)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / place)]) == 2


def test_no_records_are_no_page(tmp_path: Path) -> None:
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == 2
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("z0^2*z2 - z1^2 = 0", True),
        ("dimension 4, degree 3: z2*z4-z1*z5, z2*z3-z0*z5", True),
        ("3/2*x_1_2^10", True),
        ("2 of degree 3", False),
        ("a b*c", False),
        ("x^<script>", False),
        ("x^y", False),
        ("see *this*", False),
    ],
)
def test_polynomials_are_typeset_and_nothing_else(text: str, shown: bool) -> None:
    assert ("<math>" in boxes.typeset(text)) is shown
    assert "<script>" not in boxes.typeset(text)


def test_a_box_escapes_all_that_it_shows() -> None:
    view = View(
        answer=HOSTILE, facts=((HOSTILE, HOSTILE),), notes=(HOSTILE,),
        tables=(Rows(title=HOSTILE, columns=(HOSTILE,), cells=((HOSTILE,),)),),
    )  # fmt: skip
    text = boxes.box(view, certainty="proved", agreement=True, ground=HOSTILE, title=HOSTILE)
    assert not [tag for tag, _ in Tags(text).tags if tag in ("script", "img")]


def test_an_answer_refuted_by_its_evidence_is_damaged(answer: Dimension, tmp_path: Path) -> None:
    """A record whose headline was edited is listed as altered, and is neither shown nor cited as proved."""
    path = records.save(answer, tmp_path)
    document = json.loads(path.read_text())
    document["image_dim"] += 1
    path.write_text(json.dumps(document))
    target = tmp_path / "report.html"
    assert main(["report", str(path), "-o", str(target)]) == 2
    assert "altered" in target.read_text()
    with pytest.raises(InputError, match="altered"):
        sentence(records.load(path))
    text = explain(records.load(path))
    assert "altered" in text
    assert "proved." not in text


def test_a_source_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    assert main(["report", str(tmp_path / "nothing"), "-o", str(tmp_path / "report.html")]) == 2
    assert not (tmp_path / "report.html").exists()


def test_a_record_of_another_package_is_unknown_and_not_damaged(
    answer: Dimension, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its package may have gone since; a family that has gone is called by its spec."""
    document = {**records.to_document(answer), "certificate": None, "certainty": "computed"}
    del document["digest"]
    (tmp_path / "asked.json").write_text(json.dumps({**document, "analysis": "alchemy"}))
    target = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "-o", str(target)]) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert re.search(r"unknown: asked\.json: .*'alchemy'", output)
    (tmp_path / "family.json").write_text(json.dumps({**document, "model": "gold(d=2)"}))
    assert main(["report", str(tmp_path), "-o", str(target)]) == 0
    seen = Tags(target.read_text()).text
    assert "Damaged" not in seen
    assert "gold(d=2)" in seen
    assert main(["explain", str(tmp_path / "family.json")]) == 0
    assert "gold(d=2)" in capsys.readouterr().out
