# SPDX-License-Identifier: Apache-2.0
"""Determines what a blocked thread is waiting for, from its current system call (/proc/self/task/*/syscall).

CPU time does not show why a thread waits. Only time in file system calls, or in page faults on a mapped file, counts as
file time. Sleeps, locks and sockets do not count, even if the sample then reads a file.
"""

from __future__ import annotations

import os
import platform
import stat

FILE, SLEEP, LOCK, NETWORK, EVENTS, PROCESS, OTHER = (
    "file",
    "sleep",
    "lock",
    "network",
    "events",
    "process",
    "other",
)
STORE = "store"  # a response from a remote store: the caller shows that, not the call (seen_waits.py)
KINDS = (FILE, SLEEP, LOCK, NETWORK, EVENTS, PROCESS, OTHER, STORE)

_PAGE_FAULT = -1  # blocked outside of system calls: a page of a mapped file is being read
_BY_DESCRIPTOR = "by its descriptor"  # depends on the descriptor: a file, a socket or a pipe
_SELECT = "select"  # a call without descriptors is a sleep

# (x86_64, aarch64), from the kernel's tables; -1 if that machine has none
_CALLS: dict[str, tuple[tuple[int, int], ...]] = {
    # open, openat, openat2, stat, lstat, newfstatat, statx, access, faccessat, faccessat2, readlink, readlinkat,
    # statfs, getdents, getdents64, mmap, madvise, fadvise64, readahead, io_getevents, io_uring_enter
    FILE: (
        (2, -1), (257, 56), (437, 437), (4, -1), (6, -1), (262, 79), (332, 291), (21, -1), (269, 48), (439, 439),
        (89, -1), (267, 78), (137, 43), (78, -1), (217, 61), (9, 222), (28, 233), (221, 223), (187, 213), (208, 4),
        (426, 426),
    ),
    # nanosleep, clock_nanosleep
    SLEEP: ((35, 101), (230, 115)),
    # futex, futex_waitv, flock, fcntl, semop, semtimedop
    LOCK: ((202, 98), (449, 449), (73, 32), (72, 25), (65, 193), (220, 192)),
    # connect, accept, accept4, sendto, recvfrom, sendmsg, recvmsg, recvmmsg
    NETWORK: ((42, 203), (43, 202), (288, 242), (44, 206), (45, 207), (46, 211), (47, 212), (299, 243)),
    # poll, ppoll, epoll_wait, epoll_pwait, epoll_pwait2
    EVENTS: ((7, -1), (271, 73), (232, -1), (281, 22), (441, 441)),
    # wait4, waitid
    PROCESS: ((61, 260), (247, 95)),
    # read, write, close, fstat, lseek, pread64, pwrite64, readv, writev, preadv, pwritev, preadv2, fsync, fdatasync;
    # sendfile and copy_file_range, whose first descriptor counts
    _BY_DESCRIPTOR: (
        (0, 63), (1, 64), (3, 57), (5, 80), (8, 62), (17, 67), (18, 68), (19, 65), (20, 66), (295, 69), (296, 70),
        (327, 286), (74, 82), (75, 83), (40, 71), (326, 285),
    ),
    # select, pselect6
    _SELECT: ((23, -1), (270, 72)),
}  # fmt: skip
_MACHINES = {"x86_64": 0, "aarch64": 1}
_ACCEPT = ((43, 202), (288, 242))  # accept, accept4


def table(machine: str = platform.machine()) -> dict[int, str]:
    """Returns the kind of each system call by its number. Returns an empty dict for machines whose system call numbers
    are unknown.
    """
    column = _MACHINES.get(machine)
    if column is None:
        return {}
    return {pair[column]: kind for kind, pairs in _CALLS.items() for pair in pairs if pair[column] >= 0}


_TABLE = table()


def are_known() -> bool:
    """Whether this machine's kernel reports system calls, and their numbers are known."""
    return bool(_TABLE) and os.access("/proc/self/syscall", os.R_OK)


_LISTENING = {str(pair[_MACHINES.get(platform.machine(), 0)]).encode() for pair in _ACCEPT}


def listens(text: bytes) -> bool:
    """Whether the thread whose /proc file contains `text` waits for clients, such as the thread of multiprocessing that
    passes file descriptors. Such a call does not receive data.
    """
    return text.partition(b" ")[0] in _LISTENING


def kind_of(text: bytes, numbers: dict[int, str] = _TABLE) -> str | None:
    """Returns the KIND of wait of a thread whose /proc file contains `text`; None if it is running or runnable."""
    words = text.split()
    if not words or words[0] == b"running":
        return None
    number = int(words[0])
    if number == _PAGE_FAULT:
        return FILE
    kind = numbers.get(number, OTHER)
    if kind == _SELECT:
        return SLEEP if int(words[1], 16) == 0 else EVENTS
    return _kind_of_descriptor(int(words[1], 16)) if kind == _BY_DESCRIPTOR else kind


def _kind_of_descriptor(number: int) -> str | None:
    try:
        mode = os.fstat(number).st_mode
    except (OSError, OverflowError):
        return None  # closed since: the call has ended
    if stat.S_ISSOCK(mode):
        return NETWORK
    if stat.S_ISFIFO(mode):
        return PROCESS
    return FILE if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode) else OTHER
