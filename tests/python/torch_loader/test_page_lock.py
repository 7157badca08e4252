# SPDX-License-Identifier: Apache-2.0
"""Batches in page-locked memory (pain 12), against the stand-in of CUDA's driver, which keeps its rules.

The stand-in says what a GPU would be told, and that no memory changes which it still reads. It does not say that a real
driver locks what lies in a memfd, nor how fast that is.
"""

from __future__ import annotations

import collections
import gc
import logging
import os

import pytest
import stand_in_gpu
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from loader_datasets import Large, Numbers
from loader_processes import run_script, until

from feedline import DataLoader
from feedline.torch_loader.workers import page_lock
from feedline.torch_loader.workers.page_lock import page_lock_for
from feedline.torch_loader.workers.ring import HEADER, PAGE, Ring
from feedline.torch_loader.workers.ring_reader import RingReader
from feedline.torch_loader.workers.ring_writer import RingWriter


@pytest.fixture
def gpu(cuda_driver, monkeypatch):
    """Checks after every test that nothing is locked, no context was created and no rule was broken."""
    gpu = stand_in_gpu.install(cuda_driver, monkeypatch)
    yield gpu
    gc.collect()
    gpu.fail(None)
    gpu.capture(False)
    for lock in list(page_lock._holding):
        for device in (0, 1):
            gpu.finish(device)
        lock.settle()
    assert gpu.broken_rules == ""
    assert gpu.bad_punches == []
    assert gpu.ranges == gpu.count("made") == 0
    assert not page_lock._holding


def loader_of(count=60, size=50_000, **arguments):
    return DataLoader(Large(count, size), **{"batch_size": 4, "num_workers": 1, "pin_memory": True, **arguments})


def rows_of(batch):
    assert bool((batch == batch[:, :1]).all())
    return batch[:, 0].int().tolist()


def test_batches_are_pinned_where_they_lie(gpu):
    iterator = iter(loader_of(num_workers=2))
    seen = []
    for batch in iterator:
        assert batch.is_pinned()
        gpu.read(batch)
        gpu.finish()
        seen += rows_of(batch)
    assert seen == list(range(60))
    assert gpu.copies_to_pin == 0


def test_one_call_locks_what_a_worker_uses_again_and_no_more(gpu):
    iterator = iter(loader_of(num_workers=2))
    batch = next(iterator)
    block = -(-(batch.nbytes + HEADER) // PAGE) * PAGE
    # two prefetched, one in the loop, one that the GPU may still be reading
    assert (gpu.ranges, gpu.locked) == (1, 4 * block)
    next(iterator)
    assert (gpu.ranges, gpu.locked) == (2, 8 * block)
    collections.deque(iterator, maxlen=0)
    assert (gpu.ranges, gpu.locked) == (1, 4 * block)  # the worker whose batch is held here


def test_a_batch_that_the_gpu_still_reads_is_not_written_over(gpu):
    """The tensor is gone, its copy to the GPU is not."""
    iterator = iter(loader_of())
    first = next(iterator)
    address = first.data_ptr()
    gpu.read(first)
    del first
    held = []
    for _ in range(6):
        batch = next(iterator)
        assert batch.data_ptr() != address
        held.append(batch)
    gpu.finish()  # which receives the same memory as before
    del held, batch
    addresses = set()
    for batch in iterator:
        addresses.add(batch.data_ptr())
        gpu.finish()
    assert address in addresses


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [50_000, 600_000])
def test_a_gpu_that_lags_by_a_step_costs_no_copy(gpu, workers, size):
    """Also for large batches, because fewer of them are prefetched."""
    for batch in loader_of(80, size, num_workers=workers):
        gpu.finish()
        gpu.read(batch)
    assert gpu.copies_to_pin == 0
    gpu.finish()


def test_a_gpu_that_lags_costs_copies_and_nothing_else(gpu):
    """More batches wait for the GPU than are locked: torch pins the others."""
    seen = []
    for i, batch in enumerate(loader_of(80, num_workers=2)):
        gpu.read(batch)
        seen += rows_of(batch)
        if i % 7 == 6:
            gpu.finish()
    assert seen == list(range(80))
    assert 0 < gpu.copies_to_pin < 20


def test_every_batch_can_be_kept(gpu):
    batches = list(loader_of(num_workers=2))
    assert [row for batch in batches for row in rows_of(batch)] == list(range(60))
    assert gpu.copies_to_pin > 0
    del batches


def test_work_on_every_device_is_waited_for(gpu):
    gpu.use(1)
    iterator = iter(loader_of())
    batch = next(iterator)
    address = batch.data_ptr()
    gpu.read(batch, device=1)
    del batch
    for _ in range(6):
        batch = next(iterator)
        assert batch.data_ptr() != address
        gpu.finish(0)
    gpu.finish(1)


def test_what_is_locked_grows_with_the_batches(gpu):
    """Samples of 40 KB first, then of 400 KB: additional memory is locked after the first part, and no batch spans
    both.
    """
    iterator = iter(DataLoader(Growing(), batch_size=4, num_workers=1, pin_memory=True))
    pinned, ranges = [], set()
    for batch in iterator:
        pinned.append(batch.is_pinned())
        ranges.add(gpu.ranges)
        gpu.read(batch)
        gpu.finish()
    assert ranges == {1, 2}
    assert all(pinned[:10])
    assert sum(pinned[10:]) >= 3  # large ones: earlier batches were copied, and the small part contains none of them


class Growing(Numbers):
    def __init__(self):
        super().__init__(80)

    def __getitem__(self, index):
        return torch.full((10_000 if index < 40 else 100_000,), float(index))


def test_a_tensor_kept_after_the_loader_is_gone_stays_as_it_is(gpu):
    iterator = iter(loader_of())
    kept = next(iterator)
    gpu.read(kept)
    collections.deque(iterator, maxlen=0)
    fd = os.dup(iterator._worker_group.ring.fd)
    del iterator
    gc.collect()
    assert gpu.ranges == 1 and kept.is_pinned() and rows_of(kept) == [0, 1, 2, 3]
    del kept
    assert gpu.ranges == 1  # the GPU is reading it
    gpu.finish()
    next(iter(loader_of()))  # the next batch of any loader checks again
    gc.collect()
    assert os.fstat(fd).st_blocks * 512 < 100_000
    os.close(fd)


def test_closing_unlocks_where_the_gpu_is_idle(gpu):
    loader = loader_of()
    for batch in loader:
        gpu.read(batch)
        gpu.finish()
    assert gpu.ranges == 1
    del batch
    assert gpu.ranges == 0


def test_an_epoch_given_up_in_the_middle_leaves_nothing(gpu):
    for _ in range(3):
        iterator = iter(loader_of(num_workers=2))
        gpu.read(next(iterator))
        next(iterator)
        del iterator
        gpu.finish()
    gc.collect()


def test_persistent_workers_keep_what_is_locked(gpu):
    loader = loader_of(num_workers=2, persistent_workers=True)
    for _ in range(3):
        for batch in loader:
            gpu.read(batch)
            gpu.finish()
        assert gpu.ranges == 2
    assert gpu.copies_to_pin == 0


def test_a_worker_that_takes_over_keeps_off_what_the_gpu_reads(gpu):
    loader = loader_of(on_error="skip", prefetch_factor=2)
    iterator = iter(loader)
    batch = next(iterator)
    gpu.read(batch)
    del batch
    next(iterator)
    iterator._workers[0].kill()
    seen = 8
    for batch in iterator:
        gpu.read(batch)
        seen += len(rows_of(batch))
    assert seen == 60
    gpu.finish()


def test_bytes_held_are_those_that_you_hold(gpu):
    loader = loader_of()
    iterator = iter(loader)
    batch = next(iterator)
    gpu.read(batch)
    held = loader.stats()["bytes_held"]
    assert held >= batch.nbytes
    del batch
    assert loader.stats()["bytes_held"] == 0


@pytest.mark.parametrize("call", ["cuMemHostRegister_v2", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"])
def test_locking_that_fails_is_torchs_copy_and_reported_once(gpu, caplog, call):
    gpu.fail(call)
    loader = loader_of(num_workers=2)
    with caplog.at_level(logging.WARNING, "feedline"):
        for _ in range(2):
            assert [row for batch in loader for row in rows_of(batch)] == list(range(60))
    assert gpu.copies_to_pin == 30
    assert len(caplog.records) == 1
    assert f"{call.removesuffix('_v2')}: CUDA_ERROR_OUT_OF_MEMORY" in caplog.text
    assert f"{call.removesuffix('_v2')}: CUDA_ERROR_OUT_OF_MEMORY" in loader.explain()


def test_too_little_memory_is_torchs_copy(gpu, force, caplog, tmp_path):
    iterator = iter(loader_of())
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 1 kB\n")
    force(machine_root=str(tmp_path))
    assert rows_of(next(iterator)) == [0, 1, 2, 3]
    assert gpu.ranges == 0 and gpu.copies_to_pin == 1
    assert "exceeds the 1024 bytes left on the machine and in this process's control group" in caplog.text


def test_a_driver_before_12_5_is_torchs_copy(cuda_driver, tmp_path, monkeypatch):
    """It cannot report when a batch may be reused. Created by removing the function's name from the other one."""
    early = tmp_path / "libcuda.so.1"
    early.write_bytes(cuda_driver.read_bytes().replace(b"cuCtxRecordEvent", b"cuCtxRecordNever"))
    gpu = stand_in_gpu.install(early, monkeypatch)
    loader = loader_of()
    assert "no cuCtxRecordEvent" in loader.explain()
    assert len(list(loader)) == 15
    assert (gpu.copies_to_pin, gpu.ranges) == (15, 0)


def test_without_the_library_is_torchs_copy(gpu, monkeypatch):
    monkeypatch.setenv("FEEDLINE_CUDA_DRIVER", "libcuda-that-is-not-there.so.1")
    loader = loader_of()
    assert "there is no libcuda-that-is-not-there.so.1" in loader.explain()
    assert len(list(loader)) == 15
    assert gpu.copies_to_pin == 15


def test_nothing_is_locked_before_torch_uses_the_gpu(gpu, monkeypatch):
    """Creating a context would use memory on a device that may belong to another process."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    iterator = iter(loader_of())
    next(iterator)
    assert gpu.calls("cuInit") == gpu.calls("cuDeviceGetCount") == 0
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert next(iterator).is_pinned()
    assert gpu.copies_to_pin == 1


def test_a_capture_of_a_cuda_graph_is_left_alone(gpu, monkeypatch):
    """Querying the GPU's progress would invalidate the capture, so batches wait until it is over."""
    iterator = iter(loader_of())
    batch = next(iterator)
    address = batch.data_ptr()
    gpu.read(batch)
    gpu.finish()
    gpu.capture(True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    del batch
    assert next(iterator).data_ptr() != address
    assert next(iterator).data_ptr() != address
    gpu.capture(False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert address in {batch.data_ptr() for batch in iterator}


def test_to_ask_the_gpu_leaves_a_capture_in_another_thread_alone(gpu):
    iterator = iter(loader_of())
    batch = next(iterator)
    gpu.read(batch)
    del batch
    kept = [next(iterator)]  # which marks the end of that read
    gpu.capture(True)
    calls = gpu.calls("cuEventQuery")
    kept.append(next(iterator))
    assert gpu.calls("cuEventQuery") > calls
    gpu.capture(False)


def test_a_capture_in_another_thread_costs_that_capture_and_no_data(gpu):
    iterator = iter(loader_of())
    batch = next(iterator)
    gpu.read(batch)
    del batch
    gpu.capture(True)
    next(iterator)
    gpu.capture(False)
    assert gpu.broken_rules == "cuCtxRecordEvent spoils a graph that is captured\n"
    gpu.forgive()
    gpu.finish()
    assert [row for batch in iterator for row in rows_of(batch)] == list(range(8, 60))


def test_after_an_error_of_the_gpu_nothing_is_used_again(gpu, caplog):
    iterator = iter(loader_of())
    batch = next(iterator)
    address = batch.data_ptr()
    gpu.read(batch)
    del batch
    gpu.fail("cuEventQuery", status=700)
    addresses = {batch.data_ptr() for batch in iterator}
    assert address not in addresses
    assert caplog.text.count("CUDA_ERROR_ILLEGAL_ADDRESS") == 1
    lock = iterator._page_lock
    del iterator
    gc.collect()
    assert gpu.ranges == 1
    lock._failed = False  # for the end of the test


def test_users_types_pin_themselves(gpu):
    """The pin_memory() of a type is called. Its large tensors are already pinned; small ones arrive with the
    message.
    """
    batch = next(iter(loader_of(collate_fn=Pair)))
    assert batch.asked == 1
    assert batch.image.is_pinned()
    assert gpu.copies_to_pin == 1


class Pair:
    def __init__(self, samples):
        self.image, self.label, self.asked = torch.stack(samples), torch.stack(samples)[:, :1].clone(), 0

    def pin_memory(self):
        self.asked += 1
        self.image, self.label = self.image.pin_memory(), self.label.pin_memory()
        return self


def test_a_forked_child_leaves_the_driver_alone(gpu):
    iterator = iter(loader_of())
    batch, other = next(iterator), next(iterator)
    gpu.read(batch)
    gpu.read(other)
    del other
    child = os.fork()
    if child == 0:
        status = 1
        try:
            del batch
            iterator._page_lock.settle()
            iterator._worker_group.reader.close()
            status = 0 if gpu.broken_rules == "" else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert gpu.ranges == 1 and batch.is_pinned() and rows_of(batch) == [0, 1, 2, 3]
    gpu.finish()


@pytest.mark.parametrize("last", ["gpu.finish()", "pass", "gpu.driver.fake_cuda_end(1)"])
def test_the_interpreter_ends_whatever_the_gpu_does(cuda_driver, last):
    """Idle, still reading (or hanging), or with its driver already shut down."""
    done = run_script(f"""
        import sys
        import pathlib, pytest
        import stand_in_gpu
        from loader_datasets import Large
        from feedline import DataLoader
        gpu = stand_in_gpu.install(pathlib.Path({str(cuda_driver)!r}), pytest.MonkeyPatch())
        loader = DataLoader(Large(), batch_size=4, num_workers=1, pin_memory=True)
        iterator = iter(loader)
        kept = next(iterator)
        for _ in range(3):
            batch = next(iterator)
            gpu.read(batch)
        {last}
        print("end", gpu.ranges, len(gpu.bad_punches), gpu.broken_rules)
    """)
    assert done.stderr == ""
    assert (done.returncode, done.stdout) == (0, "end 1 0 \n")


@pytest.mark.gpu
def test_on_a_gpu_that_lags():
    """With a real GPU: the copies wait after a kernel that sleeps while the loop releases their batches."""
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    torch.zeros(1, device="cuda")
    loader = loader_of(400, num_workers=2)
    arrived = []
    for i, batch in enumerate(loader):
        if loader._progress.page_lock_refusal is not None:
            pytest.skip(loader._progress.page_lock_refusal)
        assert batch.is_pinned()
        assert i > 0 or loader.stats()["bytes_held"] >= batch.nbytes  # it is still in the ring
        if i % 10 == 0:
            torch.cuda._sleep(100_000_000)
        arrived.append(batch.to("cuda", non_blocking=True))
    del batch
    torch.cuda.synchronize()
    assert [row for batch in arrived for row in rows_of(batch.cpu())] == list(range(400))
    until(lambda: [lock.settle() for lock in list(page_lock._holding)] == [])


def test_without_a_gpu_no_driver_is_opened(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(page_lock, "PageLocks", None)
    loader = loader_of()
    with pytest.warns(UserWarning, match="no accelerator is found"):
        iterator = iter(loader)
    next(iterator)
    assert iterator._page_lock is None and iterator._worker_group.reader.page_lock is None
    assert "pin        nothing is pinned: there is no accelerator" in loader.explain()


class HandOver(RuleBasedStateMachine):
    """A worker and the training loop in any order, with batches of any sizes, held, released and read by the GPU."""

    stand_in = None

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.gpu = stand_in_gpu.install(self.stand_in, self.patch)
        self.patch.setattr("feedline.torch_loader.workers.ring._region_bytes", lambda workers: 64 << 20)
        self.ring = Ring(1)
        self.reader = RingReader(self.ring)
        self.reader.page_lock, _ = page_lock_for(self.ring, self.reader)
        self.lock = self.reader.page_lock
        self.writer = RingWriter(self.ring, 0, 1 << 40, 2)
        self.is_used = False
        self.patch.setattr(torch.cuda, "is_initialized", lambda: self.is_used)
        self.made = 0
        self.under_way, self.held = [], []

    @rule(sizes=st.lists(st.integers(1, 12 * PAGE), min_size=1, max_size=3))
    def make(self, sizes):
        self.made = self.made % 250 + 1
        blocks = [self.writer.allocate(size) for size in sizes]
        for block in blocks:
            block[:] = self.made
        extents = [(start, self.writer.send(start)) for start in map(self.writer.start_of, blocks)]
        self.under_way.append((self.made, extents, sizes))
        del block, blocks
        self.writer.end_task()

    @precondition(lambda self: self.under_way)
    @rule(reads=st.lists(st.booleans(), min_size=3, max_size=3))
    def take(self, reads):
        self.lock.settle()
        value, extents, sizes = self.under_way.pop(0)
        batch = [
            torch.frombuffer(self.reader.open(0, *extent), dtype=torch.uint8, count=size)
            for extent, size in zip(extents, sizes, strict=True)
        ]
        self.lock.lock(0)
        for tensor, is_read in zip(batch, reads, strict=False):
            if is_read:
                self.gpu.read(tensor)
        self.held.append((value, batch))

    @precondition(lambda self: self.under_way)
    @rule()
    def pass_over(self):
        for extent in self.under_way.pop(0)[1]:
            self.reader.release(0, *extent)

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 99))
    def let_go(self, which):
        value, batch = self.held.pop(which % len(self.held))
        assert all(bool((tensor == value).all()) for tensor in batch)

    @rule()
    def use_the_gpu(self):
        self.is_used = True

    @rule()
    def finish(self):
        self.gpu.finish()

    @rule()
    def worker_dies(self):
        pending = [extent for _, extents, _ in self.under_way for extent in extents]
        self.writer = RingWriter(self.ring, 0, 1 << 40, 2, self.reader.occupied(0) + pending)

    @invariant()
    def no_rule_is_broken(self):
        assert self.gpu.broken_rules == ""
        assert self.gpu.bad_punches == []

    def teardown(self):
        while self.under_way:
            self.pass_over()
        self.reader.close()
        while self.held:
            self.let_go(0)
        self.gpu.finish()
        self.lock.settle()
        self.no_rule_is_broken()
        assert self.gpu.ranges == 0
        assert self.reader.page_lock is None
        assert os.fstat(self.ring.fd).st_blocks * 512 == self.ring.control_bytes
        self.ring.close()
        del self.lock  # and its retained memory, before the next one begins again
        self.patch.undo()


def test_any_order_of_sizes_holders_and_deaths(cuda_driver):
    HandOver.stand_in = cuda_driver
    run_state_machine_as_test(HandOver, settings=settings(stateful_step_count=50))


def test_a_border_is_put_between_blocks(gpu):
    """Blocks of 1, 3, 3, 3, 3 and 3 pages are held when torch begins to use the GPU; 15 pages are worth keeping."""
    ring = Ring(1)
    reader = RingReader(ring)
    reader.page_lock, _ = page_lock_for(ring, reader)
    writer = RingWriter(ring, 0, 1 << 40, 2)
    held = []
    for pages in (1, 3, 3, 3, 3, 3):
        block = writer.allocate(pages * PAGE - HEADER)
        start = writer.start_of(block)
        held.append(torch.frombuffer(reader.open(0, start, writer.send(start)), dtype=torch.uint8))
        del block
        writer.end_task()
    reader.page_lock.lock(0)
    assert ring.control(0).borders() == [13 * PAGE]
    assert [tensor.is_pinned() for tensor in held] == [True] * 5 + [False]
    for tensor in held:
        gpu.read(tensor)
    gpu.finish()
    reader.close()
    del held, tensor
    ring.close()


def test_no_block_crosses_a_border():
    ring = Ring(1)
    writer = RingWriter(ring, 0, 1 << 40, 2)
    control = ring.control(0)
    control[control.BORDER], control[control.BORDER + 1] = 4 * PAGE, 9 * PAGE
    blocks = [writer.allocate(pages * PAGE - HEADER) for pages in (3, 2, 1, 4, 3)]
    starts = [writer.start_of(block) // PAGE for block in blocks]
    assert starts == [0, 4, 3, 9, 6]
    ring.close()
