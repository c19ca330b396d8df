"""The kernel: what a declaration gives, and what is done for every question in the same way."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from m2bridge import records, schemas
from m2bridge.certainty import Certainty
from m2bridge.engine.base import Outcome
from m2bridge.errors import InputError, LimitError, M2BridgeError, NoEngineError
from m2bridge.evidence import AGREEMENT_WORDS, Evidence
from m2bridge.families import Model
from m2bridge.limits import Clock, LimitReached, Limits
from m2bridge.questions import QUESTIONS, comments, find, kernel, questions, sentences
from m2bridge.questions.kernel import Context, Option, Question, question
from m2bridge.results import RESULT_TYPES, Result
from m2bridge.scripts import Script
from m2bridge.views import View
from tests.replay import ReplayEngine, Transcript

LAYER = "lightning(d=2,dp=1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Double(Result):
    """Twice the number of weights."""

    ANALYSIS: ClassVar[str] = "double-weights"
    VERSION: ClassVar[int] = 1

    double: int

    def view(self) -> View:
        return View(answer=f"twice the weights: {self.double}")


@question(asks="Twice the number of weights.", quantities={"double": "twice the weights"})
def double_weights(
    context: Context,
    model: Model,
    *,
    more: Annotated[int, Option("A number to add.", least=0)] = 0,
    late: bool = False,
    wrong: bool = False,
) -> Double:
    """Twice the number of weights, by Macaulay2 and by Python."""
    if late:
        raise LimitReached("the time limit of 1 s was reached")
    value = 2 * model.parameter_count + more
    values, limit = context.run_script(Script(name="double", text=f"<< {value};"))
    context.add_evidence(
        Evidence("double", values.integer("double"), "macaulay2", "a sum", ancestry="template")
    )
    context.add_evidence(Evidence("double", value + wrong, "modular", "a product", ancestry="program"))
    return context.build_result(
        Double, model=model.spec, certainty=Certainty.PROVED, double=value, limit=limit
    )


del RESULT_TYPES["double-weights"]  # known only while these tests run, whatever is collected after this file


@pytest.fixture(autouse=True)
def forgotten() -> object:
    """The toy result is known here only."""
    RESULT_TYPES["double-weights"] = Double
    yield
    del RESULT_TYPES["double-weights"]


@pytest.fixture
def engine() -> ReplayEngine:
    stdout = "@m2b double 20\n@m2b-end 1\n"
    return ReplayEngine([Transcript(script="double", stdout=stdout)])


def test_an_answer_has_what_all_answers_have(engine: ReplayEngine) -> None:
    answer = double_weights(LAYER, engine=engine, seed=3)
    assert (answer.double, answer.seed, answer.agreement, answer.limit) == (20, 3, True, None)
    assert [used.name for used in answer.scripts] == ["double"]
    assert answer.engine is not None
    assert answer.seconds >= 0
    assert repr(answer) == (
        f"Double('lightning(d=2,dp=1,a=2,t=2)': {answer.view().answer}; probable, {AGREEMENT_WORDS[True]})"
    )
    assert records.from_document(records.to_document(answer)) == answer
    assert "text" not in records.to_document(answer)["scripts"][0]
    assert "double" in schemas.schema("double-weights")["properties"]


def test_witnesses_that_disagree(engine: ReplayEngine) -> None:
    answer = double_weights(LAYER, engine=engine, wrong=True)
    assert answer.agreement is False
    assert answer.conflicts


@pytest.mark.parametrize("wrong", [False, True])
def test_a_contradiction_of_a_question_behind_is_one_of_the_answer(engine: ReplayEngine, wrong: bool) -> None:
    @question(asks="Four times the number of weights.")
    def four_times(context: Context, model: Model) -> Double:
        half = context.ask_question(double_weights, model, wrong=wrong).double
        return context.build_result(Double, model=model.spec, certainty=Certainty.PROVED, double=2 * half)

    found = four_times(LAYER, engine=engine)
    assert (found.double, found.agreement, len(found.conflicts)) == (40, False if wrong else None, wrong)


def test_evidence_is_added_in_one_way(engine: ReplayEngine) -> None:
    @question(asks="The number of weights, with evidence that was not added to the context.")
    def own_evidence(context: Context, model: Model) -> Double:
        return context.build_result(
            Double, model=model.spec, certainty=Certainty.PROVED, double=0, evidence=()
        )

    with pytest.raises(TypeError, match="evidence"):
        own_evidence(LAYER, engine=engine)


def test_options_are_checked() -> None:
    assert list(double_weights.options) == ["more", "late", "wrong"]
    assert double_weights.options["more"].option.least == 0
    with pytest.raises(InputError, match="more"):
        double_weights(LAYER, mor=1)
    with pytest.raises(InputError, match="spec"):
        double_weights(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="prime") as refused:
        find("boundary")(LAYER, prime=101)
    assert refused.value.argument == "prime"
    for wrong in ({"more": -1}, {"more": "many"}, {"more": 1.5}, {"more": True}, {"seed": -1}, {"seed": "x"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            double_weights(LAYER, **wrong)


def test_an_answer_of_other_types_than_declared_is_no_record(engine: ReplayEngine) -> None:
    answer = double_weights(LAYER, engine=engine)
    with pytest.raises(M2BridgeError, match=r"test_kernel\.Double .* int"):
        records.to_document(replace(answer, double="twenty"))


def test_no_engine_and_no_time() -> None:
    with pytest.raises(NoEngineError):
        double_weights(LAYER, engine=False)
    with pytest.raises(LimitError, match="quantity"):
        double_weights(LAYER, late=True)


def test_the_clock_is_that_of_the_whole_question() -> None:
    seen: list[float | None] = []

    class Watched(ReplayEngine):
        def run(self, script: Script, limits: Limits | None = None, listener: object = None):  # type: ignore[no-untyped-def,override]
            seen.append(limits.wall_seconds if limits else None)
            return super().run(script, limits, None)

    stdout = "@m2b double 20\n@m2b-end 1\n"
    double_weights(
        LAYER, engine=Watched([Transcript(script="double", stdout=stdout)]), timeout="5s", memory="1G"
    )
    assert seen[0] is not None
    assert 1 <= seen[0] <= 5


def test_a_part_of_the_time_is_named_as_a_part() -> None:
    """What the user gave is named, also by a question that another one asks within what is left of the time."""
    stopped = ReplayEngine([Transcript(script="double", stdout="", outcome=Outcome.TIMED_OUT)])
    words = {"prime": None, "seed": 0, "keep": None, "progress": None}
    clock = Clock(40.0, allowed_seconds=60.0)
    context = Context(engine=stopped, limits=Limits(), clock=clock, **words)  # type: ignore[arg-type]
    values, limit = context.run_script(Script(name="double", text="<< 1;"), share=0.05)
    assert not values.complete
    assert limit is not None
    assert "60 s" in limit
    assert "--timeout" in limit
    context.clock.started -= 50
    with pytest.raises(LimitReached, match="60 s"):
        context.clock.check()


def test_a_question_explains_itself() -> None:
    assert "by Macaulay2 and by Python" in (inspect.getdoc(double_weights) or "")
    assert "timeout" in inspect.signature(double_weights).parameters
    assert repr(double_weights) == "<question double-weights: Twice the number of weights.>"


def test_the_table_of_questions_is_what_the_modules_declare() -> None:
    folder = Path(kernel.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    assert sum(path.read_text().count("\n@question(") for path in files) == len(QUESTIONS)
    for name, sentence in QUESTIONS.items():
        found = find(name)
        assert (found.name, found.asks) == (name, sentence)
        assert sentence.endswith(".")
        assert found.quantities
        assert all(text for text in found.quantities.values())
        for own in found.options.values():
            assert own.option.help.endswith((".", "'.")), (name, own.name)


@pytest.mark.parametrize("name", ["nowhere", "no.where", ".where"])
def test_a_plugin_that_is_not_there_leaves_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M2BRIDGE_PLUGINS", name)
    assert "dimension" in sentences()
    with pytest.raises(InputError, match="M2BRIDGE_PLUGINS names"):
        questions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commented(Double):
    ANALYSIS: ClassVar[str] = "commented"
    COMMENT_FIELDS: ClassVar[tuple[str, ...]] = ("remark",)

    remark: str | None = None


def commented(context: Context, model: Model) -> Commented:
    return context.build_result(Commented, model=model.spec, certainty=Certainty.PROVED, double=2)


def test_comments_fill_the_fields_that_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages comment on an answer through entry points; they cannot change what was computed."""
    seen: list[str] = []

    def comment(name: str, fields: dict[str, Any]) -> tuple[str, comments.Comment]:
        return name, lambda question, subject, answer: seen.append(question) or fields

    asked: Question[Model, Commented] = Question(
        name="commented", asks="Nothing.", function=commented, result=Commented, needs_engine=False
    )
    two = comment("a", {"remark": "first"}), comment("b", {"remark": "second"})
    monkeypatch.setattr(comments, "_functions", lambda: two)
    assert asked(LAYER).remark == "first"
    assert seen == ["commented", "commented"]
    monkeypatch.setattr(comments, "_functions", lambda: (comment("c", {"double": 3}),))
    with pytest.raises(InputError, match=r"'c' .*'double' .*commented"):
        asked(LAYER)
