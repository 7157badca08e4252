# SPDX-License-Identifier: Apache-2.0
"""Measures times on a device's stream, between two events. Reading the times never waits for events and needs no
privileges.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Two events on a stream, at the start and at the end of the timed work."""

    of: StreamTimes
    start: Any
    end: Any
    stream: Any

    @property
    def aside(self) -> bool:
        """Whether the stream is not the device's default stream."""
        return bool(self.stream != self.of.default)


class StreamTimes:
    """Times work on one device, in the thread of the loop. `module`: the device's module, such as torch.cuda, or
    None.

    Frequently used attributes of the module are cached, and events are reused after they have been read.
    """

    def __init__(self, module: Any, device: Any) -> None:
        self._device = device
        self._usable = all(hasattr(module, name) for name in ("Event", "current_stream", "default_stream"))
        self._capturing = getattr(module, "is_current_stream_capturing", None)
        self._spare: list[Any] = []
        if self._usable:
            self._event, self._stream = module.Event, module.current_stream
            self.default = module.default_stream(device)

    def begin(self) -> Timing | None:
        """Starts a timing; returns None if the device has no timed events, or is capturing a graph, which would include
        the events.
        """
        if not self._usable or self._is_capturing():
            return None
        stream, spare = self._stream(self._device), self._spare
        start = spare.pop() if spare else self._event(enable_timing=True)
        end = spare.pop() if spare else self._event(enable_timing=True)
        start.record(stream)
        return Timing(self, start, end, stream)

    def end(self, timing: Timing) -> bool:
        """Ends a timing. Returns False if a graph is being captured, which makes the timing invalid."""
        if self._is_capturing():
            return False
        timing.end.record(timing.stream)
        return True

    def read(self, timing: Timing) -> int:
        """Returns the duration, in ns, of a timing; its end event must have completed."""
        took = int(timing.start.elapsed_time(timing.end) * 1e6)
        self._spare += timing.start, timing.end
        return took

    def _is_capturing(self) -> bool:
        return self._capturing is not None and bool(self._capturing())
