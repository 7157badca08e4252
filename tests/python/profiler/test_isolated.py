# SPDX-License-Identifier: Apache-2.0
"""An experiment in a separate process: its result, and clean-up after failures."""

import os
import signal
import stat
import time

import pytest
from running_processes import HANG_S

from feedline.profiler import isolated, process_copies
from feedline.profiler.isolated import NotTried


def forked(child, *arguments):
    """Returns the exit status of `child`, run in a separate process, where experiments have no other child
    processes.
    """
    process = os.fork()
    if process == 0:
        status = 99
        try:
            status = child(*arguments) or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def why(attempt, folder, limit=HANG_S):
    """Returns the reason for a missing result, and whether processes are left."""
    try:
        isolated.make(attempt, limit, folder / "attempt")
    except NotTried as error:
        (folder / "why").write_text(f"{error}\n{isolated._children()}")


def sleeps():
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(600)
        time.sleep(600)
    time.sleep(600)


def aborts():
    if os.fork() == 0:
        time.sleep(600)  # a worker of its loader
    os.abort()


def raises():
    raise RuntimeError(
        "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (...):\n  x\nKeyError: 'no'"
    )


def touches():
    raise RuntimeError("Caught it.\nCannot re-initialize CUDA in forked subprocess. To use CUDA\nlater words")


def refuses():
    raise NotTried("a stream's samples cannot be read again")


GOES_WRONG = {
    sleeps: "the trial did not finish within 1 s and was killed",
    aborts: "the trial process was killed by SIGABRT",
    raises: "RuntimeError: KeyError: 'no'",
    touches: "reading samples uses the GPU, which a forked process cannot use: Cannot re-initialize CUDA in forked "
    "subprocess. To use CUDA",
    refuses: "a stream's samples cannot be read again",
    lambda: os._exit(3): "the trial process exited with status 3",
}


@pytest.mark.parametrize("attempt", GOES_WRONG, ids=lambda attempt: attempt.__name__)
def test_what_goes_wrong_is_named_and_leaves_no_process(attempt, tmp_path):
    assert forked(why, attempt, tmp_path, 1.0 if attempt is sleeps else HANG_S) == 0
    assert (tmp_path / "why").read_text() == f"{GOES_WRONG[attempt]}\n[]"


def test_what_it_finds_comes_through_whatever_the_script_does_with_signals(tmp_path):
    def child():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        found = [
            isolated.make(lambda n=n: {"n": n, "handler": request()}, HANG_S, tmp_path / "attempt") for n in (1, 2)
        ]
        return 0 if found == [{"n": n, "handler": int(signal.SIG_IGN)} for n in (1, 2)] else 1

    def request():
        return int(signal.getsignal(signal.SIGCHLD))

    assert forked(child) == 0


def test_a_copy_lets_go_of_devices_and_not_of_what_only_gives_bytes(tmp_path):
    """A terminal represents a GPU here: a device whose driver checks which processes have it open."""

    def child():
        device, _ = os.openpty()
        zero = os.open("/dev/zero", os.O_RDONLY)
        data = os.open(tmp_path, os.O_RDONLY)
        process_copies.let_go()
        null = os.stat("/dev/null").st_rdev
        gone = os.fstat(device).st_rdev == null
        is_intact = os.read(zero, 2) == b"\0\0" and stat.S_ISDIR(os.fstat(data).st_mode)
        return 0 if gone and is_intact else 1

    assert forked(child) == 0
