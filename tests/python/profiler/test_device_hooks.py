# SPDX-License-Identifier: Apache-2.0
"""The hooks of a watched step record a device's work, and do not affect the script."""

import json
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline.diagnose.causes.precision_not_reduced import FEWEST_WATCHED
from feedline.diagnose.rules.copies import FEWEST_TIMED
from feedline.profiler import session
from feedline.profiler.probe import device_hooks, events
from feedline.profiler.probe.device_hooks import DeviceHooks
from feedline.profiler.probe.events import Event, Total
from feedline.profiler.probe.recorder import Recorder
from feedline.profiler.recordings import ProcessRecord
from feedline.profiler.summary import gpu_summary, timeline

torch = pytest.importorskip("torch", reason="torch, whose tensors are watched, is not installed")
SCRIPTS = Path(__file__).parents[2] / "scenarios" / "scripts"


@pytest.fixture
def hooks(tmp_path):
    hooks = DeviceHooks(Recorder(str(tmp_path)))
    yield hooks
    hooks.remove()


WAYS = (
    lambda tensor: tensor.to(torch.float16),
    lambda tensor: tensor.to("cpu", non_blocking=True),
    lambda tensor: tensor.to(torch.device("cpu"), torch.int32, False, True),
    lambda tensor: tensor.to(tensor.double(), copy=True),
    lambda tensor: tensor.to(device="meta"),
    lambda tensor: tensor.to(),
    lambda tensor: tensor.to("no such device"),
    lambda tensor: tensor.to(1, 2, 3, 4, 5, 6),
    lambda tensor: tensor.to(dtype="float16"),
    lambda tensor: tensor.cuda("cpu"),
    lambda tensor: tensor.copy_(torch.ones(2, 3)),
    lambda tensor: tensor.copy_(torch.ones(1), True),
    lambda tensor: tensor.copy_(),
    lambda tensor: tensor.copy_(torch.ones(7)),
)


def outcome(way):
    try:
        result = way(torch.zeros(2, 3))
        return result.device, result.dtype, result.shape, result.is_meta or result.tolist()
    except Exception as error:
        return type(error), str(error).splitlines()[0]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_calls_give_what_they_give_without_hooks(hooks, way):
    plain = outcome(WAYS[way])
    hooks.install(torch)
    assert outcome(WAYS[way]) == plain
    assert hooks.remove() >= 0
    assert not [name for name in ("to", "cuda", "copy_") if name in torch.Tensor.__dict__]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(range(len(WAYS))), max_size=6))
def test_steps_are_watched_again_and_again(tmp_path_factory, ways):
    before = dict(torch.Tensor.__dict__), torch.autocast.__enter__
    watching = DeviceHooks(Recorder(str(tmp_path_factory.mktemp("session"))))
    for way in ways:
        watching.install(torch)
        outcome(WAYS[way])
        watching.remove()
    assert (dict(torch.Tensor.__dict__), torch.autocast.__enter__) == before


def test_methods_that_a_script_has_replaced_come_back(hooks, monkeypatch):
    def its_own(tensor, *_arguments):
        return "its own"

    monkeypatch.setattr(torch.Tensor, "to", its_own)
    hooks.install(torch)
    assert torch.zeros(1).to("cpu") == "its own"
    hooks.remove()
    assert torch.Tensor.__dict__["to"] is its_own


# -- on a device


def diagnosed(tmp_path, source):
    pytest.importorskip("torch.utils.backend_registration")
    import torch.utils.backend_registration as registration

    if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch has no devices that are written in Python")
    script = tmp_path / "train.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n" + textwrap.dedent(source))
    recording = session.run([sys.executable, "-W", "ignore", str(script)])
    assert recording.returncode == 0, recording.notes
    return timeline.summarise(recording)


def test_a_short_loop_tells_of_its_copies_and_parameters(tmp_path):
    """Only some of 80 steps of some ms are observed: enough copies are timed, and the optimizer is found."""
    found = diagnosed(
        tmp_path,
        """
        import stand_in_device, torch, torch.optim
        class Still(torch.optim.Optimizer):
            def step(self):
                pass
        weight = torch.nn.Parameter(torch.zeros(100).to("standin"))
        optimizer = Still([weight], {})  # made before the loop, when no step is watched yet
        plain = torch.zeros(8 << 20, dtype=torch.uint8)
        locked = plain.pin_memory()
        target = torch.empty(8 << 20, dtype=torch.uint8, device="standin")
        data = [torch.zeros(1)] * 80
        for batch in torch.utils.data.DataLoader(data, batch_size=1, num_workers=1, pin_memory=True):
            assert batch.is_pinned()
            plain.to("standin")
            target.copy_(plain, non_blocking=True)
            locked.to(device="standin", non_blocking=True)
            target.to("cpu")            # the other way
            target.to("standin")        # it is there
            stand_in_device.launch(2)
            optimizer.step()
        """,
    )
    kinds = {(copies.pinned, copies.asked): copies for copies in found.on_device.copies}
    assert set(kinds) == {(False, False), (False, True), (True, True)}
    for copies in kinds.values():
        assert copies.per_step == 1 and copies.bytes_per_step == 8 << 20 and not copies.other_stream
        assert copies.timed >= FEWEST_TIMED and copies.device_ms >= (
            2.0 if copies.pinned else 4.1
        )  # 8 MiB at 4, and at 2 GB/s
    assert kinds[False, False].host_ms >= 4.1  # it waits for the copy
    assert found.on_device.device["type"] == "standin" and found.uses_device
    assert found.on_device.device["elements"] == {"torch.float32": 100}
    assert found.on_device.watched_steps >= FEWEST_WATCHED
    assert found.missing.get("gpu") is None  # no NVIDIA GPU
    assert found.making.pin_ms > 0


class DeviceOfSteps:
    """The part of torch.cuda that is needed to time a step. Its stream reaches an event `lag` later than the host
    records it.
    """

    def __init__(self):
        self.now, self.lag, self.ready, self.capturing, self.made, self.events = 0.0, 0.0, True, False, 0, 0

    def Event(self, enable_timing):
        device = self

        class Event:
            def record(self, stream):
                self.at, device.made = device.now + device.lag, device.made + 1

            def query(self):
                return device.ready

            def elapsed_time(self, end):
                return end.at - self.at

        assert enable_timing
        self.events += 1
        return Event()

    def current_stream(self, _):
        return "stream"

    default_stream = current_stream

    def is_current_stream_capturing(self):
        return self.capturing


@pytest.fixture
def steps(hooks, monkeypatch):
    """Returns step(host_ms, lag_ms), the device, and the records of whole steps as (ms, steps)."""
    device, recorded = DeviceOfSteps(), []
    monkeypatch.setattr(hooks, "_module", lambda _: device)

    def record(kind, _begin, _cpu, a, b, _keep=True):
        if kind == events.DEVICE_TIMES and b % 256 == events.WHOLE_STEP:
            recorded.append((a / 1e6, b // 256))

    monkeypatch.setattr(hooks._recorder, "record", record)

    def step(host_ms, lag_ms=0.0):
        hooks.install(torch)
        device.now, device.lag = device.now + host_ms, lag_ms
        hooks.remove()

    return step, device, recorded


def test_a_step_is_timed_where_the_device_makes_it_and_not_where_it_is_launched(hooks, steps):
    step, device, recorded = steps
    step(5)  # which reports the device
    assert device.made == 0
    hooks._devices.add("cuda:0")
    step(3, lag_ms=9)  # launched within 3 ms and finished 9 ms later, then launched and finished within 4 ms
    step(4, lag_ms=9)  # launched and made in 4
    assert recorded == [(12, 1)]
    device.ready = False
    step(1)
    assert recorded == [(12, 1)]  # nothing waits for it
    device.ready = True
    step(1)
    assert recorded[1][1] == 2  # both that were made in the meantime


def test_events_whose_times_were_read_are_used_again_and_no_others(hooks, steps):
    step, device, recorded = steps
    hooks._devices.add("cuda:0")
    device.ready = False
    for _ in range(3):
        step(2)
    assert recorded == [] and device.events == 6
    device.ready = True
    step(5)
    step(1)
    assert recorded == [(6, 3), (5, 1)] and device.events == 6


def test_between_two_steps_of_a_run_hooks_let_calls_pass(hooks, monkeypatch):
    monkeypatch.setattr(device_hooks, "_HOST", ("cpu",))  # "meta" is the device here
    recorded = []
    monkeypatch.setattr(hooks._recorder, "record", lambda kind, *rest: recorded.append((kind, rest)))
    hooks.install(torch)
    torch.zeros(10).to("meta")
    hooks.end()
    torch.zeros(10).to("meta")  # a loader's own
    assert "to" in torch.Tensor.__dict__
    hooks.begin()
    torch.zeros(20).to("meta")
    hooks.remove()
    assert [rest[2] for kind, rest in recorded if kind == events.COPIES] == [40, 80]  # bytes
    assert "to" not in torch.Tensor.__dict__


def test_steps_of_several_devices_and_of_graphs_are_not_timed(hooks, steps):
    step, device, recorded = steps
    hooks._devices.add("cuda:0")
    device.capturing = True
    step(3), step(3)
    assert device.made == 0
    device.capturing = False
    hooks.install(torch)
    device.capturing = True  # which began in the step
    hooks.remove()
    device.capturing = False
    assert device.made == 1
    hooks._devices.add("cuda:1")
    step(3), step(3)
    assert device.made == 1 and recorded == []


def test_the_types_of_parameters_are_seen_when_an_optimizer_steps(hooks, tmp_path, monkeypatch):
    import torch.optim

    class Still(torch.optim.Optimizer):
        def step(self):
            pass

    monkeypatch.setattr(device_hooks, "_HOST", ("cpu",))  # "meta" is the device here
    large = torch.nn.Parameter(torch.empty(300, device="meta", dtype=torch.bfloat16))
    small = torch.nn.Parameter(torch.empty(100, device="meta"))
    optimizer = Still([large, small, torch.nn.Parameter(torch.zeros(5))], {})
    hooks.install(torch)
    optimizer.step()
    hooks.remove()
    hooks.tell()
    found = json.loads(next(tmp_path.glob("*.device")).read_text())
    assert found["elements"] == {"torch.bfloat16": 300, "torch.float32": 100}
    assert (found["type"], found["autocast"], found["matmul_precision"]) == ("meta", [], "highest")
    optimizer.param_groups.clear()
    optimizer.step()  # nobody looks


def test_autocast_is_seen_where_it_is_entered(hooks, tmp_path):
    hooks._devices.add(torch.device("cuda:0"))
    hooks.install(torch)
    with torch.autocast("cuda", torch.bfloat16, enabled=False):
        pass
    hooks.remove()
    hooks.tell()
    (note,) = tmp_path.glob("*.device")
    assert json.loads(note.read_text())["autocast"] == []
    hooks.install(torch)
    context = torch.autocast("cpu", torch.bfloat16)
    context.device = "cuda"  # an own event would be disabled without a GPU
    with context:
        pass
    hooks.remove()
    hooks.tell()
    assert json.loads(note.read_text())["autocast"] == ["torch.bfloat16"]


# -- from events and samples to figures

MS = 1_000_000


def test_time_on_the_device_is_that_of_the_copies_that_were_timed():
    pinned = events.PINNED | events.ASKED
    recorded = [
        Event(events.CALLS, 1, 0, 10 * MS, 0, 0, 0),
        Event(events.COPIES, 1, 0, 3 * MS, 0, 800, pinned + 256 * 2),
        Event(events.CALLS, 1, 0, 10 * MS, 0, 0, 0),
        Event(events.COPIES, 1, 0, 5 * MS, 0, 1200, pinned + 256 * 2),
        Event(events.DEVICE_TIMES, 1, 0, 0, 0, 6 * MS, pinned + 256 * 3),
        Event(events.COPIES, 1, 0, MS, 0, 7, events.OTHER_STREAM + 256),
    ]
    process = ProcessRecord(1, 0, 0, recorded, {events.CALLS: Total(2)})
    timed, other = gpu_summary.copies_of(process)
    assert (timed.pinned, timed.asked, timed.per_step, timed.bytes_per_step) == (True, True, 2, 1000)
    assert timed.host_ms == 5 and timed.device_ms == pytest.approx(4) and timed.timed == 3  # the first step is cold
    assert other.other_stream and other.device_ms is None
    assert gpu_summary.steps_of(process) == (None, 0)  # copies are not steps


def test_the_first_steps_copies_are_no_measure_of_the_others():
    """An idle stream, memory that is allocated for the first time: 0.39 ms pass between the events of a copy of 1
    kB.
    """
    steps = [events.ASKED + 256] * 9
    recorded = [Event(events.CALLS, 1, 0, 7 * MS, 0, 0, 0) for _ in steps]
    recorded += [Event(events.COPIES, 1, 0, MS, 0, 1024, flags) for flags in steps]
    recorded += [Event(events.DEVICE_TIMES, 1, 0, 0, 0, 390_000, steps[0])]
    alone = ProcessRecord(1, 0, 0, recorded, {events.CALLS: Total(9)})
    assert gpu_summary.copies_of(alone)[0].device_ms == pytest.approx(0.39)  # nothing else is known
    recorded += [Event(events.DEVICE_TIMES, 1, 0, 0, 0, 20_000, flags) for flags in steps[1:]]
    (copies,) = gpu_summary.copies_of(ProcessRecord(1, 0, 0, recorded, {events.CALLS: Total(9)}))
    assert copies.device_ms == pytest.approx(0.02) and copies.timed == 8 and copies.bytes_per_step == 1024


def test_the_time_of_a_step_is_the_mean_of_those_that_were_timed():
    recorded = [
        Event(events.DEVICE_TIMES, 1, 0, 0, 0, 30 * MS, events.WHOLE_STEP + 256 * 2),
        Event(events.DEVICE_TIMES, 1, 0, 0, 0, 6 * MS, events.PINNED + 256 * 3),
        Event(events.DEVICE_TIMES, 1, 0, 0, 0, 60 * MS, events.WHOLE_STEP + 256 * 1),
    ]
    process = ProcessRecord(1, 0, 0, recorded, {events.CALLS: Total(3)})
    assert gpu_summary.steps_of(process) == (pytest.approx(30), 3)
    assert gpu_summary.copies_of(process) == ()


def sampled(**changes):
    gpus = [
        {"index": i, "uuid": f"GPU-{i}", "name": "A100", "capability": 80, "memory_bytes": 80, "partitioned": False}
        for i in range(2)
    ]
    row = {"memory_used_bytes": 7, "received_bytes_per_s": None, "power_w": None, "slowed": False}
    rows = [{**row, "time_ns": t, "index": i, "utilisation": 0.1 * t * (i + 1)} for t in range(6) for i in range(2)]
    host = {"gpus": gpus, "gpu": rows, "gpu_processes": [], "gpu_unavailable": "", "processes": [{"pid": 5}]}
    return {**host, **changes}


def test_the_gpu_is_found_by_what_the_script_states_or_by_its_processes():
    by_uuid, _ = gpu_summary.gpu_of(sampled(), (0, 9), {"uuid": "GPU-1"}, True)
    assert by_uuid.indices == (1,) and by_uuid.utilisation == pytest.approx(0.5) and not by_uuid.shared
    assert (by_uuid.lowest, by_uuid.highest) == (0.0, 1.0) and by_uuid.memory_used_bytes == 7
    assert by_uuid.received_bytes_per_s is None and by_uuid.slowed == 0
    listed = sampled(gpu_processes=[{"index": 0, "pid": 5}, {"index": 0, "pid": 99}, {"index": 1, "pid": 98}])
    by_process, _ = gpu_summary.gpu_of(listed, (0, 9), {}, True)
    assert by_process.indices == (0,) and by_process.shared
    assert gpu_summary.gpu_of(sampled(), (0, 9), {}, True)[1].startswith("NVML does not report which")
    only = sampled(gpus=sampled()["gpus"][:1])
    assert gpu_summary.gpu_of(only, (0, 9), {}, True)[0].indices == (0,)


def test_numbers_of_another_process_space_make_no_one_share():
    host = sampled(gpu_processes=[{"index": 0, "pid": 1234567}])
    assert not gpu_summary.gpu_of(host, (0, 9), {"uuid": "GPU-0"}, True)[0].shared


def test_what_keeps_a_gpu_from_being_seen_is_reported():
    assert gpu_summary.gpu_of(sampled(), (0, 9), {}, False) == (None, None)
    why = gpu_summary.gpu_of(sampled(gpu_unavailable="there is no libnvidia-ml.so.1"), (0, 9), {}, True)[1]
    assert why == "there is no libnvidia-ml.so.1"
    assert "too short" in gpu_summary.gpu_of(sampled(), (0, 1), {"uuid": "GPU-0"}, True)[1]
    blind = [{**row, "utilisation": None} for row in sampled()["gpu"]]
    divided = [{**gpu, "partitioned": True} for gpu in sampled()["gpus"]]
    why = gpu_summary.gpu_of(sampled(gpu=blind, gpus=divided), (0, 9), {"uuid": "GPU-0"}, True)[1]
    assert "MIG" in why
