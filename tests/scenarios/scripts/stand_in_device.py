# SPDX-License-Identifier: Apache-2.0
"""A device for machines without one: torch tensors on it, and a stream of its own that does what it is given in order.

Importing it makes the device "standin" known to torch. Copies to it are torch's own calls; they take the time that its
bandwidth says, on its stream; from page-locked memory they are faster. The host waits for one as with a GPU: always
from pageable memory, and from page-locked memory unless non_blocking=True. It computes nothing: `launch` gives it work
of so many ms.

As with CUDA, a process that was forked cannot use what its parent has begun to use: `IN_A_COPY` says what happens then.
That an event's end is the end of such a process is torch's way, whatever `IN_A_COPY` says.

What it stands for is the order of things. How fast a real driver copies, and what else it waits for, it cannot say.
"""

import os
import queue
import threading
import time

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

BYTES_PER_MS, LOCKED_BYTES_PER_MS = 2_000_000, 4_000_000  # 2 GB/s from pageable memory, 4 GB/s from page-locked
IN_A_COPY = "raise"  # or "abort", or "hang"
_OWNER = os.getpid()


def _refuse_in_a_copy():
    if os.getpid() == _OWNER:
        return
    if IN_A_COPY == "abort":
        os.abort()
    while IN_A_COPY == "hang":
        time.sleep(1)
    raise RuntimeError("Cannot re-initialize the stand-in in forked subprocess. You must use the 'spawn' start method")


class Event:
    def __init__(self, enable_timing=False):
        _refuse_in_a_copy()
        self.at = None

    def __del__(self):
        if os.getpid() != _OWNER:
            os.abort()

    def record(self, stream=None):
        self.at = None
        (stream or STREAM).give(0, self)

    def query(self):
        return self.at is not None

    def elapsed_time(self, end):
        return (end.at - self.at) * 1000


class Stream:
    """One thread, which does the work in the order that it is given."""

    def __init__(self):
        self.work = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            ms, event = self.work.get()
            if ms:
                time.sleep(ms / 1000)
            if event is not None:
                event.at = time.perf_counter()
            self.work.task_done()

    def give(self, ms, event=None):
        _refuse_in_a_copy()
        self.work.put((ms, event))

    def synchronize(self):
        _refuse_in_a_copy()
        self.work.join()


class Module:
    """What torch.cuda is to "cuda"."""

    Event = Event

    def is_initialized(self):
        return True

    def is_available(self):
        return True

    def _is_in_bad_fork(self):
        return os.getpid() != _OWNER

    def manual_seed_all(self, seed):
        pass

    def current_stream(self, device=None):
        return STREAM

    default_stream = current_stream

    def synchronize(self, device=None):
        STREAM.synchronize()


def _like(size, dtype):
    _refuse_in_a_copy()
    return torch._C._acc.create_empty_tensor(size, dtype or torch.float32)


def _copy(source, target, non_blocking=False):
    if source.device.type == "cpu":
        STREAM.give(source.nbytes / (LOCKED_BYTES_PER_MS if source.is_pinned() else BYTES_PER_MS))
        if not non_blocking or not source.is_pinned():
            STREAM.synchronize()
    else:
        STREAM.synchronize()
        target.zero_()
    return target


def _pinned(tensor):
    _refuse_in_a_copy()
    copy = tensor.clone()
    copy._is_page_locked = True
    return copy


def launch(ms):
    """Work for the device; this returns at once."""
    STREAM.give(ms)


def synchronize():
    STREAM.synchronize()


STREAM = Stream()
_setup_privateuseone_for_python_backend("standin", Module())
OPERATORS = torch.library.Library("aten", "IMPL")
OPERATORS.impl("empty.memory_format", lambda size, *, dtype=None, **_: _like(size, dtype), "PrivateUse1")
OPERATORS.impl("empty_strided", lambda size, stride, *, dtype=None, **_: _like(size, dtype), "PrivateUse1")
OPERATORS.impl("_copy_from", _copy, "PrivateUse1")
torch.Tensor.is_pinned = lambda tensor, device=None: getattr(tensor, "_is_page_locked", False)
torch.Tensor.pin_memory = lambda tensor, device=None: _pinned(tensor)
torch.accelerator.set_device_index = lambda index: None  # there is one
