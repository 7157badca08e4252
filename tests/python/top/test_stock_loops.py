# SPDX-License-Identifier: Apache-2.0
"""``feedline top`` on runs with torch's own DataLoader: found without a PID, one row per process, their loop's wait."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import platform
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_views import HOST, NoGpus, Publishing, loader, loader_view, process, texts, view
from running_processes import HANG_S, until

import feedline
from feedline.machine import host, processes, training
from feedline.machine.host import ProcessFigures
from feedline.top import stock_loops, watch
from feedline.top.stock_loops import LoopView, StockLoops, is_waiting

CALLS = {"x86_64": (b"7", b"202", b"271"), "aarch64": (b"73", b"98", b"73")}.get(platform.machine())
knows_calls = pytest.mark.skipif(CALLS is None, reason="system calls of this processor are not known")

# -- finding runs, with a generated /proc

TORCH = "7f00-7f01 r-xp 0 fe:00 5 /venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so\n"


class Proc:
    """A generated /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc/sys").mkdir(parents=True)

    def add(self, pid: int, parent: int, command: str, maps: str | None = TORCH, began: int = 100) -> None:
        folder = self.root / f"proc/{pid}"
        folder.mkdir()
        name = command.split()[0][:15]
        (folder / "comm").write_text(name + "\n")
        (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} " + "0 " * 17 + f"{began} 0 0\n")
        if maps is not None:
            (folder / "maps").write_text(maps)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def pids_of(runs: training.Runs) -> list[int]:
    return [run.pid for run in runs.found]


def test_training_runs_are_found_by_torch_and_by_the_gpu(proc: Proc) -> None:
    proc.add(10, 1, "bash", "")
    proc.add(20, 10, "python train.py", began=500)
    for worker in (21, 22):
        proc.add(worker, 20, "python train.py", began=600)
    proc.add(30, 10, "python serve.py", began=900)
    proc.add(40, 10, "python -m http.server", "/usr/lib/libc.so.6\n", began=950)
    proc.add(50, 10, "trainer --fast", "", began=50)
    assert pids_of(training.find_runs(root=proc.root)) == [20, 30], "those with workers first"
    assert pids_of(training.find_runs((50,), proc.root)) == [50, 20, 30], "those on a GPU before them"
    assert pids_of(training.find_runs((22,), proc.root)) == [20, 30], "a rank's launcher is the run"


def test_processes_that_end_or_are_hidden_meanwhile_are_skipped(proc: Proc) -> None:
    proc.add(20, 1, "python train.py", None)
    (proc.root / "proc/21").mkdir()
    (proc.root / "proc/22").mkdir()
    (proc.root / "proc/22/stat").write_text("no stat")
    assert training.find_runs(root=proc.root) == training.Runs()
    found = training.find_runs(root=proc.root / "nothing")
    assert found.found == () and "/proc cannot be read" in found.notes[0]


def test_what_may_not_be_examined_is_told(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(20, 1, "python train.py")
    original = open

    def refused(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).endswith("/maps"):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", refused)
    (note,) = training.find_runs(root=proc.root).notes
    assert note.startswith("1 Python processes of other users may not be examined")
    with pytest.raises(feedline.ConfigError, match=r"no process on this machine has a Feedline loader.*may not be"):
        watch.choose(None, Publishing(), proc.root)


def test_without_a_pid_a_stock_run_is_watched_and_others_are_listed(proc: Proc) -> None:
    proc.add(20, 1, "python train.py", began=500)
    proc.add(30, 1, "python other.py", began=900)
    chosen = watch.choose(None, Publishing(), proc.root, gpu_pids=(20,))
    assert (chosen.process.pid, [one.pid for one in chosen.others]) == (20, [30])
    assert watch.choose(30, Publishing(), proc.root) == watch.Choice(chosen.others[0])


def test_the_loops_of_a_run_are_its_processes_with_workers(proc: Proc) -> None:
    proc.add(1, 0, "torchrun train.py")
    for rank in (10, 20):
        proc.add(rank, 1, f"python train.py --rank {rank}")
        proc.add(rank + 1, rank, f"python train.py --rank {rank}")
        proc.add(rank + 2, rank, f"python train.py --rank {rank}")
    proc.add(30, 1, "python alone.py")
    proc.add(40, 1, "python spawned.py")
    proc.add(41, 40, "python -c from multiprocessing.spawn import spawn_main")
    proc.add(50, 1, "python forked_by_server.py")
    proc.add(51, 50, "python -c from multiprocessing.forkserver import main")
    proc.add(52, 51, "python -c from multiprocessing.forkserver import main")
    proc.add(60, 1, "python tracked.py")
    proc.add(61, 60, "python -c from multiprocessing.resource_tracker import main")
    tree = [int(path.name) for path in (proc.root / "proc").iterdir() if path.name.isdigit()]
    assert training.loop_processes(tree, proc.root) == (10, 20, 40, 50)


# -- the wait of a loop


@knows_calls
@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (b"7 0x7f41d63a4760 0x1 0x1388 0x1 0x0 0x0 0x7fffdc38b2d8 0x7f41d651a230\n", platform.machine() == "x86_64"),
        (b"202 0x55de70fb5be0 0x89 0x0 0x7ffd0c8556b0 0x0 0xffffffff 0x1 0x2\n", platform.machine() == "x86_64"),
        (b"7 0x7f41d63a4760 0x3 0x1388 0x1 0x0 0x0 0x1 0x2\n", False),
        (b"7 0x7f41d63a4760 0x1 0xffffffff 0x1 0x0 0x0 0x1 0x2\n", False),
        (b"202 0x55de70fb5be0 0x89 0x0 0x0 0x0 0xffffffff 0x1 0x2\n", False),
        (b"202 0x55de70fb5be0 0x80 0x0 0x7ffd0c8556b0 0x0 0x0 0x1 0x2\n", False),
        (b"230 0x0 0x0 0x7ffd0c8556b0 0x0 0x0 0x0 0x1 0x2\n", False),
        (b"45 0x5 0x7ffd 0x10 0x0 0x0 0x0 0x1 0x2\n", platform.machine() == "x86_64"),
        (b"0 0x5 0x7ffd 0x10 0x0 0x0 0x0 0x1 0x2\n", False),
        (b"running\n", False),
        (b"-1 0x7ffd 0x7f41\n", False),
        (b"", False),
        (b"\xff\x00 nonsense", False),
    ],
)
def test_the_calls_in_which_torch_waits_for_a_batch(text: bytes, waits: bool) -> None:
    assert is_waiting(text) == waits


def _wait_like_torch(kind: str, ready: Any) -> None:
    """Like _MultiProcessingDataLoaderIter._try_get_data, with and without pin_memory, and while it receives a batch."""
    if kind == "receives":
        end, _other = os.pipe()
        ready.set()
        os.read(end, 1)
    source: Any = multiprocessing.Queue() if kind == "workers" else queue.Queue()
    ready.set()
    while kind != "computes":
        try:
            source.get(timeout=5.0)
        except queue.Empty:
            continue
    while True:
        pass


@pytest.fixture
def waiting(request: pytest.FixtureRequest) -> Iterator[int]:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    made = context.Process(target=_wait_like_torch, args=(request.param, ready))
    made.start()
    assert ready.wait(HANG_S)
    yield made.pid or 0
    made.kill()
    made.join()


@knows_calls
@pytest.mark.parametrize(
    ("waiting", "share"),
    [("workers", 1.0), ("pinned", 1.0), ("receives", 1.0), ("computes", 0.0)],
    indirect=["waiting"],
)
def test_the_share_of_a_real_process_is_sampled(waiting: int, share: float) -> None:
    loops = StockLoops(period_s=3600.0)  # samples only when the test requests it
    try:
        (first,) = loops.look([waiting])
        assert (first.wait_share, first.waits) == (None, ())

        def sampled() -> float | None:
            for _ in range(10):
                time.sleep(0.01)
                loops.sample()
            return loops.look([waiting])[0].wait_share

        until(lambda: sampled() == share, "the process to be where it stays")
        view = loops.look([waiting])[0]
        assert view.wait_share == share and view.missing == "", "without new samples, the latest remains"
    finally:
        loops.close()


def test_a_process_that_may_not_be_sampled_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_loops, "_POLL", 7)
    original = os.pread

    def refused(file: int, size: int, offset: int) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/syscall").write_text("running")
    monkeypatch.setattr(os, "pread", refused)
    loops = StockLoops(tmp_path)
    (view,) = loops.look([7])
    monkeypatch.setattr(os, "pread", original)
    loops.close()
    assert view.wait_share is None and "run top as root" in view.missing
    gone = StockLoops(tmp_path)
    (view,) = gone.look([8])
    gone.close()
    assert view.wait_share is None and "No such file" in view.missing


def test_a_process_that_ends_keeps_its_last_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_loops, "_POLL", 7)
    (tmp_path / "proc/7").mkdir(parents=True)
    call = tmp_path / "proc/7/syscall"
    call.write_text("7 0x1 0x1 0x1388 0x1 0x0 0x0 0x1 0x2")
    before = set(threading.enumerate())
    loops = StockLoops(tmp_path, period_s=3600.0)
    loops.look([7])
    for _ in range(8):
        loops.sample()
    call.write_text("running")
    for _ in range(2):
        loops.sample()
    assert loops.look([7])[0].wait_share == 0.8
    monkeypatch.setattr(os, "pread", lambda *_: (_ for _ in ()).throw(ProcessLookupError(3, "No such process")))
    loops.sample()
    assert loops.look([7]) == (LoopView(7, 0.8, (0.8,)),)
    assert loops.look([]) == ()
    loops.close()
    assert "feedline-top-loops" not in [thread.name for thread in set(threading.enumerate()) - before]


# -- the distribution of waits


def test_mean_and_percentiles_of_waits() -> None:
    assert watch.distribution(()) is None
    found = watch.distribution([i / 100 for i in range(100)])
    assert found == pytest.approx({"samples": 100, "mean": 0.495, "p50": 0.5, "p90": 0.9, "p99": 0.99})
    assert watch.distribution([0.25]) == {"samples": 1, "mean": 0.25, "p50": 0.25, "p90": 0.25, "p99": 0.25}


def test_waits_are_shown_and_in_json() -> None:
    waits = tuple([0.1] * 9 + [0.9])
    shown = loader_view(loader(wait_s=1.0), waits=waits, rates=None)
    looping = LoopView(12, 0.4, waits)
    seen = view((shown,), loops=(looping,))
    text = "\n".join(texts(seen, 160))
    assert text.count("mean 18%, p50 10%, p90 90%, p99 90% of 10 samples") == 2
    assert "pid 12 waits about 40% of its time for workers" in text
    found = seen.as_dict()
    assert found["loaders"][0]["wait"] == found["loops"][0]["wait"]
    assert found["loops"][0]["wait"]["mean"] == pytest.approx(0.18)
    assert "mean" not in "\n".join(texts(view((), loops=(LoopView(12, 0.4, waits[:4]),)), 160)), "too few samples"
    unseen = "\n".join(texts(view((), loops=(LoopView(12, None, ()),)), 160))
    assert "pid 12: its waits could not be sampled in this interval" in unseen and "waits about" not in unseen


# -- rows of processes


def rows(count: int) -> tuple[ProcessFigures, ...]:
    return tuple(ProcessFigures(100 + i, "R", 1.5, 2e6, 1e6, 10**8, 3) for i in range(count))


def test_a_row_per_process() -> None:
    seen = view(
        host=dataclasses.replace(HOST, pids=tuple(range(100, 150)), processes=rows(32)),
        commands={100: "python train.py"},
    )
    plain = texts(seen, 100)
    first = next(line for line in plain if line.startswith("100 "))
    assert first.split() == ["100", "R", "1.5", "2.0", "MB/s", "1.0", "MB/s", "100", "MB", "3", "python", "train.py"]
    assert sum(line.startswith("1") for line in plain) == 32 and "and 18 more" in plain
    low = texts(seen, 100, height=24)
    assert len(low) <= 24 and sum(line.startswith("1") for line in low) <= 8


def test_a_single_process_has_no_rows() -> None:
    assert not any("read/s" in line for line in texts(view(host=dataclasses.replace(HOST, processes=rows(1))), 100))


def test_the_rows_of_real_processes() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline()
    machine = host.HostWatch(os.getpid(), 0.1)
    try:
        assert all(row.cpus_used is None for row in machine.look().processes)

        def row() -> ProcessFigures | None:
            return next((one for one in machine.look().processes if one.pid == child.pid and one.cpus_used), None)

        until(lambda: row() is not None, "CPU time of the child")
        found = row() or pytest.fail("the child has a row")
        assert found.state == "R" and found.threads == 1 and found.resident_bytes > 10**6
        own = next(one for one in machine.look().processes if one.pid == os.getpid())
        assert own.state in "RS"
    finally:
        machine.close()
        child.kill()
        child.wait()
        child.stdout.close()


# -- the whole view


def test_a_view_of_a_stock_run() -> None:
    """This process, with children that have its command line, is a loop with workers; it publishes nothing."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    worker = context.Process(target=_wait_like_torch, args=("workers", ready))
    worker.start()
    assert ready.wait(HANG_S)
    other = processes.Identity(1, 0, 0, 0, "another")
    watching = watch.Watch(processes.identify(os.getpid()), 0.1, NoGpus(), find=Publishing(), others=(other,))
    try:
        until(lambda: watching.look().loops != (), "the loop to be found")
        seen = watching.look()
        assert [loop.pid for loop in seen.loops] == [os.getpid()]
        assert {row.pid for row in seen.host.processes} >= {os.getpid(), worker.pid}
        assert set(seen.commands) == {row.pid for row in seen.host.processes}
        assert any("waits are estimated" in note or "not judged" in note for note in seen.notes)
        find = Publishing()
        find.put(process(os.getpid(), 1.0, loader()))
        watching._find = find
        assert watching.look().loops == (), "its loader publishes its counters"
    finally:
        watching.close()
        worker.kill()
        worker.join()


def test_a_run_without_workers_says_that_its_wait_cannot_be_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        watching = watch.Watch(processes.identify(child.pid), 0.1, NoGpus(), find=Publishing())
        seen = watching.look()
        watching.close()
        child.kill()
    assert seen.loops == () and any("has no worker processes" in note for note in seen.notes)
