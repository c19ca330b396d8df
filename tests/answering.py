"""Answers that several tests look at: each question is asked once in a run of the tests."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any, TypeVar

from m2bridge.engine import Engine
from m2bridge.families import Model
from m2bridge.questions.kernel import Question, model_of
from m2bridge.results import Result

R = TypeVar("R", bound=Result)


class Answers:
    """Ask questions with one engine and keep what they answer.

    Processes that run the same tests share the answers through files of `directory`. A test that damages a program or
    a template asks the question itself: nothing of it may be kept.
    """

    def __init__(self, engine: Engine, directory: Path) -> None:
        self._engine = engine
        self._directory = directory
        self._kept: dict[str, Any] = {}
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(self, question: Question[Any, R], subject: str | Model, **options: Any) -> R:
        """Return the answer of `question` about `subject`, a model or its spec, with options of the question."""
        model = model_of(subject)
        asked = repr((question.name, model.spec, sorted(options.items())))
        if asked not in self._kept:
            self._kept[asked] = self._from_file(asked, question, model, options)
        kept: R = self._kept[asked]
        return kept

    def _from_file(self, asked: str, question: Question[Any, R], model: Model, options: dict[str, Any]) -> R:
        path = self._directory / hashlib.sha256(asked.encode()).hexdigest()
        if path.exists():
            answer: R = pickle.loads(path.read_bytes())
            return answer
        answer = question(model, engine=self._engine, **options)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(answer))
        unfinished.replace(path)
        return answer
