# SPDX-License-Identifier: Apache-2.0
"""Other Python threads run while next() waits for the engine, and while the engine works."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

import feedline


class Ticker:
    """Counts in a Python thread."""

    def __enter__(self) -> Ticker:
        self.ticks, self._stop = 0, False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        while not self._stop:
            time.sleep(0.001)
            self.ticks += 1


@pytest.fixture
def slow(tmp_path: object, folder: str) -> feedline.Dataset:
    """Samples that take the engine a long time: enlarged to 2000 x 2000 with bicubic interpolation."""
    return feedline.open(folder).resize((2000, 2000), interpolation="bicubic").normalize((0.5,) * 3, (0.5,) * 3)


def test_other_threads_run_while_next_waits(folder: str, force: Callable[..., None]) -> None:
    """It waits for slow storage, so the CPU is idle."""
    force(read_latency=0.5)
    with feedline.open(folder).resize((8, 8)).loader(2, output="numpy", num_workers=1) as loader:
        iterator = iter(loader)
        with Ticker() as ticker:
            next(iterator)
    # of five hundred or more; if the GIL were held during the wait, at most one or two would remain
    assert ticker.ticks >= 10


@pytest.mark.parametrize("work", ["sample", "decode_image", "resize_image"])
def test_other_threads_run_during_single_samples(slow: feedline.Dataset, work: str) -> None:
    import made_data

    big = made_data.photo(1, 3000, 2500)
    data = made_data.encoded(big, quality=95)
    calls = {
        "sample": lambda: slow[0],
        "decode_image": lambda: feedline.decode_image(data),
        "resize_image": lambda: feedline.resize_image(big, (5000, 5000), "bicubic"),
    }
    previous, during = sys.getswitchinterval(), []
    with Ticker() as ticker:
        for _ in range(6):
            before = ticker.ticks
            calls[work]()
            during.append(ticker.ticks - before)
    assert sys.getswitchinterval() == previous
    # each takes tens of milliseconds of CPU; if the GIL were held during a call, at most one or two would remain
    assert sum(during) > 3 * len(during), during
