# SPDX-License-Identifier: Apache-2.0
"""Times on a device's stream, between two of its events. Never waits for them; needs no privileges."""

from __future__ import annotations

from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Two events on a stream: at the start and at the end."""

    of: StreamTimes
    start: Any
    end: Any
    stream: Any

    @property
    def aside(self) -> bool:
        """Whether it is not the device's default stream."""
        return bool(self.stream != self.of.default)


class StreamTimes:
    """Timer of one device, in the thread of the loop. `module`: the device's module, such as torch.cuda, or None.

    Frequently used attributes of the module are cached, and events are reused after they were read.
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
        """Starts a timing; None if the device has no timed events, or captures a graph, which would include them."""
        if not self._usable or self._is_capturing():
            return None
        stream, spare = self._stream(self._device), self._spare
        start = spare.pop() if spare else self._event(enable_timing=True)
        end = spare.pop() if spare else self._event(enable_timing=True)
        start.record(stream)
        return Timing(self, start, end, stream)

    def end(self, timing: Timing) -> bool:
        """Ends a timing. False if a graph is now being captured, so that the timing is invalid."""
        if self._is_capturing():
            return False
        timing.end.record(timing.stream)
        return True

    def read(self, timing: Timing) -> int:
        """Returns the ns of a timing whose end the stream has reached."""
        took = int(timing.start.elapsed_time(timing.end) * 1e6)
        self._spare += timing.start, timing.end
        return took

    def _is_capturing(self) -> bool:
        return self._capturing is not None and bool(self._capturing())
