# SPDX-License-Identifier: Apache-2.0
"""Records Feedline's stages in the engine and writes them as a Chrome trace for Perfetto.

The engine's clock is CLOCK_MONOTONIC, but torch's traces use wall-clock time. The offset is measured at the start and
at the end of a recording, so a clock adjustment in between causes an error no larger than the adjustment.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
from numpy.typing import NDArray

from .. import _engine

LAYOUT = np.dtype(
    [("begin_ns", "u8"), ("end_ns", "u8"), ("item", "u8"), ("thread", "u4"), ("stage", "u4")]
)  # include/feedline/spans.h
_PER_THREAD = 1 << 18  # 8 MiB per thread: over a minute at 1,000 images/s per thread
_WAIT = "wait for a batch"


def clock_offset_ns() -> int:
    """Returns wall-clock time minus CLOCK_MONOTONIC in nanoseconds, accurate to microseconds."""
    best: tuple[int, int] | None = None
    for _ in range(16):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, wall - (before + after) // 2
    assert best is not None
    return best[1]


@dataclass
class Recording:
    """Records the engine's spans from its creation to :meth:`stop`. A process has at most one recording; a second one
    replaces the first.

    Attributes:
        spans: array of :data:`LAYOUT` records; available after :meth:`stop`.
        dropped: number of spans overwritten by later spans.
    """

    per_thread: int = _PER_THREAD
    spans: NDArray[Any] = field(default_factory=lambda: np.empty(0, LAYOUT))
    dropped: int = 0
    running: ClassVar[int] = 0  # recordings that have not been stopped

    def __post_init__(self) -> None:
        self._began_ns, self._offset_ns = time.monotonic_ns(), clock_offset_ns()
        self._ended_ns, self._last_offset_ns = self._began_ns, self._offset_ns
        _engine.start_spans(self.per_thread)
        Recording.running += 1
        self._is_running = True

    def stop(self) -> None:
        """Stops the recording and collects its spans."""
        if self._is_running:
            Recording.running -= 1
            self._is_running = False
        _engine.stop_spans()
        packed, self.dropped = _engine.take_spans()
        self._ended_ns, self._last_offset_ns = time.monotonic_ns(), clock_offset_ns()
        self.spans = np.frombuffer(packed, LAYOUT)

    def wall_ns(self, monotonic_ns: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Converts times of the engine's clock to wall-clock nanoseconds since 1970."""
        times = monotonic_ns.astype(np.int64)
        drift = self._last_offset_ns - self._offset_ns
        share = (times - self._began_ns) / max(1, self._ended_ns - self._began_ns)
        return np.asarray(times + self._offset_ns + np.rint(drift * np.clip(share, 0, 1)).astype(np.int64))

    def write(self, path: str | os.PathLike[str]) -> int:
        """Writes a Chrome trace, gzipped if `path` ends in ``.gz``; returns the number of spans."""
        begin, end = self.wall_ns(self.spans["begin_ns"]), self.wall_ns(self.spans["end_ns"])
        base = int(begin.min()) // 1_000_000_000 * 1_000_000_000 if len(begin) else 0
        names = [_WAIT if name == "consumer" else name for name in _engine.span_stages()]
        process = os.getpid()
        with open_text(path) as file:
            file.write(f'{{"displayTimeUnit": "ms", "baseTimeNanoseconds": {base}, "dropped_spans": {self.dropped},\n')
            file.write('"traceEvents": [')
            separator = "\n"
            for thread in np.unique(self.spans["thread"][self.spans["stage"] != names.index(_WAIT)]).tolist():
                name = {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "ts": 0}
                file.write(separator + json.dumps({**name, "args": {"name": f"feedline {thread}"}}))
                separator = ",\n"
            for span, starts, ends in zip(self.spans.tolist(), begin.tolist(), end.tolist(), strict=True):
                _, _, item, thread, stage = span
                event = {
                    "ph": "X",
                    "cat": "feedline",
                    "name": names[stage],
                    "pid": process,
                    "tid": thread,
                    "ts": (starts - base) / 1000,
                    "dur": (ends - starts) / 1000,
                    "args": {"batch" if names[stage] == _WAIT else "sample": item},
                }
                file.write(separator + json.dumps(event))
                separator = ",\n"
            file.write("\n]}\n")
        return len(self.spans)


@contextlib.contextmanager
def record(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """Records the stages of Feedline's loaders in this process, and writes them to `path` when the recording ends.

    Merge the file into traces that you record with torch's profiler: ``feedline trace FILE --merge PATH MERGED``.
    ui.perfetto.dev can also open the file by itself. Each thread stores its latest 262,144 spans, which take 8 MiB.
    """
    recording = Recording()
    try:
        yield recording
    finally:
        recording.stop()
        recording.write(path)


def open_text(path: str | os.PathLike[str]) -> TextIO:
    """Opens `path` for writing text; the text is gzipped if `path` ends in ``.gz``."""
    if Path(path).suffix == ".gz":
        return gzip.open(path, "wt", compresslevel=1, encoding="utf-8")  # type: ignore[return-value]
    return open(path, "w", encoding="utf-8")
