# SPDX-License-Identifier: Apache-2.0
"""While next() waits for the engine, and while the engine works, other Python threads run."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

import feedline


class Ticker:
    """Counts in a Python thread, and notes the longest time that it was kept from counting."""

    def __enter__(self) -> Ticker:
        self.ticks, self.longest_s, self._stop = 0, 0.0, False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._stop:
            time.sleep(0.001)
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - last)
            last = now
            self.ticks += 1


@pytest.fixture
def slow(tmp_path: object, folder: str) -> feedline.Dataset:
    """Samples that take the engine a long time: enlarged to 2000 x 2000 by bicubic interpolation."""
    return feedline.open(folder).resize((2000, 2000), interpolation="bicubic").normalize((0.5,) * 3, (0.5,) * 3)


def test_other_threads_run_while_next_waits(slow: feedline.Dataset) -> None:
    with slow.loader(7, output="numpy", num_workers=1) as loader:
        iterator = iter(loader)
        with Ticker() as ticker:
            started = time.perf_counter()
            next(iterator)
            waited_s = time.perf_counter() - started
    assert waited_s > 0.05, "the batch came too fast for this test to mean anything"
    # held for the wait, the GIL would leave at most a tick or two; a busy machine still leaves many
    assert ticker.ticks > waited_s / 0.001 / 20
    assert ticker.longest_s < 0.9 * waited_s


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
    previous = sys.getswitchinterval()
    with Ticker() as ticker:
        started = time.perf_counter()
        while time.perf_counter() - started < 0.5:
            calls[work]()
    assert sys.getswitchinterval() == previous
    assert ticker.ticks > 20
    assert np.isfinite(ticker.longest_s)
