"""A directory that hangs, as on a share whose server is gone: system calls on it do not return.

The kernel asks this process about the calls of another (seccomp's user notification), and those below the directory
get no answer while it hangs. It needs no rights, no file system in user space and no server; like a wait for NFS, such
a call ends when its process is killed.
"""

from __future__ import annotations

import array
import ctypes
import os
import select
import socket
import struct
from pathlib import Path

_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
_CONTINUE = 1
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, 2**64 - 1
_PATH_BYTES = 4096
# By the argument that has a path; None for a descriptor, which is the first one. At calls begin with a directory's.
_CALLS = {
    **dict.fromkeys(("open", "stat", "lstat", "access", "mkdir", "rmdir", "unlink", "rename", "readlink"), 0),
    **dict.fromkeys(("openat", "newfstatat", "statx", "faccessat", "faccessat2", "mkdirat", "unlinkat", "renameat"), 1),
    **dict.fromkeys(("getdents64", "fsync", "pread64"), None),
}


def hang(directory: Path, flag: Path) -> None:
    """From now on, calls of this process and its children on what is in a directory hang, as long as a file is there.

    :param flag: the file
    """
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        # Forked before the rules hold: it answers, and its own calls need no answer.
        ours.close()
        _answer(library, _received(theirs), directory, flag)
    theirs.close()
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANYBODY), 0, 0, 0)
    rules = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    numbers = [library.seccomp_syscall_resolve_name(name.encode()) for name in _CALLS]
    for number in numbers:
        # Older architectures have calls that newer ones lack.
        if number >= 0:
            _checked(library.seccomp_rule_add(rules, _NOTIFY, number, 0))
    _checked(library.seccomp_load(rules))
    descriptor = _checked(library.seccomp_notify_fd(rules))
    ours.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
    os.close(descriptor)
    ours.close()


def _answer(library: ctypes.CDLL, listener: int, directory: Path, flag: Path) -> None:
    """Let calls go on; those on the directory only when it does not hang."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    by_number = {library.seccomp_syscall_resolve_name(name.encode()): at for name, at in _CALLS.items()}
    request, response = ctypes.c_void_p(), ctypes.c_void_p()
    library.seccomp_notify_alloc(ctypes.byref(request), ctypes.byref(response))
    waiting: list[int] = []
    while True:
        ready = select.select([listener], [], [], 0.05)[0]
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            os._exit(0)
        ctypes.memset(request, 0, 80)
        if ready and library.seccomp_notify_receive(listener, request) == 0:
            # struct seccomp_notif: id, pid, flags, then seccomp_data: number, architecture, pointer, six arguments.
            words = struct.unpack("=QIIiIQ6Q", ctypes.string_at(request, 80))
            waiting.append(words[0])
            if not (flag.exists() and _is_below(words[1], by_number.get(words[3]), words[6:], directory)):
                _go_on(library, listener, response, [waiting.pop()])
        if not flag.exists():
            _go_on(library, listener, response, waiting)
            waiting = []


def _go_on(library: ctypes.CDLL, listener: int, response: ctypes.c_void_p, ids: list[int]) -> None:
    for one in ids:
        ctypes.memmove(response, struct.pack("=QqiI", one, 0, 0, _CONTINUE), 24)
        library.seccomp_notify_respond(listener, response)


def _is_below(process: int, argument: int | None, arguments: tuple[int, ...], directory: Path) -> bool:
    try:
        start = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
        here = "cwd" if argument == 0 or start < 0 else f"fd/{start}"
        base = Path(f"/proc/{process}/{here}").readlink()
        if argument is not None:
            with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
                memory.seek(arguments[argument])
                base /= os.fsdecode(memory.read(_PATH_BYTES).partition(b"\0")[0])
    except (OSError, ValueError, OverflowError):
        return False
    return base.is_relative_to(directory)


def _received(connection: socket.socket) -> int:
    _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(4))
    return int(struct.unpack("i", ancillary[0][2])[0])


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
