"""Engine stage: a fresh Macaulay2 for each script. A script enters, a `Run` leaves."""

from __future__ import annotations

import logging

from m2bridge.engine.base import Engine, EngineInfo, Limits, Listener, Run
from m2bridge.engine.conversation import KeeperLostError
from m2bridge.engine.keeper import Command, Keeper, file_name, lost_run
from m2bridge.errors import InputError
from m2bridge.scripts import Script

log = logging.getLogger(__name__)

FIXED_SEED = "setRandomSeed 0;"
"""Both engines begin every script with Macaulay2's random numbers in the same state."""
UNKNOWN = "unknown"
"""The version of a Macaulay2 that is still to be proved."""
ATTEMPTS = 3


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
        limits = limits or Limits()
        reason = ""
        for _ in range(ATTEMPTS):
            keeper = Keeper()
            try:
                run = keeper.run(command, script, limits, listener=listener, info=self._info)
                wrong = other_version(keeper, self._info)
                return run if wrong is None else lost_run(script, self._info, limits, wrong, began=False)
            except KeeperLostError as error:
                reason = str(error)
                if error.started:
                    return lost_run(script, self._info, limits, reason, began=True)
                log.warning("%s; starting another", reason)
            finally:
                keeper.close()
        return lost_run(script, self._info, limits, reason, began=False)


def other_version(keeper: Keeper, info: EngineInfo) -> str | None:
    """Why the Macaulay2 that has just run is not the one that `info` names; None when it is."""
    if info.version == UNKNOWN or keeper.version in (None, info.version):
        return None
    return (
        f"the Macaulay2 at {info.path} is of version {keeper.version} now, and was of version {info.version}"
    )
