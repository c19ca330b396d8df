"""Engine stage: a fresh Macaulay2 for each script. A script enters, a `Run` leaves."""

from __future__ import annotations

from m2bridge.engine.base import Engine, EngineInfo, Limits, Listener, Run
from m2bridge.engine.keeper import Command, KeeperProcess, attempted, file_name
from m2bridge.errors import InputError
from m2bridge.scripts import Script

FIXED_SEED = "setRandomSeed 0;"
"""Both engines begin every script with Macaulay2's random numbers in the same state."""


class ProcessEngine(Engine):
    """Runs each script in a Macaulay2 of its own; any number of threads may run scripts at once."""

    def __init__(self, info: EngineInfo) -> None:
        if info.path is None:
            raise InputError("an engine that runs Macaulay2 needs its path")
        self._info = info
        self._path = info.path

    @property
    def info(self) -> EngineInfo:
        return self._info

    def run(self, script: Script, limits: Limits | None = None, listener: Listener | None = None) -> Run:
        """Run `script` to its end or to the first limit reached; thread-safe."""
        command = Command(
            path=self._path,
            preload=script.preload,
            expression=f'get "../gate"; {FIXED_SEED} load "./{file_name(script)}"; exit 0',
        )
        return attempted(KeeperProcess, command, script, limits or Limits(), listener, self._info)
