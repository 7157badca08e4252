# SPDX-License-Identifier: Apache-2.0
"""``feedline top``: its figures, its alarms, and that every line fits in the terminal."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running_processes import HANG_S

pytest.importorskip("rich", reason="rich is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from made_views import (
    BUSY_GPU,
    GPU,
    HOST,
    MEMORY,
    NoGpus,
    Publishing,
    identity,
    loader,
    loader_view,
    moment,
    process,
    stage,
    texts,
    view,
)
from rich.cells import cell_len

import feedline
from feedline.findings import Finding
from feedline.findings.formats import as_alarm
from feedline.machine import gpu, host, memory, processes
from feedline.machine.disks import Disk, DiskWatch
from feedline.top import amounts, published, rates, watch
from feedline.top.alarms import LOOKS, Alarms, Moment
from feedline.top.alarms.gpu_sawtooth import turns
from feedline.top.stock_loops import LoopView

# -- made-up figures


# -- rates


def test_rates_are_differences_over_the_publishers_time() -> None:
    before = loader(
        threads=2, batches=10, samples=640, wait_s=1.0, stages={"storage": stage(items=5, bytes=100, busy_s=1.0)}
    )
    after = loader(
        threads=2,
        batches=30,
        samples=1900,
        wait_s=2.5,
        stages={
            "storage": stage(items=25, bytes=1100, busy_s=2.0, blocked_s=0.5, latency_us=(0, 0, 0, 0, 20)),
            "batch": stage(bytes=800),
        },
    )
    found = rates.between(before, after, 5.0)
    assert found is not None
    assert (found.batches_per_s, found.samples_per_s, found.wait_share) == (4.0, 252.0, 0.3)
    assert (found.read_bytes_per_s, found.out_bytes_per_s) == (200.0, 160.0)
    assert (found.busy_share, found.blocked_share, found.starved_share) == (0.1, 0.05, 0.0), "of two threads' time"
    assert found.stages["storage"].items_per_s == 4.0 and found.stages["storage"].busy_share == 0.1
    assert 0.016 <= (found.stages["storage"].p99_ms or 0) <= 0.032
    assert rates.between(before, after, 0.0) is None


def test_only_the_latencies_since_are_counted() -> None:
    slow_once = stage(latency_us=(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000))
    fast_since = stage(latency_us=(0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000))
    found = rates.between(loader(stages={"decode": slow_once}), loader(stages={"decode": fast_since}), 1.0)
    assert found is not None and (found.stages["decode"].p99_ms or 1) < 0.005


def of_epoch(number: int, batches: int, wait_s: float, items: int, **values: Any) -> published.Loader:
    """A drop-in's iterator for an epoch of 38 batches; its stages count from the first epoch on."""
    return loader(
        **{
            "number": number, "kind": "DataLoader", "epoch": number, "batches_per_epoch": 38, "batches": batches,
            "samples": 16 * batches, "wait_s": wait_s, "threads": 2, "stages": {"decode": stage(items=items)},
        } | values
    )  # fmt: skip


def test_epochs_shorter_than_a_look_have_rates() -> None:
    found = rates.between(of_epoch(1, 30, 0.5, 980), of_epoch(3, 12, 0.04, 2052), 1.0)
    assert found is not None
    assert found.batches_per_s == 8 + 38 + 12 and found.samples_per_s == 16 * 58
    assert found.wait_share == pytest.approx(0.04 * 58 / 12) and found.stages["decode"].items_per_s == 1072
    begun = of_epoch(3, 0, 0.0, 1824)
    assert rates.between(of_epoch(1, 30, 0.5, 980), begun, 1.0) is None, "the known rates remain"
    endless = of_epoch(4, 5, 0.1, 100, batches_per_epoch=None)
    found = rates.between(of_epoch(3, 30, 0.5, 80, batches_per_epoch=None), endless, 1.0)
    assert found is not None and found.batches_per_s == 5, "no length: only counted batches"


def test_the_iterators_of_one_loader_are_one_loader() -> None:
    """Each epoch has a new number; a validation in between has another source."""
    own = os.getpid()
    valid = loader(number=9, kind="DataLoader", source="valid", batches=2)
    looks = [[of_epoch(0, 20, 0.1, 320)], [valid], [of_epoch(1, 10, 0.1, 640), valid], [of_epoch(2, 10, 0.1, 1248)]]
    find, views = Publishing(), []
    watching = watch.Watch(processes.identify(own), 0.1, NoGpus(), find=find)
    for at, loaders in enumerate(looks):
        find.put(process(own, float(at), *loaders))
        views.append(watching.look().loaders)
    find.put(unanswered=(own,))
    assert [one.totals.source for one in watching.look().loaders] == ["train"], "closed loaders are not shown as silent"
    watching.close()
    assert [len(view) for view in views] == [1, 1, 2, 1]
    assert views[0][0].rates is None and views[1][0].rates is None
    again = next(one for one in views[2] if one.totals.source == "train")
    assert again.rates is not None and again.rates.batches_per_s == (18 + 10) / 2, "over the two seconds"
    assert views[3][0].rates is not None and views[3][0].rates.batches_per_s == 28 + 10


def test_a_drop_in_restarts_counting_in_each_epoch() -> None:
    before = loader(kind="DataLoader", batches=95, samples=950, wait_s=3.0)
    found = rates.between(before, loader(kind="DataLoader", batches=5, samples=50, wait_s=0.5), 2.0)
    assert found is not None
    assert (found.batches_per_s, found.samples_per_s, found.wait_share) == (2.5, 25.0, 0.25)


COUNTER = st.none() | st.floats(0, 1e18)
STAGES = st.dictionaries(
    st.sampled_from(("storage", "decode", "batch")),
    st.builds(
        stage,
        **dict.fromkeys(("items", "bytes", "busy_s", "blocked_s", "starved_s"), st.floats(0, 1e18)),
        latency_us=st.lists(st.integers(0, 10**18), max_size=5).map(tuple),
    ),
)
LOADERS = st.builds(
    loader,
    kind=st.sampled_from(("Loader", "DataLoader")),
    source=st.text(st.characters(categories=("L", "N", "P", "S")), max_size=200),
    batches=st.floats(0, 1e18),
    **dict.fromkeys(
        ("samples", "wait_s", "threads", "epoch", "held_bytes", "batches_per_epoch", "ready_batches"), COUNTER
    ),
    stages=STAGES,
)


@settings(deadline=None)
@given(LOADERS, LOADERS, st.floats(1e-6, 1e6))
def test_rates_of_any_counters_make_sense(before: published.Loader, after: published.Loader, over_s: float) -> None:
    found = rates.between(before, after, over_s)
    assert found is not None and found.batches_per_s is not None and found.batches_per_s >= 0
    for share in (found.wait_share, found.busy_share, *(s.busy_share for s in found.stages.values())):
        assert share is None or 0 <= share <= 1


# -- alarms


def names_after(*moments: Moment, looks: int = LOOKS) -> dict[str, str]:
    alarms = Alarms(looks)
    found = [alarms.evaluate(moment) for moment in moments]
    return {alarm["name"]: alarm["severity"] for alarm in map(as_alarm, found[-1])}


def of_memory(**values: Any) -> dict[str, Any]:
    return {"memory": dataclasses.replace(MEMORY, **values)}


def test_a_quiet_machine_has_none() -> None:
    assert names_after(*[moment((BUSY_GPU,), 0.05)] * LOOKS) == {}


@pytest.mark.parametrize(
    "bad, name",
    [
        (moment(**of_memory(swapped_bytes=1)), "swap"),
        (moment(swapped_pages_per_s=5.0), "swap"),
        (moment(**of_memory(limit_bytes=100, used_bytes=95)), "memory_limit"),
        (moment(limit_hits_per_s=1.0), "memory_limit"),
        (moment(**of_memory(shared_bytes=95, shared_limit_bytes=100)), "shared_memory"),
        (moment(throttled_share=0.3), "cpu_quota"),
        (moment(disks=(Disk("sda", 1.0, 3.0),), io_pressure=0.5), "disk_busy"),
        (moment((dataclasses.replace(GPU, memory_used_bytes=98 * 10**8),)), "gpu_memory"),
        (moment((GPU,), 0.5), "gpu_idle"),
        (moment((GPU,), cpus_used=3.9), "gpu_idle"),
        (moment(waits=0.5), "loop_waits"),
        (Moment((("loader", loader(ready_batches=0), rates.UNKNOWN, 31.0),), HOST, ()), "no_batch"),
    ],
)
def test_each_alarm_comes_and_goes(bad: Moment, name: str) -> None:
    good = moment((BUSY_GPU,), 0.0)
    assert names_after(*[bad] * LOOKS)[name] == "alarm"
    assert name not in names_after(*[bad] * LOOKS, *[good] * LOOKS), "it is over"
    assert name not in names_after(*[good] * LOOKS)
    assert names_after(bad, looks=1)[name] == "alarm", "where there is one look"


@pytest.mark.parametrize(
    "bad", [moment(throttled_share=0.3), moment(waits=0.5), moment(disks=(Disk("a", 1.0, 1.0),), io_pressure=0.5)]
)
def test_what_may_be_a_moments_must_last(bad: Moment) -> None:
    good = moment(waits=0.0, throttled_share=0.0, io_pressure=0.0)
    assert names_after(*[good] * (LOOKS - 1), bad) == {}
    assert names_after(*[bad] * (LOOKS - 1)) == {}


def test_a_disk_that_is_always_busy_is_no_alarm_while_no_one_waits() -> None:
    busy = (Disk("nvme0n1", 1.0, 12.0),)
    assert names_after(*[moment(disks=busy, io_pressure=0.0)] * LOOKS) == {"disk_busy": "note"}
    assert names_after(*[moment(disks=busy)] * LOOKS) == {"disk_busy": "note"}, "nor where that is not told"


def test_who_has_the_cpus_is_reported() -> None:
    alarms = Alarms(1)
    for used, words in ((0.5, "other programs use the CPUs"), (3.5, "more busy threads than CPUs")):
        (found,) = alarms.evaluate(moment(delay_share=0.8, cpus_used=used, cpus_busy=4.0))
        assert (found.code, found.severity) == ("cpu_contention", "note") and words in found.text


def test_a_waiting_loop_is_a_note_first() -> None:
    assert names_after(*[moment(waits=0.15)] * LOOKS) == {"loop_waits": "note"}


def text_after(*moments: Moment) -> str:
    alarms = Alarms(LOOKS)
    return " ".join(alarm.text for alarm in [alarms.evaluate(moment) for moment in moments][-1])


@pytest.mark.parametrize("used", [None, 0.1, 1.0, 2.5, 4.0])
@pytest.mark.parametrize("utilisation", [0.0, 0.12, 0.35, 0.39])
def test_a_gpu_with_little_to_do_is_an_alarm_whatever_the_cpus_do(used: float | None, utilisation: float) -> None:
    idle = dataclasses.replace(GPU, utilisation=utilisation)
    assert names_after(*[moment((idle,), cpus_used=used, io_pressure=0.0)] * LOOKS) == {"gpu_idle": "alarm"}
    assert "cannot be seen from outside" in text_after(*[moment((idle,), cpus_used=1.0, io_pressure=0.0)] * LOOKS)


def test_a_gpu_above_the_limit_is_no_alarm() -> None:
    assert names_after(*[moment((dataclasses.replace(GPU, utilisation=0.41),))] * LOOKS) == {}


def test_what_an_idle_gpu_waits_for_is_told_from_the_loop() -> None:
    steady = dataclasses.replace(GPU, utilisation=0.35)
    assert "it waits for data" in text_after(*[moment((steady,), 0.5)] * LOOKS)
    in_time = text_after(*[moment((steady,), 0.01)] * LOOKS)
    assert "batches arrive in time" in in_time and "larger batches" in in_time and "waits for data" not in in_time
    stock = dataclasses.replace(moment((steady,)), loops=(LoopView(7, 0.6, (0.6,)),))
    assert "it waits for data" in text_after(*[stock] * LOOKS)


def test_a_gpu_with_a_full_memory_is_a_note_and_others_gpus_are_not_judged() -> None:
    full = dataclasses.replace(GPU, memory_used_bytes=9 * 10**9)
    assert names_after(*[moment((full,), 0.0)] * LOOKS) == {"gpu_idle": "note"}
    other = dataclasses.replace(GPU, pids=(1, 2), memory_used_bytes=98 * 10**8)
    assert names_after(*[moment((other,), 0.05)] * LOOKS) == {}, "another run's"
    assert "gpu_memory" in names_after(moment((dataclasses.replace(other, pids=(1, 7)),)))
    unused = dataclasses.replace(GPU, utilisation=0.0, memory_used_bytes=5 * 10**8)
    assert names_after(*[moment((unused,), 0.05)] * LOOKS) == {}, "no process is listed, and nothing runs"
    assert names_after(*[moment((dataclasses.replace(unused, pids=(7,)),), 0.05)] * LOOKS) == {"gpu_idle": "alarm"}


def test_a_waiting_stock_loop_is_an_alarm() -> None:
    def waits(share: float | None) -> Moment:
        return dataclasses.replace(moment(), loops=(LoopView(9, share, ()),))

    assert names_after(*[waits(0.5)] * LOOKS) == {"loop_waits": "alarm"}
    assert names_after(*[waits(0.12)] * LOOKS) == {"loop_waits": "note"}
    assert names_after(*[waits(0.05)] * LOOKS) == names_after(*[waits(None)] * LOOKS) == {}


def test_the_sawtooth() -> None:
    saw = [
        moment((dataclasses.replace(GPU, utilisation=u),)) for u in (0.95, 0.9, 0.0, 0.0, 0.97, 0.9, 0.1, 0.0, 0.9, 0.9)
    ]
    assert names_after(*saw) == {"gpu_sawtooth": "alarm"}
    assert turns([0.9, 0.5, 0.9, 0.4, None, 0.8]) == 0
    assert turns([0.9, 0.5, 0.1, 0.5, 0.9]) == 2


# -- the screen


WIDE_TEXT = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=150)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(LOADERS, LOADERS, st.floats(0.1, 10), st.floats(0, 1e6)), max_size=5),
    st.integers(20, 220),
    st.integers(1, 60),
    st.integers(-10, 10),
    WIDE_TEXT,
    st.integers(0, 3),
    st.booleans(),
)
def test_every_line_fits(
    pairs: list[Any], width: int, height: int, selected: int, text: str, many: int, ended: bool
) -> None:
    found = view(
        tuple(
            loader_view(after, pid=i, rates=rates.between(before, after, over_s), idle_s=idle_s, waits=(0.5,) * 90)
            for i, (before, after, over_s, idle_s) in enumerate(pairs)
        ),
        process=identity(command=text),
        alarms=tuple(Finding("a", "critical", evidence=(text,)) for _ in range(many)),
        notes=(text,) * many,
        others=(identity(command=text),) * many,
        gpus=(dataclasses.replace(GPU, power_w=300.0, temperature_c=60),) * many,
        ended=ended,
    )
    for limit in (None, height):
        lines = texts(found, width, limit, selected)
        assert all(cell_len(line) <= width for line in lines)
        assert limit is None or len(lines) <= limit
        assert not any("\n" in line for line in lines)


def test_80_by_24_holds_a_run_with_one_loader_and_two_gpus() -> None:
    totals = loader(threads=2, epoch=1, batches_per_epoch=32, stages=dict.fromkeys(("storage", "decode"), stage()))
    found = view((loader_view(totals),), gpus=(GPU, dataclasses.replace(GPU, index=1)))
    whole, fitted = texts(found, 80), texts(found, 80, 23)
    assert [line for line in whole if line] == [line for line in fitted if line]
    assert not any(line.endswith("…") for line in fitted)


def test_what_is_cut_is_what_matters_least() -> None:
    loaders = tuple(loader_view(loader(number=i, stages={"decode": stage()})) for i in range(40))
    found = view(
        loaders, alarms=(Finding("swap", "critical", evidence=("it swaps",)),), others=(identity(),), notes=("a note",)
    )
    lines = texts(found, 80, 18, 33)
    assert len(lines) == 18
    assert any("it swaps" in line for line in lines)
    assert any(line.startswith(">") and "loader 33 " in line for line in lines)
    assert any(line.startswith("loader  pid 7, loader 33") for line in lines)
    assert not any("a note" in line or line.startswith("others") for line in lines)


def test_amounts_are_short_and_true() -> None:
    assert [amounts.size(n) for n in (None, 0, 999, 1000, 12_345_678, 999_960, 5e15)] == [
        *("-", "0 B", "999 B", "1.0 kB", "12.3 MB", "1.0 MB", "5000 TB")
    ]
    assert [amounts.rate(n) for n in (None, 0, 0.017, 9.994, 12.34, 1234.5)] == [
        "-",
        "0",
        "0.02",
        "9.99",
        "12.3",
        "1,234",
    ]
    assert [amounts.milliseconds(n) for n in (None, 0.002, 3.14, 250.0)] == ["-", "2 us", "3.1 ms", "250 ms"]
    assert amounts.clock(3 * 86400 + 7322) == "3 d 02:02" and amounts.clock(59) == "00:00:59"
    assert amounts.bar(0.5, 4) == "██··" and amounts.bar(None, 2) == "··" and len(amounts.bar(0.33, 9)) == 9
    assert amounts.bar(2.0, 3) == "███" and amounts.sparkline([0, 0.5, 1]) == "▁▅█"
    assert amounts.tail("/data/imagenet/train", 10) == "…net/train" and amounts.tail("a", 0) == ""


# -- the machine


def test_disks_by_their_counters(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    for name in ("sda", "loop0"):
        (tmp_path / "sys/block" / name).mkdir(parents=True)

    def write(busy_ms: int) -> None:
        line = f"  8  0 %s 1 0 8 1 0 0 0 0 0 {busy_ms} {3 * busy_ms}\n"
        (tmp_path / "proc/diskstats").write_text("".join(line % name for name in ("sda", "sda1", "loop0")) + "cut 1\n")

    write(0)
    disks = DiskWatch(tmp_path)
    disks._time_s -= 10.0
    write(4000)
    (found,) = disks.look()
    assert found.name == "sda" and found.busy_share == pytest.approx(0.4, rel=0.01)
    assert found.in_flight == pytest.approx(1.2, rel=0.01)


@pytest.mark.parametrize("version", [1, 2])
def test_memory_of_the_tightest_cgroup(tmp_path: Path, version: int) -> None:
    top, limit, used = {
        1: ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        2: ("sys/fs/cgroup", "memory.max", "memory.current"),
    }[version]
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(
        "5:memory,hugetlb:/jobs/mine\n3:cpu:/x\n" if version == 1 else "0::/jobs/mine\n"
    )
    (tmp_path / "proc/7/smaps_rollup").write_text("Rss: 900 kB\nPss:  500 kB\nPss_Dirty: 9 kB\nSwapPss: 3 kB\n")
    for folder, most, now in (("", "max", 9000), ("jobs", "8000", 5000), ("jobs/mine", "6000", 4000)):
        (tmp_path / top / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / top / folder / limit).write_text(f"{most if most != 'max' or version == 2 else 2**63 - 4096}\n")
        (tmp_path / top / folder / used).write_text(f"{now}\n")
        (tmp_path / top / folder / "memory.stat").write_text("anon 1\ninactive_file 1000\n")
    found = memory.MemoryWatch(7, tmp_path).look([7, 8])
    assert (found.limit_bytes, found.used_bytes) == (6000, 3000), "page cache gives way"
    assert (found.pss_bytes, found.swapped_bytes, found.notes) == (500 << 10, 3 << 10, ())


def test_a_process_is_distinguished_from_a_later_one_of_its_number(tmp_path: Path) -> None:
    def write(start: int, state: str = "S") -> None:
        (tmp_path / "proc/7").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/7/stat").write_text(f"7 (a) b (c) {state} 3 " + "0 " * 17 + f"{start} 0 0\n")
        (tmp_path / "proc/7/cmdline").write_bytes(b"/usr/bin/python3\0train.py\0--name\0\x1b[2J\xff\0")

    write(500)
    found = processes.identify(7, tmp_path)
    assert (found.parent, found.began_ticks, found.command) == (3, 500, "python3 train.py --name ?[2J\ufffd")
    assert found.alive(tmp_path)
    write(501)
    assert not found.alive(tmp_path)
    write(500, "Z")
    assert not found.alive(tmp_path)
    with pytest.raises(feedline.ConfigError, match="process 8 does not exist"):
        processes.identify(8, tmp_path)


class MadeReader:
    unavailable = ""

    def sample(self, now_ns: int) -> list[dict[str, Any]]:
        known = {"utilisation": 0.5, "memory_used_bytes": 5, "slowed": True, "power_w": 9.0, "temperature_c": 30}
        return [
            {"index": 1, "time_ns": now_ns, "clock_mhz": 3, "received_bytes_per_s": None, "sent_bytes_per_s": 1.0}
            | known
        ]

    def gpus(self) -> list[dict[str, Any]]:
        return [{"index": 0, "name": "other"}, {"index": 1, "name": "mine", "memory_bytes": 10}]

    def processes(self) -> list[dict[str, Any]]:
        return [{"index": 0, "pid": 1}, {"index": 1, "pid": 7}]


def test_gpus_as_the_engine_reads_them() -> None:
    expected = gpu.Reading(1, "mine", 0.5, 5, 10, None, 1.0, 9.0, 30, True, (7,))
    assert gpu.EngineGpus(MadeReader()).read() == (expected,)
    reader = gpu.of_engine()
    if not reader.read():
        assert reader.unavailable


# -- a run


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Child processes of this process, which only sleep."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    yield started
    for child in started:
        child.kill()
        child.wait()


def test_a_loader_is_shown_with_its_rates_between_two_short_epochs() -> None:
    """Its process responds, but has no iterator at that moment. A closed `Loader` is not shown, because it has no next
    epoch.
    """
    own, find = os.getpid(), Publishing()
    watching = watch.Watch(processes.identify(own), 0.1, NoGpus(), find=find)
    for at, batches in enumerate((10, 20)):
        find.put(process(own, float(at), of_epoch(0, batches, 0.1, 32 * batches)))
        watching.look()
    find.put(process(own, 2.0))
    seen = watching.look()
    (paused,) = seen.loaders
    assert paused.rates is not None and paused.rates.batches_per_s == pytest.approx(10.0) and paused.silent_s == 0
    assert not any("respond" in note for note in seen.notes)
    watching.close()


def test_loaders_of_the_tree_are_followed(children: list[subprocess.Popen[bytes]]) -> None:
    find = Publishing()
    first, second, _ = (child.pid for child in children)
    watching = watch.Watch(processes.identify(os.getpid()), 0.1, NoGpus(), find=find)
    find.put(
        process(first, 10.0, loader(batches=5), rank=1),
        process(second, 3.0, loader(batches=1), rank=0),
        process(1, 1.0, loader()),
    )
    seen = watching.look()
    assert [(each.rank, each.rates) for each in seen.loaders] == [(0, None), (1, None)], "sorted; first looks"
    assert [other.pid for other in seen.others] == [1]
    find.put(process(first, 12.0, loader(batches=9), rank=1), unanswered=(second,))
    seen = watching.look()
    assert [each.rates and each.rates.batches_per_s for each in seen.loaders] == [None, 2.0]
    assert seen.loaders[0].silent_s > 0 and f"process {second} does not respond" in seen.notes[0]
    find.put(process(first, 13.0, rank=1))
    assert watching.look().loaders == (), "closed, and ended"
    assert json.dumps(seen.as_dict())
    watching.close()


def test_what_was_seen_last_stays_when_the_process_has_ended(children: list[subprocess.Popen[bytes]]) -> None:
    find, child = Publishing(), children[0]
    watching = watch.Watch(processes.identify(child.pid), 0.1, NoGpus(), find=find)
    find.put(process(child.pid, 1.0, loader(batches=5)))
    before = watching.look()
    assert not before.ended and before.loaders
    find.put()
    assert watching.look().loaders == (), "closed, right before the end"
    child.kill()
    child.wait()
    after = watching.look()
    assert after.ended and after.loaders == before.loaders and after.notes == after.alarms == ()
    assert watching.look() is not None
    watching.close()


def test_the_newest_run_is_taken_and_ranks_are_one_run(children: list[subprocess.Popen[bytes]]) -> None:
    find = Publishing()
    pids = [child.pid for child in children]
    find.put(*(process(pid, 1.0, loader()) for pid in [os.getpid(), *pids]))
    assert watch.choose(None, find).process.pid in pids, "this process began before them"
    find.put(*(process(pid, 1.0, loader(), rank=i) for i, pid in enumerate(pids)))
    assert watch.choose(None, find).process.pid == os.getpid(), "what launched the ranks"
    find.put(process(os.getpid(), 1.0, loader()), *(process(pid, 1.0) for pid in pids))
    assert watch.choose(None, find).process.pid == os.getpid(), "the others have no loader"
    assert watch.choose(pids[1], find).process.pid == pids[1]


def test_the_hosts_side_agrees_with_what_a_process_does() -> None:
    script = "held = b'x' * 50_000_000\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None and child.stdout.readline()
            machine = host.HostWatch(child.pid, 0.1)
            usage = 0.0
            deadline = time.monotonic() + HANG_S
            while usage < 0.01 and time.monotonic() < deadline:  # a busy machine gives it little
                time.sleep(0.2)
                seen = machine.look()
                usage = seen.cpus_used or 0.0
            assert 0.01 <= usage <= 1.5 and seen.pids == (child.pid,) and seen.threads == 1
            assert seen.cpus_usable <= (os.cpu_count() or 1)
            settled = memory.MemoryWatch(child.pid).look([child.pid])
            assert 50_000_000 < (settled.pss_bytes or 0) < 150_000_000
            machine.close()
        finally:
            child.kill()


def test_the_second_look_has_rates_even_if_it_follows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, the sampler's second sample is late; this is simulated here."""
    monkeypatch.setattr(host, "_SLOWEST_START_S", 60.0)
    machine = host.HostWatch(os.getpid(), 1.0)
    assert machine.look().cpus_busy is None
    assert machine.look().cpus_busy is not None
    machine.close()


def test_once_waits_for_rates_that_are_late_but_not_for_ever(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The sampler rests after an expensive first sample."""
    command = importlib.import_module("feedline.cli.commands.top")

    class Late:
        def __init__(self, *cpus: float | None) -> None:
            self.views = [view(host=dataclasses.replace(HOST, cpus_used=one)) for one in cpus]

        def look(self) -> Any:
            return self.views.pop(0) if len(self.views) > 1 else self.views[0]

    assert command._print_once(Late(None, None, None, 1.5), 0.0, True) == 0
    assert json.loads(capsys.readouterr().out)["host"]["cpus_used"] == 1.5
    monkeypatch.setattr(command, "_LONGEST_S", 0.01)
    assert command._print_once(Late(None), 0.0, True) == 0
    assert json.loads(capsys.readouterr().out)["host"]["cpus_used"] is None


def test_the_sampler_is_changed_for_a_fresh_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_RESTART_S", 0.0)
    machine = host.HostWatch(os.getpid(), 0.1)
    seen = []
    for _ in range(5):
        time.sleep(random.uniform(0.05, 0.15))
        seen.append(machine.look())
    machine.close()
    assert all(each.pids for each in seen) and any(each.cpus_busy is not None for each in seen)
