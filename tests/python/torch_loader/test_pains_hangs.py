# SPDX-License-Identifier: Apache-2.0
"""Known problems of torch's DataLoader: hangs, dying processes, and resources that are left over."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
import time
import types
import warnings

import pytest
from loader_datasets import Dying, Hanging, Numbers, flatten
from loader_processes import HANG_S, alive, run_script, script_command, until

import feedline
from feedline import DataLoader
from feedline.torch_loader.workers import process_workers as group
from feedline.torch_loader.workers import watchdog


@pytest.fixture
def no_grace(monkeypatch):
    """Workers are ended immediately during a sample: samples in these tests never end."""
    monkeypatch.setattr(group, "JOIN_S", 0.1)


def until_hanging(iterator):
    """Worker 0 has begun the sample that never ends."""
    until(lambda: iterator._worker_group.sample(0) == 9)


def test_a_hanging_sample_is_named_with_its_stack(no_grace):
    """Pain 5: a warning, then StalledError, instead of waiting for ever."""
    loader = DataLoader(Hanging(), batch_size=4, num_workers=2, stall_timeout=HANG_S)
    iterator = iter(loader)
    next(iterator), next(iterator)
    until_hanging(iterator)
    loader.stall_timeout = 1.0
    with (
        pytest.warns(UserWarning, match=r"(?s)no progress for .*last index 9"),
        pytest.raises(
            feedline.StalledError,
            match=r"(?s)Worker 0 \(pid \d+\): last seen reading a sample, last index 9.*__getitem__",
        ),
    ):
        next(iterator)


def test_a_slow_worker_is_not_called_hanging(monkeypatch):
    """Pain 5: progress means a started sample, not a delivered batch."""
    clock = types.SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(watchdog, "time", clock)
    busy = types.SimpleNamespace(
        workers=[types.SimpleNamespace(pid=7)],
        progress=lambda worker: int(clock.now),
        activity=lambda worker: "last seen reading a sample",
        stack=lambda worker: "",
    )
    watching = watchdog.Watchdog(busy, [0], 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for clock.now in range(100):
            watching.step()
    busy.progress = lambda worker: 99
    with pytest.warns(UserWarning, match=r"no progress for 2\.0 s"):
        clock.now = 101
        watching.step()
    clock.now = 109
    with pytest.raises(feedline.StalledError, match=r"no progress for 10\.0 s"):
        watching.step()


class _Locked(Numbers):
    lock = threading.Lock()

    def __getitem__(self, index):
        with self.lock:
            return index


def test_a_fork_while_a_thread_holds_a_lock_is_named_too(no_grace):
    """Pain 5, 27: the most frequent cause of silent hangs."""
    loader = DataLoader(_Locked(), num_workers=1, multiprocessing_context="fork", stall_timeout=HANG_S)
    words = r"(?s)last seen reading a sample.*in __getitem__"
    with _Locked.lock:
        iterator = iter(loader)
        until(lambda: iterator._worker_group.sample(0) == 0)
        loader.stall_timeout = 1.0
        with (
            pytest.warns(UserWarning, match="no progress"),
            pytest.raises(feedline.StalledError, match=words),
        ):
            next(iterator)


def test_after_a_timeout_no_worker_stays(no_grace):
    """Pain 6."""
    iterator = iter(DataLoader(Hanging(), batch_size=4, num_workers=2, timeout=HANG_S))
    next(iterator), next(iterator)
    until_hanging(iterator)
    workers, iterator._timeout = iterator._workers, 0.2  # torch also reads it for each batch
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(iterator)
    del iterator
    gc.collect()
    assert not any(worker.is_alive() for worker in workers)


def test_a_worker_that_ignores_sigterm_is_ended_too(no_grace):
    """Pain 6: processes are asked to end, then terminated, then killed."""
    iterator = iter(DataLoader(Hanging(), batch_size=4, num_workers=2, worker_init_fn=_ignore_sigterm))
    until_hanging(iterator)
    hanging, other = iterator._workers
    del iterator
    assert hanging.exitcode == -signal.SIGKILL
    assert other.exitcode in (0, -signal.SIGKILL)  # it ends by itself, unless it gets no CPU time


def _ignore_sigterm(worker):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def test_a_killed_worker_reports_everything_that_is_known(tmp_path):
    """Pain 7."""
    loader = DataLoader(Dying(tmp_path / "died"), batch_size=4, num_workers=2)
    with pytest.raises(
        RuntimeError,
        match=r"DataLoader worker \(pid \d+\) is killed by signal: Killed\. Worker 0, .*last index 9, resident memory "
        r"\d[\d,]+ bytes; .*oom_kill",
    ) as caught:
        list(loader)
    assert caught.value.sample_index == 9
    assert caught.value.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_killed_worker_is_replaced_and_its_task_redone(tmp_path, on_error):
    """Pain 7: with on_error set, no batch is lost when a worker dies."""
    loader = DataLoader(Dying(tmp_path / "died"), batch_size=4, num_workers=2, on_error=on_error)
    assert [int(b[i, 0]) for b in loader for i in range(4)] == list(range(40))


def test_a_task_that_kills_every_worker_ends_in_an_error(tmp_path):
    loader = DataLoader(Dying(tmp_path / "died", always=True), batch_size=4, num_workers=2, on_error="replace")
    with pytest.raises(RuntimeError, match="is killed by signal"):
        list(loader)


def test_ctrl_c_prints_one_traceback_and_leaves_no_child():
    """Pain 28."""
    command, environment = script_command("""
        import threading
        from loader_datasets import Hanging
        from loader_processes import until
        from feedline import DataLoader
        from feedline.torch_loader.workers import process_workers as group
        group._JOIN_S = 0.1
        iterator = iter(DataLoader(Hanging(), batch_size=1, num_workers=3, persistent_workers=True))
        for _ in range(5): next(iterator)

        def tell():
            until(lambda: iterator._worker_group.sample(0) == 9)
            print(*[w.pid for w in iterator._workers], flush=True)
        threading.Thread(target=tell).start()
        list(iterator)
    """)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    workers = [int(word) for word in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert errors.count("Traceback (most recent call last)") == 1, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    until(lambda: not any(alive(pid) for pid in workers))


def test_workers_do_not_outlive_a_killed_loader():
    """Pain 28: also during a sample."""
    script = """
        import os
        from loader_datasets import Hanging
        from loader_processes import until
        from feedline import DataLoader
        iterator = iter(DataLoader(Hanging(10), batch_size=10, num_workers=1))
        until(lambda: iterator._worker_group.sample(0) == 9)
        print(iterator._workers[0].pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    worker = int(run_script(script).stdout)
    until(lambda: not alive(worker))


@pytest.mark.parametrize("persistent", [False, True])
def test_dropping_the_last_reference_ends_the_workers_at_once(persistent):
    """No garbage collection is needed: loader and iterator do not refer to each other."""
    loader = DataLoader(Numbers(), num_workers=1, persistent_workers=persistent)
    iterator = iter(loader)
    workers = iterator._workers
    gc.disable()
    try:
        del loader
        assert next(iterator).tolist() == [0]
        del iterator
        assert not workers[0].is_alive()
        assert workers[0].exitcode == 0
    finally:
        gc.enable()


def test_a_loader_in_a_thread_that_ends_keeps_its_workers():
    """PDEATHSIG is sent when the forking thread ends, so it must not be set there."""
    loader = DataLoader(Numbers(), batch_size=4, num_workers=1, persistent_workers=True)
    first = []
    thread = threading.Thread(target=lambda: first.extend(flatten(loader)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert first == flatten(loader) == list(range(40))
