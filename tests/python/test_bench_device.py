# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --device`` on a link of planted bandwidths: what was planted is measured, and named right."""

from __future__ import annotations

import contextlib
import random
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_nvml
import pytest

import feedline
from feedline.bench.device import measuring, record
from feedline.bench.device.link import WAYS, Way
from feedline.cli.commands import bench_device
from feedline.machine.gpu_topology import Topology, topology
from feedline.record import check, envelope

BATCH, SIDE = 64, 224
FLOATS = 3 * BATCH * SIDE * SIDE * 4


class PlantedLink:
    """A link that takes what it is told to, with 0.3 % of noise, and a loop that overlaps as a GPU's does."""

    name, uuid = "Planted GPU", "GPU-0"

    def __init__(self, pinned: float = 24e9, pageable: float = 6e9, layout_gain: float = 1.5, unified: bool = False):
        self.rates = {True: pinned, False: pageable}
        self.layout_gain, self.unified = layout_gain, unified
        self.step = 0.0
        self._random = random.Random(7)

    def _noisy(self, seconds: float) -> float:
        return seconds * self._random.gauss(1, 0.003)

    def copy_s(self, size: int, pinned: bool) -> float:
        return self._noisy(10e-6 + size / self.rates[pinned])

    def set_step(self, seconds: float) -> None:
        self.step = seconds

    def step_s(self, way: Way) -> float:
        return self._noisy(self.step / (self.layout_gain if way.channels_last else 1))

    def loop_s(self, way: Way, batches: int) -> float:
        size = FLOATS // (4 if way.elements == "uint8" else 1)
        copies = [self.copy_s(size, way.pinned) for _ in range(batches)]
        steps = [self.step_s(way) for _ in range(batches)]
        if not (way.pinned and way.stream):  # copies from pageable memory wait in the call, whatever the stream
            return sum(copies) + sum(steps)
        beside = sum(max(copy, step) for copy, step in zip(copies[1:], steps, strict=False))
        return copies[0] + beside + steps[-1]


def measured(link: PlantedLink, rounds_s: float = 0.02) -> dict[str, Any]:
    return measuring.measure(link, batch_size=BATCH, size=SIDE, seconds=rounds_s)


def holds(value: dict[str, float], truth: float) -> bool:
    """Is the truth within 3 % of the interval? Means of few rounds may miss it by chance."""
    return value["low"] - 0.03 * truth <= truth <= value["high"] + 0.03 * truth


def test_planted_bandwidths_are_found() -> None:
    found = measured(PlantedLink(pinned=24e9, pageable=6e9))
    assert holds(found["limit_bytes_per_s"], 24e9)
    assert holds(found["ways"]["pinned"]["copy_bytes_per_s"], 24e9)
    assert holds(found["ways"]["pageable"]["copy_bytes_per_s"], 6e9)
    assert 0.95 < found["ways"]["pinned"]["share_of_limit"] < 1.05
    assert 0.23 < found["ways"]["pageable"]["share_of_limit"] < 0.27
    assert holds(found["compared"]["pinning_a_copy"], 4.0)
    assert holds(found["compared"]["bytes_for_floats"], 4.0)
    assert holds(found["compared"]["channels_last"], 1.5)


def test_only_page_locked_copies_on_their_own_stream_hide() -> None:
    ways = measured(PlantedLink())["ways"]
    for name in ("pageable", "pageable_stream", "pinned"):
        assert ways[name]["hidden"]["value"] < 0.1, name
    for name in ("pinned_stream", "uint8_stream", "channels_last_stream"):
        assert ways[name]["hidden"]["value"] > 0.9, name


def test_a_step_is_longer_than_the_slowest_copy() -> None:
    link = PlantedLink(pageable=1e9)
    measured(link)
    assert link.step > FLOATS / 1e9


def test_no_difference_is_reported_as_none() -> None:
    found = measured(PlantedLink(pinned=20e9, pageable=20e9, layout_gain=1.0, unified=True))
    assert found["unified_memory"]
    said = dict(zip(found["compared"], bench_device.sentences(found["compared"]), strict=True))
    assert (
        "no significant difference" in said["pinning_a_copy"] and "no significant difference" in said["channels_last"]
    )
    assert "no significant difference" not in said["bytes_for_floats"]


def test_every_way_is_measured_in_every_round_and_time_ends_them() -> None:
    now = iter(range(1000))
    found = measuring.measure(PlantedLink(), batch_size=BATCH, size=SIDE, seconds=10, clock=lambda: float(next(now)))
    assert found["rounds"] == 14 and set(found["ways"]) == {way.name for way in WAYS}
    assert measured(PlantedLink(), 0)["rounds"] == 5


def test_its_record_is_one() -> None:
    found = measured(PlantedLink())
    facts = {**envelope("bench", ["feedline", "bench", "--device"], "cuda:0"), "wall_s": 1.0}
    reached = Topology("Planted GPU", "0000:3b:00.0", 4, 1, 8, 16, None, 1)
    whole = check(record.of_device(facts, found, reached, None))
    figures = {row["name"]: row for row in whole["figures"]}
    assert figures["pinned_bytes_per_s"]["low"] < figures["pinned_bytes_per_s"]["high"]
    assert figures["pinned_stream_hidden"]["value"] > 0.9
    assert whole["topology"]["bytes_per_s"] == pytest.approx(15.75e9, rel=0.01)
    assert {row["name"]: row["bytes_per_s"] for row in whole["chain"]}["pcie"] == pytest.approx(24e9, rel=0.05)
    unknown = record.of_device(facts, found, None, "there is no NVML")
    assert "there is no NVML" in unknown["notes"] and unknown["topology"] is None


def test_how_a_gpu_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = made_nvml.build(tmp_path)
    (tmp_path / "gpus").write_text("gpus 2\nbus 1 59\ngeneration_now 1 1\nwidth 1 8\nnvlinks 1 2\n")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus"))
    node = tmp_path / "sys/bus/pci/devices/0000:3b:00.0/numa_node"
    node.parent.mkdir(parents=True)
    node.write_text("1\n")
    found, why = topology("00000000-0000-0000-0000-000000000001", tmp_path, str(library))
    assert why is None and found == Topology("Fake GPU 1", "0000:3b:00.0", 4, 1, 8, 16, 2, 1)
    line = bench_device.described(found, why)
    for part in ("PCIe 4 x8", "x16 is possible", "generation 1", "NVLinks: 2", "NUMA node 1"):
        assert part in line
    first, _ = topology("GPU-00000000-0000-0000-0000-000000000000", tmp_path, str(library))
    assert first is not None and first.numa_node is None and first.nvlinks is None and not first.is_narrow
    nobody, why = topology("GPU-nobody", tmp_path, str(library))
    assert nobody is None and why is not None and "MIG" in why
    nobody, why = topology("GPU-nobody", tmp_path, str(tmp_path / "no-such-library"))
    assert nobody is None and why is not None and "NVIDIA driver is not installed" in why


# --- the link by torch, on the CPU, with a stand-in of torch.cuda ---


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self.at, self.recorded = 0.0, 0

    def record(self, stream: Any = None) -> None:
        self.at, self.recorded = time.perf_counter(), self.recorded + 1

    def elapsed_time(self, end: Event) -> float:
        return 1000 * (end.at - self.at)


class Stream:
    def __init__(self, device: Any = None) -> None:
        self.waited: list[int] = []  # how often each event was recorded before

    def wait_event(self, event: Event) -> None:
        self.waited.append(event.recorded)


def stand_in() -> Any:
    default = Stream()

    @contextlib.contextmanager
    def stream(_: Stream) -> Iterator[None]:
        yield

    return types.SimpleNamespace(
        Event=Event,
        Stream=Stream,
        stream=stream,
        current_stream=lambda: default,
        synchronize=lambda: None,
        get_device_properties=lambda _: types.SimpleNamespace(name="a CPU", uuid="GPU-1", is_integrated=True),
    )


@pytest.fixture
def torch_link(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    torch = pytest.importorskip("torch", reason="torch, whose tensors are copied, is not installed")
    from feedline.bench.device.torch_link import TorchLink

    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield TorchLink(torch, torch.device("cpu"), 2, 16, stand_in())
    torch.set_num_threads(threads)


def test_torchs_link_measures_all_of_it(torch_link: Any) -> None:
    monotonic = iter([0.0, 1.0])
    found = measuring.measure(
        torch_link, batch_size=2, size=16, seconds=0, large=(1 << 16,), clock=lambda: next(monotonic)
    )
    assert found["device"] == "a CPU" and found["unified_memory"] and found["rounds"] == 5
    for way in found["ways"].values():
        assert way["copy_bytes_per_s"]["value"] > 0 and way["batch_ms"]["value"] > 0


def test_a_slot_is_copied_to_again_only_after_its_step(torch_link: Any) -> None:
    way = next(way for way in WAYS if way.name == "pinned_stream")
    torch_link.loop_s(way, 7)
    assert torch_link._copies.waited == [1, 1, 2, 2, 3]  # batches 2 to 6: each slot's steps so far
    assert torch_link._module.current_stream().waited == [1, 1, 2, 2, 3, 3, 4]


def test_steps_take_about_as_long_as_requested(torch_link: Any) -> None:
    torch_link.set_step(0.02)
    assert torch_link._repeats > 3
    way = WAYS[-1]
    assert torch_link._of(way)[0][0].dtype.itemsize == 1
    network = torch_link._network(True)
    torch = torch_link._torch
    assert network[0].weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("name", "torch", "said"),
    [
        ("cuda", {"cuda": None}, "built without CUDA"),
        ("cuda", {"cuda": "12.8"}, ""),
        ("cuda:4", {"cuda": "12.8", "count": 2}, "GPUs that torch finds: 2"),
        ("cpu", {"cuda": "12.8", "count": 1}, "is not a GPU"),
        ("rubbish", {"cuda": "12.8", "count": 1}, "is not a device"),
    ],
)
def test_no_gpu_is_reported_with_the_next_step(name: str, torch: dict[str, Any], said: str) -> None:
    real = pytest.importorskip("torch", reason="torch, whose devices are named, is not installed")
    from feedline.bench.device.torch_link import find_device

    count = torch.get("count", 0)
    made = types.SimpleNamespace(
        device=real.device,
        __version__="2.13",
        version=types.SimpleNamespace(cuda=torch["cuda"]),
        cuda=types.SimpleNamespace(
            is_available=lambda: count > 0, device_count=lambda: count, current_device=lambda: 1
        ),
    )
    with pytest.raises(feedline.ConfigError, match="bench --device: ") as error:
        find_device(name, made)  # type: ignore[arg-type]
    assert said in str(error.value)
    if count > 1:
        assert find_device("cuda", made)[1] == real.device("cuda:1")  # type: ignore[arg-type]


def test_the_verb_without_a_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    torch = pytest.importorskip("torch", reason="torch, which is asked for a GPU, is not installed")
    from feedline.cli import main

    def said(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["feedline", "bench", *words])
        assert main() == 2
        return capsys.readouterr().err

    if not torch.cuda.is_available():
        assert "bench --device: " in said("--device")
    for words in (["--device=cuda", "--seed", "1"], ["--device=cuda", str(tmp_path)], ["--threads", "1", "--device"]):
        assert "--device" in said(*words)
