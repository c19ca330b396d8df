"""Citing a record: the sentence claims what the record holds, and the LaTeX compiles."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from m2bridge import latex, records
from m2bridge.certainty import Certainty
from m2bridge.cli import main
from m2bridge.errors import DisagreementError
from m2bridge.evidence import RELATION_WORDS, Evidence
from m2bridge.questions.dimension import Dimension, dimension
from m2bridge.questions.same import same
from m2bridge.questions.symmetries import symmetries
from m2bridge.report.cite import _point_text, bibliography, citation, sentence
from m2bridge.report.explain import explain
from m2bridge.results import Result, altered
from m2bridge.views import View
from tests.running import PATIENCE

HOSTILE = r"50% \input{/etc/passwd} $x_1^2$ & #{}~ \end{document} é ☃ < > \"|" + chr(7)


@pytest.fixture(scope="module")
def answer() -> Dimension:
    return dimension("deep-lightning(d=[2,2,2],a=[2,2],t=3)", engine=False)


def test_a_citation_states_what_is_proved_and_how(answer: Dimension) -> None:
    text = sentence(answer)
    assert text.count("\n") == 1
    assert f"``dimension {answer.image_dim}, affine''" in text
    assert f"{RELATION_WORDS['>=']} {answer.image_dim} [modular:" in text
    assert f"{RELATION_WORDS['<=']} {answer.image_dim} [" in text
    assert "verified" not in text
    assert "verified" in sentence(answer, verified=True)


def test_a_certificate_of_a_part_is_cited_as_one() -> None:
    """The orbits of the scalings have dimension three, the fibers six: only the second number has a certificate."""
    part = symmetries("mlp(widths=[2,3,2],r=2)", engine=False)
    text = citation(part).partition("\n")[0]
    assert "covers one part, which the separate checker verified" in text
    assert "without a certificate" not in text
    assert "covers one part of the answer" in explain(part)
    whole = symmetries("mlp(widths=[2,2,1],r=2)", engine=False)
    assert "one part" not in citation(whole) + explain(whole)


def test_a_sentence_names_the_point_the_weights_and_the_loss() -> None:
    at = {"W1": [[1, 2]], "W2": [[1], [2]]}
    text = sentence(same("linear(widths=[2,1,2])", at=at, other=at, engine=False))
    assert text.count("W1 = [[1, 2]], W2 = [[1], [2]]") == 2
    large = {"W1": np.eye(9, dtype=int), "W2": np.eye(9, dtype=int)}
    other = sentence(same("linear(widths=[9,9,9])", at=large, other=large, engine=False))
    assert re.search(r"\(sha256 \\texttt\{[0-9a-f]{16}\}\)", other)
    # what the records of membership, boundary and critical-points hold, which take Macaulay2 to compute
    assert "(5, 1/2)" in _point_text(SimpleNamespace(point=(Fraction(5), Fraction(1, 2))))
    assert "(5)" in _point_text(SimpleNamespace(point=SimpleNamespace(coordinates=(Fraction(5),))))
    assert r"``a 50\% loss''" in _point_text(SimpleNamespace(loss="a 50% loss"))


@pytest.mark.parametrize("certainty", [Certainty.PROBABLE, Certainty.NUMERIC])
def test_unproved_answers_are_not_called_proved(answer: Dimension, certainty: Certainty) -> None:
    text = sentence(replace(answer, certainty=certainty, certificate=None))
    assert "not proved" in text
    assert "exact argument" not in text


def test_witnesses_that_disagree_are_not_cited(answer: Dimension) -> None:
    with pytest.raises(DisagreementError):
        sentence(replace(answer, agreement=False))


def test_every_key_has_its_entry_and_no_other_is_there(answer: Dimension) -> None:
    keys = {key for group in re.findall(r"\\cite\{([\w,]+)\}", sentence(answer)) for key in group.split(",")}
    assert set(re.findall(r"@\w+\{(\w+),", bibliography(answer))) == keys
    assert {"m2bridge", "henry2025"} <= keys
    assert "macaulay2" not in keys  # it was not asked


def test_the_version_is_that_of_the_record(
    answer: Dimension, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records.save(answer, tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["package_version"] = "0.1.7"
    document["digest"] = records.digest_of(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["cite", str(path)]) == 0
    out = capsys.readouterr().out
    assert r"\texttt{m2bridge}~0.1.7" in out
    assert "Version 0.1.7" in out
    assert "verified" in out


def test_an_altered_record_is_not_cited(answer: Dimension, tmp_path: Path) -> None:
    path = records.save(replace(answer, image_dim=answer.image_dim + 1), tmp_path)
    assert main(["cite", str(path)]) == 7


def test_an_altered_record_is_not_explained(
    answer: Dimension, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither where its certificate shows something else, nor, without one, where its own evidence does."""
    assert main(["explain", str(records.save(answer, tmp_path / "good"))]) == 0
    wrong = replace(answer, image_dim=answer.image_dim + 1)
    assert main(["explain", str(records.save(wrong, tmp_path / "wrong"))]) == 7
    assert "image_dim" in capsys.readouterr().err
    assert main(["explain", str(records.save(replace(wrong, certificate=None), tmp_path / "bare"))]) == 7
    assert "altered" in capsys.readouterr().out


@dataclass(frozen=True, slots=True, kw_only=True)
class YesOrNo(Result):
    ANALYSIS: ClassVar[str] = "yes-or-no"

    holds: bool

    def view(self) -> View:
        return View(answer="yes" if self.holds else "no", to_prove="")


def test_yes_and_no_are_compared_with_what_is_proved_too() -> None:
    shown = Evidence("holds", True, "substitution", "values", certainty=Certainty.PROVED)
    said = YesOrNo(
        model="map:t->t",
        certainty=Certainty.COMPUTED,
        agreement=None,
        evidence=(shown,),
        seed=0,
        seconds=0.0,
        holds=True,
    )
    assert altered(said) is None
    assert "altered" in (altered(replace(said, holds=False)) or "")


def test_latex_of_everything_compiles(answer: Dimension, tmp_path: Path) -> None:
    """The sentence, its bibliography and hostile text, in one document."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: apt-get install texlive-latex-base texlive-latex-recommended")
    entries = "".join(
        rf"\bibitem{{{key}}} {latex.escaped(key)}" + "\n"
        for key in re.findall(r"@\w+\{(\w+),", bibliography(answer))
    )
    text = "\n".join([
        r"\documentclass{article}", r"\usepackage[T1]{fontenc}", r"\usepackage{amssymb}", r"\begin{document}",
        sentence(answer), sentence(replace(answer, model=HOSTILE, limit=HOSTILE)),
        r"\begin{thebibliography}{9}", entries,
        r"\end{thebibliography}", r"\end{document}",
    ])  # fmt: skip
    (tmp_path / "cite.tex").write_text(text, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "cite.tex"]
    done = [
        subprocess.run(
            command, check=False, cwd=tmp_path, capture_output=True, encoding="latin-1", timeout=PATIENCE
        )
        for _ in range(2)
    ][-1]
    assert done.returncode == 0, done.stdout[-2000:]
    assert "undefined" not in done.stdout
