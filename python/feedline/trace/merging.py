# SPDX-License-Identifier: Apache-2.0
"""Merges Feedline's stages into a torch trace, as one file for Perfetto."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .reader import Reader
from .spans import open_text


@dataclass
class Merged:
    """Statistics of a merged file.

    Attributes:
        events: number of events from the trace.
        spans: number of Feedline's spans.
        in_range: number of spans within the time range of the trace.
        damage: errors in the trace; the merged file is complete nevertheless.
    """

    events: int
    spans: int
    in_range: int
    damage: list[str]

    @property
    def is_of_another_run(self) -> bool:
        """Whether there are spans, but none within the time range of the trace."""
        return self.spans > 0 and self.in_range == 0


def merge(
    trace: str | os.PathLike[str],
    spans: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    advance: Callable[[int], None] | None = None,
) -> Merged:
    """Writes the events of `trace` and of the files `spans` to `output`, using the time base of the trace.

    `output` is created only once it is complete. Only one event is in memory at a time.

    Raises:
        ConfigError: `output` is one of the inputs.
        DataError, StorageError: see :class:`feedline.trace.reader.Reader`.
    """
    target = Path(output)
    for source in (trace, *spans):
        if target.exists() and target.samefile(source):
            raise ConfigError(f"merge: {target} is one of the inputs: choose another output file")
    partial = target.with_name(f".partial-{os.getpid()}-{target.name}")
    try:
        with open_text(partial) as file:
            merged = _write(file.write, Reader(trace, advance), spans)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return merged


def _write(write: Callable[[str], Any], reader: Reader, spans: Sequence[str | os.PathLike[str]]) -> Merged:
    write('{"traceEvents": [')
    separator, events = "\n", 0
    first, last = float("inf"), float("-inf")
    for event in reader.events():
        write(separator + json.dumps(event))
        separator, events = ",\n", events + 1
        start = event.get("ts")
        if event.get("ph") == "X" and isinstance(start, (int, float)):
            duration = event.get("dur")
            first = min(first, start)
            last = max(last, start + (duration if isinstance(duration, (int, float)) else 0))
    base = _base_ns(reader.header)
    count = in_range = 0
    for path in spans:
        # The base must be known before the first event is shifted; Recording.write puts it before the events.
        source = Reader(path)
        for event in source.events():
            start = event.get("ts")
            if event.get("ph") == "X" and isinstance(start, (int, float)):
                start += (_base_ns(source.header) - base) / 1000
                event["ts"] = round(start, 3)
                count += 1
                in_range += first <= start <= last
            write(separator + json.dumps(event))
            separator = ",\n"
    write("\n]")
    for key, value in reader.header.items():
        write(f",\n{json.dumps(key)}: {json.dumps(value)}")
    write("}\n")
    return Merged(events, count, in_range, reader.damage)


def _base_ns(header: dict[str, Any]) -> int:
    """Returns the wall-clock time that corresponds to ``ts`` 0; this is 0 for older torch, whose ``ts`` is the time
    since 1970.
    """
    base = header.get("baseTimeNanoseconds", 0)
    return base if isinstance(base, int) else 0
