# SPDX-License-Identifier: Apache-2.0
"""`feedline.profile` with torch's real profiler, Feedline's stages on its time line, and what is read from both."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running_processes import HANG_S

import feedline
from feedline import _engine, trace
from feedline.trace import merging, reader, spans
from feedline.trace.profiling import Profile

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch.profiler", reason="this torch has no profiler")


def events_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return list(json.load(file)["traceEvents"])


def named(path: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in events_of(path) if event.get("ph") == "X" and event["name"].startswith(name)]


@contextlib.contextmanager
def recording() -> Iterator[spans.Recording]:
    made = spans.Recording()
    yield made
    made.stop()


def train(loader: Any, profiler: Profile, steps: int) -> None:
    model = torch.nn.Linear(3 * 32 * 32, 4)
    batches = iter(loader)
    for _ in range(steps):
        image = next(batches)[0]
        model(image.flatten(1)).sum().backward()
        profiler.step()


@pytest.fixture
def train_loader(train: feedline.Dataset) -> Iterator[feedline.Loader]:
    with train.loader(2, shuffle=True, num_workers=1, epochs=4) as loader:
        yield loader


@pytest.mark.parametrize(
    ("schedule", "recorded"),
    [
        ({"wait": 1, "warmup": 1, "active": 3}, [2, 3, 4]),  # from the third step on, torch's number 2
        ({"wait": 0, "warmup": 0, "active": 2}, [0, 1]),
        ({"wait": 2, "warmup": 1, "active": 1, "skip_first": 1}, [4]),
    ],
)
def test_the_steps_of_the_schedule_are_recorded(
    train_loader: Any, tmp_path: Path, schedule: dict[str, int], recorded: list[int]
) -> None:
    with feedline.profile(tmp_path / "made", **schedule) as profiler:
        train(train_loader, profiler, 8)
    assert [path.name for path in profiler.files] == [
        f"rank0.steps{recorded[0] + 1}-{recorded[-1] + 1}.pt.trace.json.gz"
    ]
    result = trace.analyse([trace.read(profiler.files[0])])
    assert [step["step"] for step in result["steps"]["each"]] == recorded
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [profiler.files[0].name], "no leftovers"


def test_repeated_recordings_are_files_of_their_own(train_loader: Any, tmp_path: Path) -> None:
    with feedline.profile(tmp_path, wait=1, warmup=0, active=2, repeat=2) as profiler:
        train(train_loader, profiler, 9)
    assert [path.name.split(".")[1] for path in profiler.files] == ["steps2-3", "steps5-6"]
    assert all(trace.read(path).events for path in profiler.files)


def test_a_loop_that_ends_early_is_written_as_far_as_it_went(train_loader: Any, tmp_path: Path) -> None:
    with feedline.profile(tmp_path, wait=1, warmup=0, active=5) as profiler:
        train(train_loader, profiler, 3)
    assert len(profiler.files) == 1
    numbers = [int(event["name"].partition("#")[2]) for event in named(profiler.files[0], "ProfilerStep#")]
    assert sorted(numbers)[:2] == [1, 2]


def test_nothing_recorded_is_reported(train_loader: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), feedline.profile(tmp_path, wait=3, warmup=2) as profiler:
        train(train_loader, profiler, 4)
    assert profiler.files == []
    assert "after 4 steps, and recording would begin at step 6" in caplog.text


def test_an_error_in_the_loop_comes_through(train_loader: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"), feedline.profile(tmp_path, wait=0, warmup=0) as profiler:
        train(train_loader, profiler, 2)
        raise KeyError("mine")
    _engine.start_spans(1)  # nothing else records any more
    _engine.stop_spans()


@pytest.mark.parametrize("wrong", [{"active": 0}, {"wait": -1}, {"repeat": 1.5}, {"warmup": True}])
def test_an_impossible_schedule_fails_at_the_call(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(feedline.ConfigError, match=next(iter(wrong))):
        feedline.profile(tmp_path, **wrong)


def test_the_loaders_time_and_stages_are_in_the_trace(train: feedline.Dataset, tmp_path: Path) -> None:
    with (
        train.loader(3, shuffle=True, num_workers=1, epochs=9, memory_budget="100 kB") as loader,
        feedline.profile(tmp_path, wait=1, warmup=1, active=4) as profiler,
    ):
        train_with = iter(loader)
        for _ in range(10):
            next(train_with)
            time.sleep(0.01)
            profiler.step()
    result = trace.analyse([trace.read(profiler.files[0])])
    assert result["steps"]["loader"]["found"]
    assert result["steps"]["loader"]["iterators"] == ["feedline.Loader"]
    stages = {row["stage"]: row for row in result["stages"]}
    assert {"storage", "decode", "transform", "wait for a batch"} <= set(stages)
    assert 4 <= stages["decode"]["items"] <= 30
    # each wait lies within the call that waited, on the same thread and on one clock
    calls = named(profiler.files[0], "feedline.Loader.__next__")
    waits = named(profiler.files[0], "wait for a batch")
    assert len(calls) == len(waits) == 4
    for call, wait in zip(calls, waits, strict=True):
        assert call["tid"] == wait["tid"]
        assert call["ts"] - 300 <= wait["ts"] <= wait["ts"] + wait["dur"] <= call["ts"] + call["dur"] + 300


def test_torchs_clock_and_ours_agree_on_a_marker(tmp_path: Path) -> None:
    """torch stamps with the wall clock: a record_function lies between the wall-clock readings around it."""
    limits = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for i in range(20):
            before = time.monotonic_ns()
            with torch.profiler.record_function(f"marker {i}"):
                pass
            limits.append((before, time.monotonic_ns()))
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    made = trace.read(tmp_path / "t.json")
    ops = made["op"]
    at = {made.names[name]: start for name, start in zip(ops.name.tolist(), ops.start.tolist(), strict=True)}
    offset = spans.clock_offset_ns() - made.header["baseTimeNanoseconds"]
    off = [
        max(before + offset - at[f"marker {i}"], at[f"marker {i}"] - after - offset)
        for i, (before, after) in enumerate(limits)
    ]
    assert np.median(off) < 200_000, "nanoseconds outside the readings around it"


def test_spans_are_those_of_the_samples(train: feedline.Dataset) -> None:
    with train.loader(4, num_workers=2, output="numpy", epochs=1) as loader:  # no samples of the next epoch ahead
        with recording() as made:
            began = time.monotonic_ns()
            list(loader)
            ended = time.monotonic_ns()
        threads = loader.stats()["threads"]
    found, stages = made.spans, _engine.span_stages()
    for stage in ("storage", "decode", "transform"):
        mine = found[found["stage"] == stages.index(stage)]
        assert sorted(mine["item"].tolist()) == list(range(21))
        assert (mine["begin_ns"] >= began).all()
        assert len(set(mine["thread"].tolist())) <= threads
        assert threading.get_native_id() not in mine["thread"]
    consumer = found[found["stage"] == stages.index("consumer")]
    assert set(consumer["thread"].tolist()) == {threading.get_native_id()}
    assert (consumer["end_ns"] <= ended).all()
    assert len(consumer) == 6
    for sample in range(21):
        of = {
            stages[row["stage"]]: row for row in found if row["item"] == sample and row["stage"] != consumer["stage"][0]
        }
        assert of["storage"]["end_ns"] <= of["decode"]["begin_ns"] <= of["decode"]["end_ns"]
        assert of["decode"]["end_ns"] <= of["transform"]["begin_ns"]


def test_nothing_is_recorded_unasked(train: feedline.Dataset) -> None:
    _engine.start_spans(10)
    _engine.stop_spans()
    with train.loader(4, output="numpy") as loader:
        list(loader)
    assert _engine.take_spans() == (b"", 0)


def test_the_ring_is_bounded(train: feedline.Dataset) -> None:
    with train.loader(4, num_workers=1, output="numpy", epochs=3) as loader:
        made = spans.Recording(per_thread=8)
        list(loader)
        made.stop()
    assert made.dropped > 0
    assert len(made.spans) <= 8 * 3


def test_times_follow_a_clock_that_is_being_set_right() -> None:
    made = spans.Recording()
    made.stop()
    made._began_ns, made._ended_ns, made._offset_ns, made._last_offset_ns = 1000, 2000, 500, 600
    times = np.array([900, 1000, 1500, 2000, 3000], np.uint64)
    assert made.wall_ns(times).tolist() == [1400, 1500, 2050, 2600, 3600]


def spans_file(path: Path, at_ns: list[int]) -> Path:
    rows = [(at, at + 1000, 7, 99, 1) for at in at_ns]
    made = spans.Recording()
    made.stop()
    made._offset_ns = made._last_offset_ns = 0
    made.spans = np.array(rows, spans.LAYOUT)
    made.write(path)
    return path


def test_merging_moves_spans_to_the_traces_time(tmp_path: Path) -> None:
    base = 1_790_857_026_000_000_000
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 4440041940301.331, "dur": 20.5}
    for stem, header in (("new", {"baseTimeNanoseconds": base}), ("old", {})):
        start_ns = base * (stem == "new") + 4440041940301331
        path = tmp_path / f"{stem}.json"
        path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": [event]}))
        stages = spans_file(tmp_path / "stages.json", [start_ns + 5000])
        done = merging.merge(path, [stages], tmp_path / "merged.json.gz")
        assert (done.events, done.spans, done.in_range, done.damage) == (1, 1, 1, [])
        found = events_of(tmp_path / "merged.json.gz")
        assert found[0] == event
        moved = next(e for e in found if e.get("cat") == "feedline")
        assert moved["ts"] == pytest.approx(event["ts"] + 5, abs=0.002)
        assert moved["args"] == {"sample": 7}


def test_merging_makes_a_damaged_trace_whole_and_never_writes_over_its_inputs(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.0}
    path.write_text(json.dumps({"traceEvents": [event] * 3})[:-30])
    stages = spans_file(tmp_path / "stages.json", [10**15])
    done = merging.merge(path, [stages], tmp_path / "merged.json")
    assert (done.events, done.in_range) == (2, 0)
    assert done.damage
    made = reader.Reader(tmp_path / "merged.json")
    assert len(list(made.events())) == 4  # with the thread's name
    assert made.complete
    before = path.read_bytes()
    with pytest.raises(feedline.ConfigError, match="inputs"):
        merging.merge(path, [stages], path)
    with pytest.raises(feedline.StorageError, match="directory"):
        merging.merge(path, [path.with_name("merged.json"), tmp_path], tmp_path / "other.json")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut.json", "merged.json", "stages.json"]


def test_the_command_merges(train_loader: Any, tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    with (
        feedline.profile(tmp_path, wait=0, warmup=0, active=2, stages=False) as profiler,
        trace.record(tmp_path / "stages.json"),
    ):
        train(train_loader, profiler, 3)
    assert not named(profiler.files[0], "decode")
    merged = tmp_path / "merged.json.gz"
    command = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "trace", "--json"]
    command += [str(profiler.files[0]), "--merge", str(tmp_path / "stages.json"), str(merged)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert result["merged"]["in_range"] > 0
    assert named(merged, "decode")


def test_torchs_own_loader_in_a_real_trace(tmp_path: Path) -> None:
    class Slow(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            time.sleep(0.002)
            return torch.zeros(4)

    with feedline.profile(tmp_path, wait=0, warmup=1, active=5, with_stack=True, profile_memory=True) as profiler:
        for batch in torch.utils.data.DataLoader(Slow(), 4):
            batch.sum().item()
            profiler.step()
    result = trace.analyse([trace.read(profiler.files[0])])
    assert result["verdicts"][0]["cause"] == "python_main_process"
    assert result["wait_share"] > 0.5
    assert any("__getitem__" in row["name"] or "sleep" in row["name"] for row in result["in_loader"])
    assert result["peak_bytes"]["cpu"] > 0
    assert result["file"]["with_stack"]
    names = [row["name"] for row in result["operators"]]
    assert "aten::item" in names


def test_without_torch_it_reports_it(environment: dict[str, str], tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import feedline\n"
        "try: feedline.profile(sys.argv[1])\n"
        "except feedline.ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert "torch cannot be imported" in done.stdout, done.stderr
