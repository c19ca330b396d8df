"""Engine stage, outside the caller's process: takes from Macaulay2 what a script has no business with.

The keeper calls :func:`become` between fork and exec. Where the kernel has Landlock (Linux 5.13 and newer),
neither Macaulay2 nor any command that it runs can create, write, rename or remove a file, nor open a TCP
connection (6.7), nor signal a process outside (6.12). Elsewhere only the engine's own ``--read-only-files``
and a file size limit of zero remain. Reading is not restricted. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import NoReturn

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
WRITE_FILE, REMOVE_DIR_TO_MAKE_SYM = 1 << 1, sum(1 << bit for bit in range(4, 13))
REFER, TRUNCATE, TCP, SCOPES = 1 << 13, 1 << 14, 0b11, 0b11
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38


def landlock_version() -> int:
    """The version of the kernel's Landlock; 0 where there is none."""
    try:
        return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, 1)))
    except (OSError, AttributeError):
        return 0


def restrict() -> bool:
    """Restrict the calling process and all that it starts; False where the kernel cannot."""
    version = landlock_version()
    if version < 1:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    files = WRITE_FILE | REMOVE_DIR_TO_MAKE_SYM
    files |= (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    attributes = struct.pack("=QQQ", files, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    null = os.open(os.devnull, os.O_RDWR)
    rule = struct.pack("=Qi", WRITE_FILE | (files & TRUNCATE), null)
    done = (
        libc.syscall(ADD_RULE, ruleset, 1, rule, 0) == 0
        and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        and libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    )
    os.close(null)
    os.close(ruleset)
    return bool(done)


def become(
    command: list[str], environment: dict[str, str], directory: Path, cpu_seconds: int | None
) -> NoReturn:
    """Turn this freshly forked process into Macaulay2: own session, nothing inherited, no writing."""
    try:
        os.setsid()
        os.chdir(directory)
        for number in ("SIGCHLD", "SIGPIPE", "SIGXFSZ", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
            signal.signal(signal.Signals[number], signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if cpu_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            restrict()
        os.execve(command[0], command, environment)
    except BaseException as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
    os._exit(127)
