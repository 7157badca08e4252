# SPDX-License-Identifier: Apache-2.0
"""Files whose open() takes so many ms, as on storage that answers late: another process holds a lease on each.

The kernel has whoever opens a leased file wait until the holder lets go (fcntl(2), F_SETLEASE); a file is let go of so
many ms after somebody came for it, and leased again once it is closed. It is a wait in a file's call, and no sleep.
"""

import ctypes
import fcntl
import os
import signal
import tempfile
import time
from pathlib import Path

import torch

_LOOK_S = 0.0005
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


class LateFiles:
    """`count` small files; reading `index` opens one of them.

    The holder ends with the process that started it. A process that reads after that, such as a copy of the loader in
    an experiment, starts another holder: the files are late for all processes.
    """

    def __init__(self, ms, count=64):
        folder = tempfile.mkdtemp()  # left there: whoever started this script removes it
        self._seconds = ms / 1000
        self.paths = [Path(folder, f"{number:05}.bin") for number in range(count)]
        for path in self.paths:
            path.write_bytes(os.urandom(512))
        self._lock_path = Path(folder, "holder")  # locked by it as long as it lives
        self._asks = self._reader = -1
        self._see_to_a_holder()

    def __call__(self, index):
        self._see_to_a_holder()
        with open(self.paths[index % len(self.paths)], "rb", buffering=0) as file:
            return torch.tensor(file.read(1)[0])

    def _see_to_a_holder(self):
        if self._reader != os.getpid():  # a lock of its own, which no other process shares
            self._reader, self._asks = os.getpid(), os.open(self._lock_path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._asks, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        self._hold_again()  # it has the lock from here on
        os.close(self._asks)
        self._reader = -1

    def _hold_again(self):
        reading, ready = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            _hold(self.paths, self._seconds, ready)
        os.close(ready)
        os.read(reading, 1)  # all are leased
        os.close(reading)


def _hold(paths, seconds, ready):
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    files = [os.open(path, os.O_RDWR) for path in paths]
    asked = [0.0] * len(files)  # since when somebody waits; below zero: it was let go of
    for file in files:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.write(ready, b".")
    os.close(ready)
    while True:
        time.sleep(_LOOK_S)
        now = time.monotonic()
        for number, file in enumerate(files):
            if asked[number] < 0:
                _lease_again(asked, number, file)
            elif asked[number] and now - asked[number] >= seconds:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                asked[number] = -1.0
            elif not asked[number] and fcntl.fcntl(file, fcntl.F_GETLEASE) != fcntl.F_WRLCK:
                asked[number] = now


def _lease_again(asked, number, file):
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        asked[number] = 0.0
    except OSError:  # it is still open
        pass
