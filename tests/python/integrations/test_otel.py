# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's SDK receives the numbers of stats() and the engine's spans."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_processes import until

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed (tools/test --integrations)")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from PIL import Image

import feedline
from feedline.integrations import otel
from feedline.serving import live_loaders
from feedline.serving.quantities import STAGES, TOTALS
from feedline.trace.spans import Recording

STAGE_SPANS = {"feedline.wait", "feedline.read", "feedline.decode", "feedline.transform"}


@pytest.fixture(autouse=True)
def no_other_loaders() -> None:
    gc.collect()
    live_loaders._loaders.clear()


@pytest.fixture
def images(tmp_path: Path) -> feedline.Dataset:
    for number in range(24):
        path = tmp_path / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((16, 16, 3), 10 * number, np.uint8)).save(path)
    return feedline.open(tmp_path).resize((8, 8))


class Collected:
    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.metrics = MeterProvider(metric_readers=[self.reader])
        self.exporter = InMemorySpanExporter()
        self.spans = TracerProvider()
        self.spans.add_span_processor(SimpleSpanProcessor(self.exporter))

    def values(self) -> dict[str, dict[tuple[str, ...], Any]]:
        """Returns points by name and labels."""
        data = self.reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return {
            metric.name: {tuple(map(str, point.attributes.values())): point.value for point in metric.data.data_points}
            for scope in scopes
            for metric in scope.metrics
        }


@pytest.fixture
def collected() -> Iterator[Collected]:
    found = Collected()
    yield found
    found.metrics.shutdown()
    found.spans.shutdown()


def instrument(collected: Collected, **options: Any) -> otel.Instrumentation:
    return otel.instrument(meter_provider=collected.metrics, tracer_provider=collected.spans, **options)


def test_metrics_are_those_of_the_loader(images: feedline.Dataset, collected: Collected) -> None:
    with instrument(collected, spans_every_s=0) as running, images.loader(4, output="numpy") as loader:
        assert collected.values() == {}
        time.sleep(2 * otel._SNAPSHOT_S)
        list(loader)
        stats, found = loader.stats(), collected.values()
        ((name,),) = found["feedline.batches"]
        assert found["feedline.batches"] == {(name,): 6} and found["feedline.samples"] == {(name,): 24}
        assert found["feedline.budget"] == {(name,): stats["budget_bytes"]}
        assert found["feedline.wait"][(name,)] > 0
        assert found["feedline.stage.items"][(name, "decode")] >= 24
        assert found["feedline.stage.busy"].keys() == {(name, stage) for stage in stats["stages"]}
        time.sleep(2 * otel._SNAPSHOT_S)
        list(loader)
        assert collected.values()["feedline.batches"] == {(name,): 12}
        running.close()
        time.sleep(2 * otel._SNAPSHOT_S)
        assert collected.values() == {}


def test_names_become_those_of_prometheus() -> None:
    """By OpenTelemetry's rules: dots become underscores, and the unit and `_total` are appended."""
    for counted in (*TOTALS, *STAGES):
        made = otel.metric_name(counted).replace(".", "_") + (f"_{counted.unit}" if counted.unit else "")
        assert made == counted.name


def test_counters_of_the_drop_in_never_decrease(collected: Collected) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    loader = feedline.DataLoader(torch.utils.data.TensorDataset(torch.arange(10)), 2, num_workers=0)
    with instrument(collected, spans_every_s=0):
        seen = []
        for _ in range(3):
            for _ in loader:
                pass
            time.sleep(2 * otel._SNAPSHOT_S)
            seen += collected.values()["feedline.batches"].values()
            next(iter(loader))  # restarts the epoch's counter
            time.sleep(2 * otel._SNAPSHOT_S)
            seen += collected.values()["feedline.batches"].values()
    assert seen == [5, 6, 10, 11, 15, 16], "the first batch of a repeated epoch is not visible in its counter"


def test_spans_of_a_window(images: feedline.Dataset, collected: Collected) -> None:
    began_ns = time.time_ns()
    with instrument(collected, spans_every_s=0.01), images.loader(4, output="numpy", epochs=10_000) as loader:
        batches = iter(loader)

        def names() -> set[str]:
            next(batches)
            return {span.name for span in collected.exporter.get_finished_spans()}

        until(lambda: names() >= STAGE_SPANS, seconds=60)
    spans = collected.exporter.get_finished_spans()
    roots = {span.context.span_id: span for span in spans if span.parent is None}
    assert {span.name for span in roots.values()} == {"feedline.window"}
    children = [span for span in spans if span.parent is not None]
    for span in children:
        root = roots[span.parent.span_id]
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time
        assert began_ns - 10**9 < span.start_time < time.time_ns() + 10**9
        assert ("feedline.batch" if span.name == "feedline.wait" else "feedline.sample") in span.attributes


def test_the_number_of_spans_is_limited(collected: Collected) -> None:
    sampler = instrument(collected, spans_every_s=1e5, most_spans=3)._sampler
    assert sampler is not None
    stages = {name: number for number, name in enumerate(sampler._names)}
    spans = [otel._Span(10 * i, 10 * i + 5, i, 1, stages["feedline.decode"]) for i in range(6)]
    sampler._export([*spans, otel._Span(70, 80, 1, 2, stages["feedline.wait"])], dropped=2)
    *children, root = collected.exporter.get_finished_spans()
    assert [(span.name, span.end_time - span.start_time) for span in children] == [
        ("feedline.wait", 10),
        ("feedline.decode", 5),
        ("feedline.decode", 5),
    ]
    assert root.attributes == {"feedline.spans_left_out": 4 + 2}
    sampler.close()


def test_a_recording_of_profile_has_precedence(images: feedline.Dataset, collected: Collected) -> None:
    recording = Recording()
    with instrument(collected, spans_every_s=0.005), images.loader(4, output="numpy", epochs=3) as loader:
        list(loader)
        time.sleep(0.1)
    recording.stop()
    assert not collected.exporter.get_finished_spans()
    assert len(recording.spans) >= 72


@pytest.mark.parametrize("arguments", [{"spans_every_s": -1}, {"spans_every_s": "1"}, {"most_spans": 0}])
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(feedline.ConfigError, match=next(iter(arguments))):
        otel.instrument(**arguments)


def test_without_opentelemetry_it_reports_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(feedline.ConfigError, match=r"feedline\[otel\]"):
        otel.instrument()
