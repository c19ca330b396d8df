"""The sandbox in which Macaulay2 runs. Standard library only.

The supervisor calls :func:`exec_macaulay2` between fork and exec. The restrictions hold for Macaulay2 and every command that it
runs:

- Landlock (Linux 5.13 and newer): files can be created, written, renamed or removed only in the temporary directory of the run;
  no TCP connection can be opened (6.7); no process outside the sandbox can be signalled (6.12).
- A seccomp filter (x86-64 and ARM64): no socket of any kind, including UDP and Unix sockets, and no io_uring, which could
  create sockets.
- Capabilities are dropped, so that root cannot read the environment of a process that has capabilities. For other users the
  commands of m2bridge protect their environment with :func:`hide_environment`.

On other systems only Macaulay2's option ``--read-only-files`` and a file size limit of zero remain, and packages that need
temporary files cannot be loaded. Reading files is not restricted. :func:`measured` tests which restrictions are effective on
the current machine.
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
WRITE_FILE, REMOVE_DIR_TO_MAKE_SYM = 1 << 1, sum(1 << bit for bit in range(4, 13))  # of linux/landlock.h
REFER, TRUNCATE, TCP, SCOPES = 1 << 13, 1 << 14, 0b11, 0b11  # of linux/landlock.h
REMOVE_AND_MAKE = sum(1 << bit for bit in (4, 5, 7, 8, 10))  # directories, regular files and FIFOs
LARGEST_TEMPORARY_FILE = 2**28  # bytes of one file in the temporary directory of a run
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = (
    1,
    4,
    22,
    24,
    38,
)  # linux/prctl.h
SYSTEM_CALLS = {  # architecture number of seccomp; numbers of socket, ptrace, process_vm_readv and process_vm_writev
    "x86_64": (0xC000003E, (41, 101, 310, 311)),
    "aarch64": (0xC00000B7, (198, 117, 270, 271)),
}
IO_URING_SETUP, X32 = 425, 0x40000000  # a system call, and the flag of the x32 calls
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = (
    0x20,
    0x15,
    0x35,
    0x06,
)  # instructions of a seccomp filter (linux/bpf_common.h)
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES  # results of a seccomp filter (linux/seccomp.h)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 without Landlock."""
    try:
        return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, 1)))
    except (OSError, AttributeError):
        return 0


def restrict(writable: Path) -> bool:
    """Apply Landlock to the calling process and all processes that it starts; return False if that is not possible.

    Only the directory `writable` and the null device can be written.
    """
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
    on_files = WRITE_FILE | (files & TRUNCATE)
    in_directory = on_files | REMOVE_AND_MAKE | (files & REFER)
    succeeded = (
        _allow(libc, ruleset, Path(os.devnull), on_files)
        and _allow(libc, ruleset, writable, in_directory)
        and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        and libc.syscall(RESTRICT_SELF, ruleset, 0) == 0
    )
    os.close(ruleset)
    return bool(succeeded)


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> bool:
    """Add a rule to a Landlock ruleset: the rights hold for `path` and everything below it."""
    descriptor = os.open(path, os.O_RDONLY)
    added = libc.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, descriptor), 0) == 0
    os.close(descriptor)
    return bool(added)


def filter_system_calls() -> bool:
    """Forbid sockets and access to the memory of other processes, for this process and all that it starts.

    Return False if seccomp is not available. The filter is a BPF program: it refuses calls of another architecture, then compares
    the number of the system call with each forbidden number and jumps to the last instruction, REFUSE, if they are equal.
    """
    architecture, calls = SYSTEM_CALLS.get(platform.machine(), (0, ()))
    if not calls:
        return False
    forbidden = (*calls, IO_URING_SETUP)
    tests = [(JUMP_IF_AT_LEAST, X32), *((JUMP_IF_EQUAL, number) for number in forbidden)]
    program = [(LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, 0)]
    for index, (code, number) in enumerate(tests):
        program.append((code, len(tests) - index, 0, number))
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.prctl(PR_SET_SECCOMP, 2, filter_, 0, 0) == 0
    )


def drop_capabilities() -> None:
    """Drop all capabilities, so that root cannot inspect processes that have them, with every version of Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    with contextlib.suppress(AttributeError):
        libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))


def hide_environment(hidden: bool = True) -> None:
    """Prevent processes of the same user, such as a script in Macaulay2, from reading this process's environment (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(not hidden), 0, 0, 0)


def measured() -> dict[str, int]:
    """Test in a child process which restrictions the sandbox enforces here.

    Return 1 or 0 for each restriction, and the version of Landlock.
    """
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as directory:
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                os.write(writing, json.dumps(_test_restrictions(Path(directory))).encode())
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            output = pipe.read()
        os.waitpid(pid, 0)
    restrictions: dict[str, int] = json.loads(output or "{}")
    return restrictions


def _test_restrictions(writable: Path) -> dict[str, int]:
    results = {
        "landlock": landlock_version(),
        "landlock_on": restrict(writable),
        "seccomp_on": filter_system_calls(),
    }
    drop_capabilities()
    results["temporary_directory"] = results["landlock_on"] and not _refused((writable / "file").touch)
    results["files_cannot_be_written"] = _refused(lambda: tempfile.TemporaryFile().close())
    results["no_tcp_sockets"] = _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
    results["no_udp_sockets"] = _refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close())
    results["no_unix_sockets"] = _refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close())
    results["environment_hidden"] = _refused(Path(f"/proc/{os.getppid()}/environ").read_bytes)
    return results


def _refused(operation: Callable[[], object]) -> bool:
    try:
        operation()
    except OSError:
        return True
    return False


def soft_and_hard_limit(value: int, current: tuple[int, int]) -> tuple[int, int]:
    """Return the soft and the hard limit to set: `value`, or the current hard limit if that is lower (it cannot be raised).

    >>> soft_and_hard_limit(5, (7, 7)), soft_and_hard_limit(9, (3, 7)), soft_and_hard_limit(9, (-1, -1))
    ((5, 5), (7, 7), (9, 9))
    """
    hard = current[1]
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    return limit, limit


def exec_macaulay2(
    command: list[str], environment: dict[str, str], directory: Path, cpu_seconds: int | None, parent: int
) -> NoReturn:
    """Replace this forked process by Macaulay2 in a new session, in the sandbox, killed when its parent ends.

    Macaulay2 begins in `directory`; it can write only to the directory named by the variable TMPDIR of `environment`.
    """
    try:
        os.setsid()
        os.chdir(directory)
        for number in ("SIGCHLD", "SIGPIPE", "SIGXFSZ", "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
            signal.signal(signal.Signals[number], signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu_seconds is not None:
            current = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, soft_and_hard_limit(cpu_seconds, current))
        restricted = False
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # the parent ended before the signal was set
                os._exit(127)
            restricted = restrict(Path(environment["TMPDIR"]))
            filter_system_calls()
            drop_capabilities()
        largest_file = LARGEST_TEMPORARY_FILE if restricted else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        flags = [] if restricted else ["--read-only-files"]
        # With a directory that is not writable Macaulay2 reports an error; otherwise it would retry without end.
        if not restricted:
            os.chmod(environment["TMPDIR"], 0o500)
        os.execve(command[0], [command[0], *flags, *command[1:]], environment)
    except BaseException as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
    os._exit(127)
