"""Engine stage, for unit tests only: serves captured output instead of running Macaulay2.

Transcripts enter, :class:`~m2bridge.engine.base.Run` leaves. Never use it in a test that claims to use
Macaulay2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from m2bridge.engine.base import Engine, EngineInfo, Listener, Outcome, Run
from m2bridge.errors import InputError
from m2bridge.limits import Limits
from m2bridge.scripts import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What a run of Macaulay2 left, and the script it belongs to: its name, or the sha256 of its text."""

    script: str
    outcome: Outcome = Outcome.FINISHED
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    exit_status: int | None = None
    signal: int | None = None
    engine_version: str = "replay"

    @classmethod
    def of(cls, run: Run, *, by_sha256: bool = False) -> Self:
        """The transcript of a run."""
        return cls(
            script=run.script.sha256 if by_sha256 else run.script.name,
            outcome=run.outcome,
            stdout=run.stdout,
            stderr=run.stderr,
            seconds=run.seconds,
            exit_status=run.exit_status,
            signal=run.signal,
            engine_version=run.engine.version,
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a transcript from a JSON file."""
        entries = json.loads(path.read_text(encoding="utf-8"))
        entries["outcome"] = Outcome(entries.get("outcome", "finished"))
        return cls(**entries)

    def save(self, path: Path) -> None:
        """Write the transcript to a JSON file."""
        entries = {name: getattr(self, name) for name in self.__dataclass_fields__}
        path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


class ReplayEngine(Engine):
    """Answers each script with the transcript that has its sha256 or, failing that, its name."""

    def __init__(self, transcripts: Iterable[Transcript]) -> None:
        self._transcripts = {transcript.script: transcript for transcript in transcripts}
        versions = {transcript.engine_version for transcript in self._transcripts.values()}
        self._info = EngineInfo(version=versions.pop() if len(versions) == 1 else "replay", origin="replay")
        self.served: list[Script] = []

    @classmethod
    def from_directory(cls, directory: Path) -> Self:
        """All transcripts (``*.json``) of a directory."""
        return cls(Transcript.load(path) for path in sorted(directory.glob("*.json")))

    @property
    def info(self) -> EngineInfo:
        return self._info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """The run recorded for `script`."""
        transcript = self._transcripts.get(script.sha256) or self._transcripts.get(script.name)
        if transcript is None:
            raise InputError(f"no transcript of script {script.name} (sha256 {script.sha256[:12]}...)")
        self.served.append(script)
        if listener is not None:
            for line in transcript.stdout.split("\n")[:-1]:
                listener(line)
        return Run(
            script=script,
            engine=self._info,
            outcome=transcript.outcome,
            stdout=transcript.stdout,
            stderr=transcript.stderr,
            seconds=transcript.seconds,
            limits=limits or Limits(),
            exit_status=transcript.exit_status,
            signal=transcript.signal,
        )
