"""CLI: what m2bridge does when it is the first process of a container.

The kernel treats the first process (PID 1) differently: a signal that it has no handler for is dropped, so SIGTERM would do
nothing; and processes whose parent died become its children, to be waited for. So the first process starts a second one, which
runs the command as anywhere else, and does three things only: it passes signals on, it waits for every process that ended, and
after the command it leaves the keepers of Macaulay2 the time to remove their directories. Then it ends as the command ended.
"""

from __future__ import annotations

import os
import signal
import sys
import time

PATIENCE = 5.0
"""Seconds that other processes may take to end after the command: the end of the first process kills them."""

_PASSED_ON = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def stay_in_charge() -> None:
    """Return in a new process, which runs the command; the calling process stays and exits with the command's exit code."""
    watched = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    command = os.fork()
    if command == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    try:
        code = _follow(command, watched)
        _wait_for_the_others(time.monotonic() + PATIENCE)
    except BaseException as error:  # must not return into the caller's code
        print(f"m2bridge: the first process failed: {error!r}", file=sys.stderr, flush=True)
        code = 1
    os._exit(code)


def _follow(command: int, watched: set[signal.Signals]) -> int:
    """Pass signals on to the command until it has ended; its exit code, 128 + n when signal n killed it."""
    while True:
        for pid, status in _ended():
            if pid == command:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        news = signal.sigwaitinfo(watched)
        # A terminal sends its signals to the command as well (si_code > 0: they come from the kernel). Passing them on would say
        # everything twice, and to `batch` a second interrupt means something else.
        if news.si_signo in _PASSED_ON and news.si_code <= 0:
            os.kill(command, news.si_signo)


def _wait_for_the_others(deadline: float) -> None:
    """Wait until no process is left, or until the deadline."""
    while _has_children() and (left := deadline - time.monotonic()) > 0:
        signal.sigtimedwait({signal.SIGCHLD}, min(left, 0.05))
        for _ in _ended():
            pass


def _ended() -> list[tuple[int, int]]:
    """The children that have ended since the last call, with their statuses."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _has_children() -> bool:
    """Whether any child, running or ended, is left."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
