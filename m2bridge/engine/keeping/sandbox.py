"""Engine stage, outside the caller's process: takes from Macaulay2 what a script has no business with.

The keeper calls :func:`become` between fork and exec. Where the kernel has Landlock (Linux 5.13 and newer), neither Macaulay2
nor any command that it runs can create, write, rename or remove a file, open a TCP connection (6.7), nor signal a process
outside (6.12). A seccomp filter (x86-64 and ARM64) takes away sockets of every kind, UDP and Unix sockets among them, and
io_uring, which could make them. Root keeps no capability, so that it cannot read the environment of a process that has them;
for other users the commands of m2bridge hide theirs (:func:`hide_environment`). Elsewhere only the engine's own
``--read-only-files`` and a file size limit of zero remain. Reading files is not restricted. :func:`measured` says what of this
holds on the machine at hand, by trying. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
WRITE_FILE, REMOVE_DIR_TO_MAKE_SYM = 1 << 1, sum(1 << bit for bit in range(4, 13))
REFER, TRUNCATE, TCP, SCOPES = 1 << 13, 1 << 14, 0b11, 0b11
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SYSTEM_CALLS = {  # the number that seccomp gives the architecture; socket, ptrace, process_vm_readv and _writev
    "x86_64": (0xC000003E, (41, 101, 310, 311)),
    "aarch64": (0xC00000B7, (198, 117, 270, 271)),
}
IO_URING_SETUP, X32 = 425, 0x40000000
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES


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


def filter_system_calls() -> bool:
    """Take sockets and looks into other processes from this process and all that it starts; False where seccomp cannot."""
    architecture, calls = SYSTEM_CALLS.get(platform.machine(), (0, ()))
    if not calls:
        return False
    refused = (*calls, IO_URING_SETUP)
    tests = [(JUMP_IF_AT_LEAST, X32), *((JUMP_IF_EQUAL, number) for number in refused)]
    program = [(LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, 0)]
    for at, (code, number) in enumerate(tests):
        program.append((code, len(tests) - at, 0, number))
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.prctl(PR_SET_SECCOMP, 2, filter_, 0, 0) == 0
    )


def drop_capabilities() -> None:
    """Without its capabilities root cannot look into processes that have them, whatever the kernel's Landlock knows."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    with contextlib.suppress(AttributeError):
        libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))


def hide_environment(hidden: bool = True) -> None:
    """Keep processes of the same user, such as a script in Macaulay2, from reading this process's environment (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(not hidden), 0, 0, 0)


def measured() -> dict[str, int]:
    """What the sandbox takes away here, found by trying in a process of its own; 1 for what holds, and Landlock's version."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.write(writing, json.dumps(_tried()).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(said or "{}")
    return found


def _tried() -> dict[str, int]:
    found = {"landlock": landlock_version(), "landlock_on": restrict(), "seccomp_on": filter_system_calls()}
    drop_capabilities()
    found["files_cannot_be_written"] = _refused(lambda: tempfile.TemporaryFile().close())
    found["no_tcp_sockets"] = _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
    found["no_udp_sockets"] = _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close())
    found["no_unix_sockets"] = _refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close())
    found["environment_hidden"] = _refused(Path(f"/proc/{os.getppid()}/environ").read_bytes)
    return found


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def limits(most: int, present: tuple[int, int]) -> tuple[int, int]:
    """A soft and a hard limit; where the caller's own hard limit is lower it stays, because it cannot be raised.

    >>> limits(5, (7, 7)), limits(9, (3, 7)), limits(9, (-1, -1))
    ((5, 5), (7, 7), (9, 9))
    """
    hard = present[1]
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return value, value


def become(
    command: list[str], environment: dict[str, str], directory: Path, cpu_seconds: int | None, parent: int
) -> NoReturn:
    """Turn this freshly forked process into Macaulay2: own session, no writing, and no life without its parent."""
    try:
        os.setsid()
        os.chdir(directory)
        for number in ("SIGCHLD", "SIGPIPE", "SIGXFSZ", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
            signal.signal(signal.Signals[number], signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if cpu_seconds is not None:
            resource.setrlimit(
                resource.RLIMIT_CPU, limits(cpu_seconds, resource.getrlimit(resource.RLIMIT_CPU))
            )
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before the signal was asked for
                os._exit(127)
            restrict()
            filter_system_calls()
            drop_capabilities()
        os.execve(command[0], command, environment)
    except BaseException as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
    os._exit(127)
