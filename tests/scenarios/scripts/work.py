# SPDX-License-Identifier: Apache-2.0
"""What the scripts plant: CPU time, waiting, images. Amounts of CPU are counted by the CPU clock, not by the wall's."""

import io
import os
import time

import numpy as np
import torch
from PIL import Image

_LONGER = 6


def mended(cause):
    """Whether this script is to leave out what it plants of `cause`: how its runner measures what that gains."""
    return os.environ.get("FEEDLINE_SCENARIO_MENDED") == cause


def workers(planted):
    """Of a loader whose arguments nobody can change from outside: as planted, or as the diagnosis said."""
    return int(os.environ.get("FEEDLINE_SCENARIO_WORKERS", planted))


def enough(count):
    """So many samples; where a cause is left out more, as the start of its workers would be most of a fast loop."""
    return _LONGER * count if os.environ.get("FEEDLINE_SCENARIO_MENDED") else count


def burn(ms):
    """Uses so many ms of CPU, however busy the machine is."""
    until = time.thread_time() + ms / 1000
    while time.thread_time() < until:
        sum(range(200))


def gpu_step(ms):
    """A step on a device: this process waits for it without CPU."""
    time.sleep(ms / 1000)


def jpeg(side=384):
    pixels = np.random.default_rng(0).integers(0, 255, (side // 8, side // 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((side, side)).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def opener(encoded):
    """What opens this image anew each time; or, where decoding is left out, gives one that is decoded already.

    Pillow keeps the memory of images, so the kernel's time for new pages is not decoding.
    """
    Image.core.set_blocks_max(16)
    if not mended("cpu_decode"):
        return lambda: Image.open(io.BytesIO(encoded))
    decoded = Image.open(io.BytesIO(encoded))
    decoded.load()
    return lambda: decoded


class Samples(torch.utils.data.Dataset):
    """`count` samples, each made by `make(index)`."""

    def __init__(self, count, make):
        self.count, self.make = count, make

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.make(index)
