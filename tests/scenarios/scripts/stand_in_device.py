# SPDX-License-Identifier: Apache-2.0
"""A device for machines without one: torch tensors on it, and a stream of its own that does what it is given in order.

Importing it makes the device "standin" known to torch. Copies to it are torch's own calls; they take the time that its
bandwidth says, on its stream. The host waits for one as with a GPU: always from pageable memory, and from page-locked
memory unless non_blocking=True. It computes nothing: `launch` gives it work of so many ms.

What it stands for is the order of things. How fast a real driver copies, and what else it waits for, it cannot say.
"""

import queue
import threading
import time

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

BYTES_PER_MS = 2_000_000  # 2 GB/s


class Event:
    def __init__(self, enable_timing=False):
        self.at = None

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
        self.work.put((ms, event))

    def synchronize(self):
        self.work.join()


class Module:
    """What torch.cuda is to "cuda"."""

    Event = Event

    def is_initialized(self):
        return True

    def is_available(self):
        return True

    def current_stream(self, device=None):
        return STREAM

    default_stream = current_stream

    def synchronize(self, device=None):
        STREAM.synchronize()


def _like(size, dtype):
    return torch._C._acc.create_empty_tensor(size, dtype or torch.float32)


def _copy(source, target, non_blocking=False):
    if source.device.type == "cpu":
        STREAM.give(source.nbytes / BYTES_PER_MS)
        if not non_blocking or not source.is_pinned():
            STREAM.synchronize()
    else:
        STREAM.synchronize()
        target.zero_()
    return target


def _pinned(tensor):
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
