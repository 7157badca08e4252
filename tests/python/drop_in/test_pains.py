# SPDX-License-Identifier: Apache-2.0
"""What users of torch's DataLoader suffer from, one test per symptom. The list is in docs/drop-in.md."""

from __future__ import annotations

import collections
import errno
import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from drop_in_data import (
    Arguments,
    Augmented,
    BrokenGenerator,
    Dying,
    Epochs,
    Failing,
    Files,
    FlakyStream,
    Hanging,
    Large,
    Numbers,
    Scalars,
    Stream,
    Unpicklable,
    flatten,
)
from torch.utils.data import DistributedSampler, Subset, get_worker_info

import feedline
from feedline import DataLoader

HERE = Path(__file__).parent


def run_script(text, *arguments, timeout=120, **options):
    """A script in a process of its own, with this folder and this package importable."""
    environment = dict(os.environ)
    package = str(Path(feedline.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join([package, str(HERE), environment.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text), *arguments],
        env=environment, capture_output=True, text=True, timeout=timeout, check=False, **options,
    )  # fmt: skip


# -- memory, files, shared memory


def test_dev_shm_too_small_for_a_batch():
    """Pain 2, 4: nothing of a batch is in /dev/shm, in any start method."""
    loader = DataLoader(Large(), batch_size=8, num_workers=2)
    seen = []
    for batch in loader:
        seen.append(sum(entry.stat().st_size for entry in os.scandir("/dev/shm") if entry.name.startswith("torch")))
        assert batch.shape == (8, 50_000)
    assert max(seen) == 0


def test_too_little_memory_is_an_error_with_numbers(monkeypatch):
    """Pain 2: StorageError in place of a bus error."""
    from feedline.drop_in import limits

    monkeypatch.setattr(limits, "memory_left", lambda: 1_000_000)
    loader = DataLoader(Large(8), batch_size=8, num_workers=1, memory_budget=1 << 30)
    with pytest.raises(feedline.StorageError, match=r"needs 1,60\d,\d\d\d bytes more .* and 1,000,000 bytes are left"):
        next(iter(loader))


def test_too_many_open_files_when_batches_are_kept():
    """Pain 3: keeping batches costs no file descriptor."""
    counts = []
    kept = []
    for batch in DataLoader(Large(60, 20_000), batch_size=1, num_workers=2):
        kept.append(batch)
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[4]  # by then every worker's region is mapped
    assert [int(batch[0, 0]) for batch in kept] == list(range(60))


def test_keeping_every_batch_of_an_epoch_works_and_the_memory_returns():
    """What the user keeps is the user's: the budget does not count it, nothing waits, and all of it comes back."""
    loader = DataLoader(
        Large(100, 250_000), batch_size=2, num_workers=2, memory_budget=8_000_000, persistent_workers=True
    )
    batches = list(loader)  # 100 MB
    assert [int(b[i, 0]) for b in batches for i in range(2)] == list(range(100))
    assert all(bool((b[0] == b[0, 0]).all()) for b in batches)
    ring = loader._iterator._crew.ring
    kept = os.fstat(ring.fd).st_blocks * 512
    del batches
    gc.collect()
    left = os.fstat(ring.fd).st_blocks * 512
    assert kept > 100_000_000
    assert left < 40_000_000  # what both workers keep warm for the next epoch
    assert loader.stats()["bytes_held"] == 0
    assert len(list(loader)) == 50


def test_one_kept_tensor_of_a_finished_loader_does_not_hold_the_rest():
    loader = DataLoader(Large(20, 250_000), batch_size=2, num_workers=1)
    iterator = iter(loader)
    kept = next(iterator)
    fd = os.dup(iterator._crew.ring.fd)
    collections.deque(iterator, maxlen=0)
    del iterator
    gc.collect()
    assert os.fstat(fd).st_blocks * 512 < 3_000_000  # one batch of 2 MB
    assert bool((kept[1] == 1).all())
    del kept
    gc.collect()
    assert os.fstat(fd).st_blocks * 512 < 100_000
    os.close(fd)


def test_memory_budget_holds_whatever_prefetch_factor_says():
    """Pain 2, 26: bytes, not batches, bound what waits."""
    loader = DataLoader(Large(60, 250_000), batch_size=1, num_workers=1, prefetch_factor=40, memory_budget=4_000_000)
    iterator = iter(loader)
    next(iterator)
    time.sleep(1.0)
    assert os.fstat(iterator._crew.ring.fd).st_blocks * 512 < 7_000_000  # four waiting, one or two here
    assert len(list(iterator)) == 59


def test_resident_memory_does_not_grow_over_an_epoch():
    """Pain 1: the transport keeps nothing. (For lists in data sets see docs/known-differences.md.)"""
    loader = DataLoader(Large(400, 50_000), batch_size=2, num_workers=2, persistent_workers=True)
    pages = []
    for _ in range(3):
        collections.deque(loader, maxlen=0)
        pages.append(os.fstat(loader._iterator._crew.ring.fd).st_blocks)
    assert pages[2] <= pages[1] * 1.1


def test_kill_9_of_everything_leaves_nothing(tmp_path):
    """Pain 4: the kernel frees the ring when the last process is gone."""
    script = """
        import os, sys
        from drop_in_data import Large
        from feedline import DataLoader
        iterator = iter(DataLoader(Large(), batch_size=4, num_workers=2))
        next(iterator)
        print(*[w.pid for w in iterator._workers], flush=True)
        os.kill(os.getpid(), 9)
    """
    done = run_script(script)
    workers = [int(word) for word in done.stdout.split()]
    assert len(workers) == 2
    _until(lambda: not any(_alive(pid) for pid in workers))
    assert not [name for name in os.listdir("/dev/shm") if any(str(pid) in name for pid in workers)]


# -- hangs and deaths


def test_a_hanging_sample_is_named_with_its_stack():
    """Pain 5: warning, then StalledError, in place of waiting for ever."""
    loader = DataLoader(Hanging(), batch_size=4, num_workers=2, stall_timeout=1.5)
    with (
        pytest.warns(UserWarning, match=r"(?s)no progress for .*last index 9"),
        pytest.raises(
            feedline.StalledError,
            match=r"(?s)Worker 0 \(pid \d+\): last seen reading a sample, last index 9.*__getitem__",
        ),
    ):
        list(loader)


class _Locked(Numbers):
    lock = threading.Lock()

    def __getitem__(self, index):
        with self.lock:
            return index


def test_a_fork_while_a_thread_holds_a_lock_is_named_too():
    """Pain 5: the most frequent cause of the silent hang."""
    loader = DataLoader(_Locked(), num_workers=1, multiprocessing_context="fork", stall_timeout=1)
    words = r"(?s)last seen reading a sample.*in __getitem__"
    with (
        _Locked.lock,
        pytest.warns(UserWarning, match="no progress"),
        pytest.raises(feedline.StalledError, match=words),
    ):
        list(loader)


def test_after_a_timeout_no_worker_stays():
    """Pain 6."""
    loader = DataLoader(Hanging(), batch_size=4, num_workers=2, timeout=0.5)
    iterator = iter(loader)
    workers = iterator._workers
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        list(iterator)
    began = time.monotonic()
    del iterator
    gc.collect()
    assert time.monotonic() - began < 9
    assert not any(worker.is_alive() for worker in workers)


def test_a_killed_worker_says_everything_that_is_known(tmp_path):
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
    """Pain 7: with on_error set, a death costs no batch."""
    loader = DataLoader(Dying(tmp_path / "died"), batch_size=4, num_workers=2, on_error=on_error)
    assert [int(b[i, 0]) for b in loader for i in range(4)] == list(range(40))


def test_a_task_that_kills_every_worker_ends_in_an_error(tmp_path):
    loader = DataLoader(Dying(tmp_path / "died", always=True), batch_size=4, num_workers=2, on_error="replace")
    with pytest.raises(RuntimeError, match="is killed by signal"):
        list(loader)


def test_ctrl_c_prints_one_traceback_and_leaves_no_child():
    """Pain 28."""
    script = """
        import os, sys, time
        from drop_in_data import Hanging
        from feedline import DataLoader
        iterator = iter(DataLoader(Hanging(), batch_size=1, num_workers=3, persistent_workers=True))
        for _ in range(5): next(iterator)
        print(*[w.pid for w in iterator._workers], flush=True)
        list(iterator)
    """
    environment = dict(os.environ)
    package = str(Path(feedline.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join([package, str(HERE)])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    workers = [int(word) for word in process.stdout.readline().split()]
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert errors.count("Traceback (most recent call last)") == 1, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    _until(lambda: not any(_alive(pid) for pid in workers))


def test_workers_do_not_outlive_a_killed_loader():
    """Pain 28: also in the middle of a sample."""
    script = """
        import os
        from drop_in_data import Hanging
        from feedline import DataLoader
        iterator = iter(DataLoader(Hanging(10), batch_size=10, num_workers=1))
        print(iterator._workers[0].pid, flush=True)
        import time; time.sleep(0.5)
        os.kill(os.getpid(), 9)
    """
    worker = int(run_script(script).stdout)
    _until(lambda: not _alive(worker))


@pytest.mark.parametrize("persistent", [False, True])
def test_dropping_the_last_reference_ends_the_workers_at_once(persistent):
    """No collection of garbage is needed: loader and iterator do not hold each other."""
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


def test_a_nested_tensor_arrives():
    loader = DataLoader(Numbers(2), num_workers=1, collate_fn=_nested)
    assert [t.is_nested for t in loader] == [True, True]


def _nested(samples):
    return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


def test_a_loader_in_a_thread_that_ends_keeps_its_workers():
    """PDEATHSIG follows the thread that forked: it must not be set there."""
    loader = DataLoader(Numbers(), batch_size=4, num_workers=1, persistent_workers=True)
    first = []
    thread = threading.Thread(target=lambda: first.extend(flatten(loader)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert first == flatten(loader) == list(range(40))


# -- errors


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_with_its_own_arguments_keeps_its_type(num_workers):
    """Pain 8: no `TypeError: __init__() missing`, no RuntimeError in its place."""
    loader = DataLoader(Failing(8, {5}, Arguments("a.jpg", "truncated")), batch_size=4, num_workers=num_workers)
    with pytest.raises(Arguments) as caught:
        list(loader)
    assert (caught.value.path, caught.value.reason) == ("a.jpg", "truncated")


def test_an_error_names_worker_sample_and_file():
    """Pain 8."""
    loader = DataLoader(Subset(Files(8, {5}, ValueError("no image")), [7, 5]), batch_size=2, num_workers=1)
    with pytest.raises(
        ValueError, match=r"(?s)Caught ValueError in DataLoader worker process 0\.\nOriginal Trace.*5\.jpg"
    ) as e:
        list(loader)
    assert (e.value.worker_id, e.value.sample_index, e.value.sample_path) == (0, 1, "/data/5.jpg")
    assert "no image" in str(e.value.__cause__)


def test_an_os_error_keeps_errno_and_filename():
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "/data/5.jpg")
    with pytest.raises(FileNotFoundError, match="Caught FileNotFoundError in DataLoader worker process 0") as caught:
        list(DataLoader(Failing(8, {5}, error), num_workers=1))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "/data/5.jpg")


class _Local:
    def make(self):
        class LocalError(Exception):
            pass

        return LocalError("from nowhere")


def test_an_exception_that_cannot_be_pickled_still_arrives():
    """torch's loader hangs here, for the queue's thread cannot pickle it."""
    with pytest.raises(RuntimeError, match="Caught LocalError in DataLoader worker process 0"):
        list(DataLoader(Failing(8, {5}, _Local().make()), num_workers=1))


def _return_lock(batch):
    return threading.Lock()


def test_a_batch_that_cannot_be_handed_over_is_an_error():
    with pytest.raises(TypeError, match="Caught TypeError in DataLoader worker process 0"):
        next(iter(DataLoader(Numbers(), num_workers=1, collate_fn=_return_lock)))


class _Unequal(Numbers):
    def __getitem__(self, index):
        return {"image": torch.zeros(3, 4 if index == 6 else 5), "label": index}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_unequal_shapes_are_named_with_field_and_samples(num_workers):
    """Pain 30: not `Trying to resize storage that is not resizable`."""
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size") as caught:
        list(DataLoader(_Unequal(), batch_size=4, num_workers=num_workers))
    words = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "field ['image'] has the shapes [(3, 5), (3, 5), (3, 4), (3, 5)]" in words
    assert "[4, 5, 6, 7]" in words


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_one_broken_sample_does_not_end_the_run(num_workers):
    """Pain 29: batches stay full, and the same whatever the number of workers."""
    data = Failing(22, {1, 7, 8}, ValueError("broken"))
    loader = DataLoader(data, batch_size=4, num_workers=num_workers, on_error="skip")
    batches = [batch.tolist() for batch in loader]
    assert batches == [[0, 21, 2, 3], [4, 5, 6, 20], [19, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18]]
    assert [bad.record for bad in loader.errors] == [1, 7, 8]
    loader = DataLoader(data, batch_size=4, num_workers=num_workers, on_error="replace")
    assert [batch.tolist() for batch in loader][:3] == [[0, 2, 2, 3], [4, 5, 6, 9], [9, 9, 10, 11]]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_dropped_samples_refill_first(num_workers):
    data = Failing(22, {1, 7}, ValueError("broken"))
    loader = DataLoader(data, batch_size=4, num_workers=num_workers, on_error="skip", drop_last=True)
    assert [batch.tolist() for batch in loader][:2] == [[0, 21, 2, 3], [4, 5, 6, 20]]
    assert len(list(loader)) == 5


@pytest.mark.parametrize("num_workers", [0, 2])
def test_more_bad_samples_than_the_budget_end_the_run(num_workers):
    data = Failing(22, {1, 7, 8}, ValueError("broken"))
    loader = DataLoader(data, batch_size=4, num_workers=num_workers, on_error="skip", error_budget=2)
    with pytest.raises(feedline.Error, match="more than error_budget=2 bad samples"):
        list(loader)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_stream_goes_on_after_a_broken_item_but_a_broken_generator_never_ends_silently(num_workers):
    loader = DataLoader(FlakyStream(), batch_size=4, num_workers=num_workers, on_error="skip")
    assert flatten(loader) == [i for i in range(20) if i != 5]
    assert [len(batch) for batch in loader] == [4, 4, 4, 4, 3]
    with pytest.raises(ValueError, match="the generator broke"):
        list(DataLoader(BrokenGenerator(), batch_size=4, num_workers=num_workers, on_error="skip"))


def test_spawn_names_the_attribute_that_cannot_be_pickled():
    """Pain 27."""
    with pytest.warns(UserWarning, match="Got pickle error"), pytest.raises(Exception) as caught:
        list(DataLoader(Unpicklable(), num_workers=1, multiprocessing_context="spawn"))
    assert "dataset.callback" in "".join(caught.value.__notes__)


# -- workers, epochs, pinning


def test_pin_memory_without_an_accelerator_costs_nothing_and_warns_once():
    """Pain 12: no thread, no copy."""
    if torch.cuda.is_available():
        pytest.skip("there is an accelerator")
    threads = threading.active_count()
    loader = DataLoader(Large(), batch_size=4, num_workers=1, pin_memory=True)
    with pytest.warns(UserWarning, match="no accelerator is found") as warned:
        iterator = iter(loader)
    assert len(warned) == 1
    batch = next(iterator)
    assert threading.active_count() == threads
    assert loader.stats()["bytes_held"] >= batch.nbytes  # the batch lies in the ring still
    assert not hasattr(iterator, "_pin_memory_thread")


def test_device_argument_moves_every_tensor():
    """Pain 13."""
    batch = next(iter(DataLoader(Scalars(), batch_size=4, num_workers=1, device="meta")))
    assert all(value.device.type == "meta" for value in batch.values())


def test_workers_start_together_and_once():
    """Pain 9: persistent workers keep their pids; the forkserver's have torch imported before they begin."""
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    pids = []
    for _ in range(2):
        assert flatten(loader) == list(range(40))
        pids.append([worker.pid for worker in loader._iterator._workers])
    assert pids[0] == pids[1]


def test_the_first_batch_of_the_next_epoch_is_ready():
    """Pain 10: prefetch_epochs."""

    class Slow(Numbers):
        def __getitem__(self, index):
            time.sleep(0.05)
            return index

    loader = DataLoader(Slow(8), batch_size=2, num_workers=2, persistent_workers=True, prefetch_epochs=True)
    list(loader)
    time.sleep(0.5)
    began = time.monotonic()
    assert next(iter(loader)).tolist() == [0, 1]
    assert time.monotonic() - began < 0.05


def test_set_epoch_reaches_persistent_workers():
    """Pain 11."""
    data = Epochs()
    loader = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True)
    seen = []
    for epoch in (0, 3, 7):
        data.set_epoch(epoch)
        seen.append(set(flatten(loader)))
    assert seen == [{0}, {3}, {7}]
    loader.set_epoch(9)
    assert set(flatten(loader)) == {9}


def test_a_forgotten_set_epoch_of_the_sampler():
    """Pain 24: the order changes anyhow; a set_epoch of the user's stays the last word."""
    sampler = DistributedSampler(Numbers(), num_replicas=1, rank=0)
    loader = DataLoader(Numbers(), sampler=sampler)
    orders = [flatten(loader) for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    sampler.set_epoch(1)
    assert flatten(loader) == orders[1]


def test_workers_with_the_same_numpy_seed():
    """Pain 16."""
    batches = list(DataLoader(Augmented(), batch_size=4, num_workers=4))
    numbers = [float(x) for batch in batches for x in batch[2]]
    assert len(set(numbers)) == 40


def test_the_same_data_whatever_num_workers():
    """Pain 17: with a seed, also in a persistent worker's second epoch."""
    runs = []
    for workers, persistent in ((0, False), (1, True), (3, False), (3, True)):
        loader = DataLoader(
            Augmented(), batch_size=4, num_workers=workers, seed=7, shuffle=True, persistent_workers=persistent
        )
        runs.append([[[float(x) for x in field] for field in batch] for _ in range(2) for batch in loader])
    assert runs[0] == runs[1] == runs[2] == runs[3]
    assert runs[0][:10] != runs[0][10:]


def test_a_seed_leaves_the_users_generators_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    loader = DataLoader(Augmented(), batch_size=4, seed=7, shuffle=True)
    iterator = iter(loader)
    assert torch.equal(before[0], torch.get_rng_state())
    list(iterator)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()


def test_stragglers_do_not_stop_the_others():
    """Pain 15: in_order=False gives what is there."""

    class Straggler(Numbers):
        def __getitem__(self, index):
            time.sleep(1.0 if index == 0 else 0)
            return index

    batches = flatten(DataLoader(Straggler(12), num_workers=2, in_order=False))
    assert sorted(batches) == list(range(12))
    assert batches[0] != 0


def test_an_unsharded_stream_is_reported(caplog):
    """Pain 21."""
    with caplog.at_level(logging.WARNING, "feedline"):
        assert len(flatten(DataLoader(Stream(sharded=False), batch_size=4, num_workers=2))) == 80
    assert "seems not to be sharded" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "feedline"):
        assert sorted(flatten(DataLoader(Stream(), batch_size=4, num_workers=2))) == list(range(40))
    assert "sharded" not in caplog.text


def test_shuffling_a_hundred_million_samples_makes_no_list():
    """Pain 25: 8 bytes a sample, not 44."""
    script = """
        import resource
        from drop_in_data import Numbers
        from feedline import DataLoader
        from torch.utils.data import DataLoader as Torch
        import torch
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        generator = torch.Generator().manual_seed(0)
        it = iter(DataLoader(Numbers(10_000_000), batch_size=4, shuffle=True, generator=generator))
        first = next(it).tolist()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, *first)
    """
    grown, *first = map(int, run_script(script).stdout.split())
    assert grown < 150_000  # KiB; a list takes 440 MB
    order = torch.randperm(10_000_000, generator=_after_base_seed())
    assert first == order[:4].tolist()


def _after_base_seed():
    generator = torch.Generator().manual_seed(0)
    torch.empty((), dtype=torch.int64).random_(generator=generator)
    return generator


def test_num_workers_auto():
    """Pain 26."""
    assert DataLoader(Numbers(), num_workers="auto").num_workers >= 1
    assert DataLoader(list(range(5)), num_workers="auto").num_workers == 0
    assert DataLoader(list(range(5)), num_workers="auto", persistent_workers=True).persistent_workers is False


class _Batched(Numbers):
    def __getitems__(self, indices):
        return list(indices)


class _Overridden(_Batched):
    def __getitem__(self, index):
        return -index


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_subclass_with_its_own_getitem(num_workers):
    """Pain 34: a __getitems__ from further up does not go around it."""
    assert flatten(DataLoader(_Batched(3), batch_size=3, num_workers=num_workers)) == [0, 1, 2]
    assert flatten(DataLoader(_Overridden(3), batch_size=3, num_workers=num_workers)) == [0, -1, -2]


def test_threads_as_workers():
    seen = []

    class Named(Numbers):
        def __getitem__(self, index):
            info = get_worker_info()
            seen.append((info.id, info.num_workers, threading.current_thread() is threading.main_thread()))
            return torch.tensor(index)

    loader = DataLoader(Named(), batch_size=4, num_workers=2, worker_method="thread")
    assert flatten(loader) == list(range(40))
    assert set(seen) == {(0, 2, False), (1, 2, False)}
    assert get_worker_info() is None


def test_lower_require_says_why_not_and_explain_tells_the_truth():
    with pytest.raises(
        feedline.ConfigError, match=r"cannot run natively: order .*read \(Numbers\): nothing is lowered yet"
    ):
        DataLoader(Numbers(), lower="require")
    text = DataLoader(Numbers(), num_workers=2).explain()
    assert "read       Numbers" in text and "Python, in 2 worker processes: nothing is lowered yet" in text


def test_importing_feedline_does_not_import_torch():
    done = run_script(
        "import sys, feedline; print('torch' in sys.modules); feedline.DataLoader; print('torch' in sys.modules)"
    )
    assert done.stdout.split() == ["False", "True"]


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
