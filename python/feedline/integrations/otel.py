# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry: metrics of all loaders of the process, and spans of some batches (``feedline[otel]``)."""

from __future__ import annotations

import importlib
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import _engine
from ..errors import ConfigError
from ..serving import live_loaders
from ..serving.quantities import STAGES, TOTALS, Counted, Statistics, value
from ..version import installed_version

_SNAPSHOT_S = 0.05  # instruments that are read together share one snapshot
_POLL_S = 0.02
_WINDOW_S = 1.0
_WINDOW_BATCHES = 2
_PER_THREAD = 1024  # spans of a window in memory, 32 bytes each
_UNITS = {"seconds": "s", "bytes": "By", "": "1"}
_SPAN = struct.Struct("=QQQII")  # include/feedline/spans.h: begin_ns, end_ns, item, thread, stage
_WAIT = "feedline.wait"
_SPAN_NAMES = {
    "storage": "feedline.read",
    "decode": "feedline.decode",
    "transform": "feedline.transform",
    "batch": "feedline.batch",
    "consumer": _WAIT,
}


class Instrumentation:
    """Reports loaders to OpenTelemetry until :meth:`close` is called. Created by :func:`instrument`."""

    def __init__(self, meter: Any, tracer: Any, spans_every_s: float, most_spans: int) -> None:
        self._metrics = _Metrics(meter)
        self._sampler = _Sampler(tracer, spans_every_s, most_spans) if spans_every_s else None

    def close(self) -> None:
        """Stops reporting metrics, and ends the thread that records spans. Idempotent."""
        self._metrics.closed = True
        if self._sampler is not None:
            self._sampler.close()

    def __enter__(self) -> Instrumentation:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def instrument(
    *, meter_provider: Any = None, tracer_provider: Any = None, spans_every_s: float = 30.0, most_spans: int = 200
) -> Instrumentation:
    """Reports all loaders of this process to OpenTelemetry.

    ::

        from feedline.integrations import otel

        otel.instrument()          # after your SDK and exporters are set up

    The metrics are those of :func:`feedline.serve_metrics`, without the histogram. Exported to Prometheus, they have
    the same names: ``feedline.wait`` in seconds becomes ``feedline_wait_seconds_total``. They are read only when the
    SDK collects them.

    Spans: every ``spans_every_s`` seconds, a window of two batches (at most one second) is recorded as a trace with the
    root ``feedline.window`` and the children ``feedline.wait`` (the loop waits for a batch), ``feedline.read``,
    ``feedline.decode`` and ``feedline.transform`` (a sample), with their thread. Only the engine's loaders have spans:
    :class:`feedline.Loader`, and :class:`feedline.DataLoader` where it runs natively. A recording of
    :func:`feedline.profile` has precedence.

    Args:
        meter_provider, tracer_provider: by default, the global ones.
        spans_every_s: seconds between two windows; 0: no spans.
        most_spans: largest number of spans in a window. The root's attribute ``feedline.spans_left_out`` counts others.

    Raises:
        ConfigError: opentelemetry-api is not installed, or an argument is invalid.
    """
    if isinstance(spans_every_s, bool) or not isinstance(spans_every_s, (int, float)) or not 0 <= spans_every_s < 1e6:
        raise ConfigError(f"otel.instrument: spans_every_s must be a number of seconds, not {spans_every_s!r}")
    if isinstance(most_spans, bool) or not isinstance(most_spans, int) or most_spans < 1:
        raise ConfigError(f"otel.instrument: most_spans must be an integer of at least 1, not {most_spans!r}")
    metrics, trace = _api("metrics"), _api("trace")
    version = installed_version()
    meter = metrics.get_meter("feedline", version, meter_provider=meter_provider)
    tracer = trace.get_tracer("feedline", version, tracer_provider=tracer_provider)
    return Instrumentation(meter, tracer, float(spans_every_s), most_spans)


def metric_name(counted: Counted) -> str:
    """Returns OpenTelemetry's name, which has no unit."""
    return counted.name.removesuffix(f"_{counted.unit}" if counted.unit else "").replace("_", ".")


class _Metrics:
    def __init__(self, meter: Any) -> None:
        self.closed = False
        self._at_s = float("-inf")
        self._snapshot: Statistics = {}
        self._sums: dict[tuple[str, ...], tuple[float, float]] = {}  # of counters: total before and since a restart
        self._observation = _api("metrics").Observation
        for counted in TOTALS:
            self._create(meter, counted, self._of_totals(counted))
        for counted in STAGES:
            self._create(meter, counted, self._of_stages(counted))

    @staticmethod
    def _create(meter: Any, counted: Counted, callback: Callable[[Any], Iterator[Any]]) -> None:
        create = meter.create_observable_counter if counted.kind == "counter" else meter.create_observable_gauge
        create(metric_name(counted), callbacks=[callback], unit=_UNITS[counted.unit], description=counted.help)

    def _of_totals(self, counted: Counted) -> Callable[[Any], Iterator[Any]]:
        def observe(_options: Any) -> Iterator[Any]:
            for name, raw in self._statistics().items():
                number = value(raw, counted)
                if number is not None:
                    yield self._observed(counted, number, {"loader": name})

        return observe

    def _of_stages(self, counted: Counted) -> Callable[[Any], Iterator[Any]]:
        def observe(_options: Any) -> Iterator[Any]:
            for name, raw in self._statistics().items():
                for stage, values in raw.get("stages", {}).items():
                    yield self._observed(counted, values[counted.key], {"loader": name, "stage": stage})

        return observe

    def _observed(self, counted: Counted, number: float, labels: Mapping[str, str]) -> Any:
        """Counters of a DataLoader restart with each epoch, but OpenTelemetry's never decrease."""
        if counted.kind == "counter":
            key = (counted.name, *labels.values())
            before, latest = self._sums.get(key, (0.0, 0.0))
            if number < latest:
                before += latest
            self._sums[key] = before, number
            number += before
        return self._observation(number, labels)

    def _statistics(self) -> Statistics:
        if self.closed:
            return {}
        now_s = time.monotonic()
        if now_s - self._at_s > _SNAPSHOT_S:
            self._at_s, self._snapshot = now_s, live_loaders.statistics()
        return self._snapshot


class _Span(NamedTuple):
    begin_ns: int
    end_ns: int
    item: int
    thread: int
    stage: int


class _Sampler:
    """A thread that records a window of the engine's spans from time to time."""

    def __init__(self, tracer: Any, every_s: float, most: int) -> None:
        self._tracer, self._every_s, self._most = tracer, every_s, most
        self._names = [_SPAN_NAMES.get(stage, f"feedline.{stage}") for stage in _engine.span_stages()]
        self._ended = threading.Event()
        self._process = os.getpid()
        self._set_span = _api("trace").set_span_in_context
        self._thread = threading.Thread(target=self._run, name="feedline-otel", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._process == os.getpid():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            if live_loaders.statistics() and not _is_profiling():
                self._record()

    def _record(self) -> None:
        first = _delivered()
        _engine.start_spans(_PER_THREAD)
        began_s = time.monotonic()
        while not self._ended.wait(_POLL_S):
            if _delivered() - first >= _WINDOW_BATCHES or time.monotonic() - began_s > _WINDOW_S:
                break
        if _is_profiling():
            return  # feedline.profile has replaced this recording
        _engine.stop_spans()
        packed, dropped = _engine.take_spans()
        spans = [_Span(*fields) for fields in _SPAN.iter_unpack(packed)]
        if spans:
            self._export(spans, dropped)

    def _export(self, spans: list[_Span], dropped: int) -> None:
        """Exports all waits, and the earliest other spans."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        spans.sort(key=lambda span: (self._names[span.stage] != _WAIT, span.begin_ns))
        exported = spans[: self._most]
        root = self._tracer.start_span(
            "feedline.window",
            start_time=min(span.begin_ns for span in exported) + offset_ns,
            attributes={"feedline.spans_left_out": len(spans) - len(exported) + dropped},
        )
        context = self._set_span(root)
        for span in exported:
            name = self._names[span.stage]
            item = "feedline.batch" if name == _WAIT else "feedline.sample"
            self._tracer.start_span(
                name,
                context=context,
                start_time=span.begin_ns + offset_ns,
                attributes={item: span.item, "thread.id": span.thread},
            ).end(span.end_ns + offset_ns)
        root.end(max(span.end_ns for span in exported) + offset_ns)


def _delivered() -> int:
    return sum(int(raw.get("batches") or 0) for raw in live_loaders.statistics().values())


def _is_profiling() -> bool:
    """Returns whether :mod:`feedline.trace.spans` records; a process has only one recording."""
    spans = sys.modules.get("feedline.trace.spans")
    return spans is not None and spans.Recording.running > 0


def _api(name: str) -> Any:
    try:
        return importlib.import_module(f"opentelemetry.{name}")
    except ImportError:
        raise ConfigError(
            'otel.instrument: opentelemetry-api is not installed; run: pip install "feedline[otel]"'
        ) from None
