"""Where an analysis asks Macaulay2. Renders, runs, reads, and remembers what was used for the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from m2bridge import protocol, scripts
from m2bridge.engine import Engine, Limits, Run, open_engine
from m2bridge.errors import InputError, LimitError
from m2bridge.models import Model, parse_spec
from m2bridge.protocol import Values
from m2bridge.results import EngineUse, ScriptUse
from m2bridge.scripts import Script

ProgressListener = Callable[[str], None]
"""Called with the name of each step of a computation as it begins."""


@contextmanager
def opened(engine: Engine | None) -> Iterator[Engine]:
    """The engine itself, or the first Macaulay2 that works, opened for the time of the block."""
    if engine is not None:
        yield engine
        return
    with open_engine() as own:
        yield own


def model_of(model: Model | str) -> Model:
    """A model, given as itself or by its spec string; anything else is an InputError."""
    if isinstance(model, str):
        return parse_spec(model)
    if not isinstance(model, Model):
        raise InputError(
            f"a model or its spec, such as 'lightning(d=2,dp=1)', is needed here, not {_named(model)}"
        )
    return model


def _named(thing: object) -> str:
    if callable(thing) and not isinstance(thing, type):
        return "a function; m2bridge.from_callable makes a model of it"
    return f"the {type(thing).__name__} {str(thing)[:40]!r}"


class Workbench:
    """An engine, its limits, and the trail of what was run through them.

    Parameters
    ----------
    engine
        The engine that runs the scripts.
    limits
        For each run.
    keep
        A directory in which to leave every script with its raw output, or None.
    progress
        Told each step that a script announces.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        limits: Limits | None = None,
        keep: Path | None = None,
        progress: ProgressListener | None = None,
    ) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self._keep = keep
        self._progress = progress
        self.scripts: list[ScriptUse] = []
        self.seconds = 0.0
        self.peak_memory_bytes: int | None = None

    @property
    def engine_use(self) -> EngineUse:
        return EngineUse(version=self.engine.info.version, origin=self.engine.info.origin)

    def announce(self, step: str) -> None:
        """Tell the progress listener, if there is one, what begins now."""
        if self._progress is not None:
            self._progress(step)

    def ask(
        self, template: str | Path, parameters: Mapping[str, object], model: Model | None = None
    ) -> Values:
        """The values that a template emits; a run that did not finish is an error of its own type."""
        return protocol.read(self._run(_rendered(template, parameters, model)))

    def ask_within_limits(
        self, template: str | Path, parameters: Mapping[str, object], model: Model | None = None
    ) -> tuple[Values, LimitError | None]:
        """Like :meth:`ask`, but a run stopped by a limit answers with what it had found, and the limit's error."""
        return self.run_within_limits(_rendered(template, parameters, model))

    def run_within_limits(self, script: Script) -> tuple[Values, LimitError | None]:
        """Like :meth:`ask_within_limits`, for a script that is rendered already."""
        run = self._run(script)
        try:
            return protocol.read(run), None
        except LimitError as error:
            found = error.fields.get("values") or Values({}, False, run)
            return found, error

    def _run(self, script: Script) -> Run:
        run = self.engine.run(script, self.limits, self._listen)
        self.scripts.append(ScriptUse(name=script.name, sha256=script.sha256))
        self.seconds += run.seconds
        if run.peak_memory_bytes is not None:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, run.peak_memory_bytes)
        if self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            stem = self._keep / f"{script.name}-{script.sha256[:12]}"
            stem.with_suffix(".m2").write_text(script.text, encoding="utf-8")
            stem.with_suffix(".out").write_text(run.stdout, encoding="utf-8")
            stem.with_suffix(".err").write_text(run.stderr, encoding="utf-8")
        return run

    def _listen(self, line: str) -> None:
        if self._progress is not None and (step := protocol.step_of(line)) is not None:
            self._progress(step)


def _rendered(template: str | Path, parameters: Mapping[str, object], model: Model | None) -> Script:
    if model is None:
        return scripts.render(template, parameters)
    return scripts.render(template, {**model.m2_parameters, **parameters}, partial=model.m2_partial)
