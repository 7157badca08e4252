# SPDX-License-Identifier: Apache-2.0
"""Times on a device's stream: what lies between two of its events. Nobody waits for them; no privileges are needed."""

from __future__ import annotations

from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Two events on a stream: where what is timed begins, and where it ends."""

    of: StreamTimes
    start: Any
    end: Any
    stream: Any

    @property
    def aside(self) -> bool:
        """It is not the device's default stream."""
        return bool(self.stream != self.of.default)


class StreamTimes:
    """Of one device, in the thread of the loop. `module`: what torch.cuda is to "cuda"; None: there is none.

    What is asked of the module again and again is looked up once; events whose times were read are used again.
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
        """From here on; None: such a device has no timed events, or records a graph, which they would be a part of."""
        if not self._usable or self._is_capturing():
            return None
        stream, spare = self._stream(self._device), self._spare
        start = spare.pop() if spare else self._event(enable_timing=True)
        end = spare.pop() if spare else self._event(enable_timing=True)
        start.record(stream)
        return Timing(self, start, end, stream)

    def end(self, timing: Timing) -> bool:
        """To here. False: a graph is being recorded by now, and it is no time."""
        if self._is_capturing():
            return False
        timing.end.record(timing.stream)
        return True

    def read(self, timing: Timing) -> int:
        """The ns of a timing whose end the stream has passed."""
        took = int(timing.start.elapsed_time(timing.end) * 1e6)
        self._spare += timing.start, timing.end
        return took

    def _is_capturing(self) -> bool:
        return self._capturing is not None and bool(self._capturing())
