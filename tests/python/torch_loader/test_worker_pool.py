# SPDX-License-Identifier: Apache-2.0
"""`feedline.WorkerPool`: loaders that share processes return the same as with separate processes, and as torch's."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import random
import socket
import sys

import pytest
import torch
from loader_datasets import (
    Augmented,
    Counted,
    Dying,
    Epochs,
    Large,
    Numbers,
    ResumableStream,
    Stream,
    Unpicklable,
    flatten,
)
from loader_processes import settled
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Subset, TensorDataset, get_worker_info

from feedline import ConfigError, DataLoader, WorkerDiedError, WorkerPool
from feedline.torch_loader.workers.pool_process import (
    FDS,
    SessionRequest,
    receive_session_request,
    send_session_request,
)
from feedline.torch_loader.workers.shared_parts import Parts

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def processes():
    gc.collect()
    return {child.pid for child in multiprocessing.active_children()}


def told(batches):
    return [[part.tolist() if isinstance(part, torch.Tensor) else part for part in batch] for batch in batches]


class Told(Augmented):
    """Every sample also contains its reader: the worker, their number, its seed, and the owner of its dataset."""

    def __getitem__(self, index):
        info = get_worker_info()
        return *super().__getitem__(index), info.id, info.num_workers, info.seed, info.dataset is self


class Counting(Dataset):
    """Draws from its own generator, and counts its calls."""

    def __init__(self):
        self.generator, self.calls = random.Random(3), 0

    def __len__(self):
        return 12

    def __getitem__(self, index):
        self.calls += 1
        return index, self.calls, self.generator.random()


class CountingWithLambda(Counting):
    """Supported with fork, but cannot be pickled."""

    def __init__(self):
        super().__init__()
        self.change = lambda index: index


class CountedLarge(Counted, Large):
    pass


def note_worker(worker):
    get_worker_info().dataset.count_of_starts = worker, random.random(), torch.rand(1).item()


class Started(Numbers):
    def __getitem__(self, index):
        return index, *self.count_of_starts


class Exiting(Numbers):
    """Ends its worker at one sample, once if there is a `mark`."""

    def __init__(self, mark=None):
        super().__init__(20)
        self.mark = mark

    def __getitem__(self, index):
        if index == 5 and not (self.mark and self.mark.exists()):
            if self.mark:
                self.mark.touch()
            sys.exit(3)
        return index


class Pid(Numbers):
    def __getitem__(self, index):
        return os.getpid()


def both(make, progress):
    """Returns the results of `progress` for the loaders that `make(class, **more)` creates: torch's, and Feedline's in
    a pool.
    """
    found = []
    for loader_class, more in ((TorchDataLoader, {}), (DataLoader, {"pool": WorkerPool()})):
        torch.manual_seed(3)
        found.append(told(progress(*make(loader_class, **more))))
    return found


def interleaved(train, val):
    """Validation within each epoch of training, and after it."""
    out = []
    for _ in range(2):
        for step, batch in enumerate(train):
            out.append(batch)
            if step == 3:
                out += list(val)
        out += list(val)
    return out


def of_two(train, val, train_workers=3, val_workers=2, **both_have):
    def make(loader_class, **more):
        more |= {"batch_size": 4, "persistent_workers": True, **both_have}
        return (
            loader_class(train(), shuffle=True, num_workers=train_workers, **more),
            loader_class(val(), num_workers=val_workers, **more),
        )

    return make


@pytest.mark.parametrize("workers", [(2, 2), (3, 1), (1, 3)])
def test_batches_seeds_and_worker_info_are_torchs(workers):
    theirs, ours = both(of_two(lambda: Told(40), lambda: Told(24), *workers), interleaved)
    assert ours == theirs


def test_processes_that_are_spawned_get_every_dataset_pickled():
    theirs, _ = both(of_two(lambda: Told(16), lambda: Told(8), 1, 1), interleaved)
    make = of_two(lambda: Told(16), lambda: Told(8), 1, 1, multiprocessing_context="spawn")
    torch.manual_seed(3)
    assert told(interleaved(*make(DataLoader, pool=WorkerPool()))) == theirs


def test_worker_init_fn_runs_once_in_each_worker_of_each_loader():
    theirs, ours = both(of_two(lambda: Started(12), lambda: Started(8), worker_init_fn=note_worker), interleaved)
    assert ours == theirs


def test_a_validation_that_is_given_up_leaves_nothing():
    def progress(train, val):
        out = []
        for _ in range(3):
            for step, batch in enumerate(train):
                out.append(batch)
                if step % 3 == 0:
                    out += [batch for batch, _ in zip(val, range(2), strict=False)]
        return [[batch] for batch in [*out, *val]]

    theirs, ours = both(of_two(Numbers, lambda: Numbers(24)), progress)
    assert ours == theirs


def test_streams_share_themselves_out_among_their_own_loaders_workers():
    def make(loader_class, **more):
        more |= {"batch_size": 3, "persistent_workers": True}
        return loader_class(Stream(40), num_workers=3, **more), loader_class(Stream(20), num_workers=2, **more)

    theirs, ours = both(make, lambda *loaders: [[batch] for batch in interleaved(*loaders)])
    assert ours == theirs


def test_there_are_as_many_processes_as_the_largest_loader_has_workers():
    before, pool = processes(), WorkerPool()
    train = DataLoader(Pid(40), batch_size=4, num_workers=3, pool=pool)
    val = DataLoader(Pid(20), batch_size=4, num_workers=2, pool=pool)
    of_train, of_val = set(flatten(train)), set(flatten(val))
    assert of_val < of_train == processes() - before
    assert set(flatten(train)) == of_train  # they live on
    larger = DataLoader(Pid(40), batch_size=4, num_workers=4, pool=pool)
    assert of_train < set(flatten(larger)) == processes() - before
    assert "4 processes" in repr(pool) and repr(pool) in val.explain()
    del train, larger
    assert processes() - before  # as long as one of them exists
    del val
    assert processes() == before


@pytest.mark.parametrize("dataset", [Counting, CountingWithLambda])
def test_datasets_that_share_objects_do_not_see_each_others_samples(dataset, caplog):
    """Two parts of one dataset with a generator: one copy each, as in separate processes."""

    def make(loader_class, **more):
        whole = dataset()
        more |= {"batch_size": 2, "num_workers": 1, "persistent_workers": True}
        return loader_class(Subset(whole, range(8)), **more), loader_class(Subset(whole, range(8, 12)), **more)

    theirs, ours = both(make, interleaved)
    assert ours == theirs
    refused = [record for record in caplog.records if "because the pool's processes already run" in record.message]
    assert len(refused) == (dataset is CountingWithLambda)


def test_what_cannot_be_pickled_is_there_by_being_forked(caplog):
    before, pool = processes(), WorkerPool()
    train = DataLoader(Unpicklable(), batch_size=4, num_workers=2, pool=pool)
    val = DataLoader(Unpicklable(), batch_size=4, num_workers=2, collate_fn=lambda samples: samples, pool=pool)
    assert flatten(train) == flatten(val) == list(range(40))
    assert len(processes() - before) == 2 and not caplog.records


def test_a_dataset_that_changes_before_its_first_epoch_is_read_as_it_is_then():
    pool, changed = WorkerPool(), Epochs()
    train = DataLoader(Numbers(8), num_workers=1, pool=pool)
    val = DataLoader(changed, num_workers=1, pool=pool)
    assert flatten(train) == list(range(8))
    changed.epoch = 5
    assert flatten(val) == [5] * 8


def test_a_loader_that_comes_later_and_one_that_restarts_are_in_the_same_processes():
    before, pool = processes(), WorkerPool()
    train = DataLoader(ResumableStream(), batch_size=2, num_workers=2, pool=pool)
    iterator = iter(train)
    first = [next(iterator) for _ in range(4)]
    state = train.state_dict()
    late = DataLoader(TensorDataset(torch.arange(6)), batch_size=2, num_workers=2, lower="never", pool=pool)
    assert flatten(batch[0] for batch in late) == list(range(6))
    rest = list(iterator)
    train.load_state_dict(state)
    again = list(train)
    assert len(processes() - before) == 2
    assert torch.equal(torch.cat(again)[:, 0], torch.cat(rest)[:, 0]) and len(first) + len(rest) == 20


def test_a_state_and_the_epochs_after_it_do_not_depend_on_the_pool():
    states = []
    for pool in (None, WorkerPool()):
        torch.manual_seed(3)
        options = {"batch_size": 2, "num_workers": 2, "persistent_workers": True, "pool": pool}
        train, val = DataLoader(Augmented(20), shuffle=True, **options), DataLoader(Augmented(8), **options)
        iterator = iter(train)
        batches = [next(iterator) for _ in range(3)] + list(val)
        states.append((train.state_dict(), val.state_dict(), told(batches + list(iterator) + list(train))))
    assert states[0] == states[1]


def test_training_that_may_make_no_more_batches_does_not_stop_validation():
    """A worker that waits for room still starts validation, and produces at most one more batch of training."""
    pool, data, in_batch = WorkerPool(), CountedLarge(40), 50_000 * 4 * 4
    train = DataLoader(data, batch_size=4, num_workers=1, prefetch_factor=8, memory_budget=2 * in_batch, pool=pool)
    val = DataLoader(Large(16), batch_size=4, num_workers=1, pool=pool)
    iterator = iter(train)
    first = next(iterator)
    assert len(list(val)) == 4
    assert settled(lambda: data.read.value) <= 4 * (1 + 2 + 1)
    assert [int(batch[0, 0]) for batch in [first, *iterator]] == list(range(0, 40, 4))


def test_a_worker_that_dies_in_validation_is_reported_there_and_in_the_epoch_that_it_was_in(tmp_path):
    pool = WorkerPool()
    train = DataLoader(Numbers(40), batch_size=4, num_workers=2, pool=pool)
    val = DataLoader(Dying(tmp_path / "died"), batch_size=4, num_workers=2, pool=pool)
    iterator = iter(train)
    next(iterator)
    with pytest.raises(WorkerDiedError, match="Killed"):
        list(val)
    with pytest.raises(WorkerDiedError, match="Killed"):
        list(iterator)
    assert flatten(train) == list(range(40))
    assert len(list(val)) == 10


def test_a_death_in_validation_between_two_epochs_is_not_reported(tmp_path):
    pool = WorkerPool()
    train = DataLoader(Numbers(40), batch_size=4, num_workers=2, pool=pool)
    val = DataLoader(Dying(tmp_path / "died"), batch_size=4, num_workers=2, pool=pool)
    assert flatten(train) == list(range(40))
    with pytest.raises(WorkerDiedError, match="Killed"):
        list(val)
    assert flatten(train) == list(range(40))


def test_with_on_error_a_fresh_process_takes_over_for_all(tmp_path):
    before, pool = processes(), WorkerPool()
    options = {"batch_size": 4, "num_workers": 2, "on_error": "replace", "pool": pool}
    train, val = DataLoader(Numbers(40), **options), DataLoader(Dying(tmp_path / "died"), **options)
    iterator = iter(train)
    first = next(iterator)
    assert [int(batch[0, 0]) for batch in val] == list(range(0, 40, 4))
    assert flatten([first, *iterator]) == list(range(40))
    assert len(processes() - before) == 2


def test_sys_exit_in_validation_ends_its_worker_alone():
    pool = WorkerPool()
    train = DataLoader(Numbers(40), batch_size=4, num_workers=1, pool=pool)
    val = DataLoader(Exiting(), batch_size=4, num_workers=1, pool=pool)
    iterator = iter(train)
    first = next(iterator)
    with pytest.raises(SystemExit):
        list(val)
    assert flatten([first, *iterator]) == list(range(40))


def test_with_on_error_a_fresh_worker_takes_over_in_the_same_process(tmp_path):
    before = processes()
    options = {"batch_size": 4, "num_workers": 1, "on_error": "replace", "pool": WorkerPool()}
    train, val = DataLoader(Pid(20), **options), DataLoader(Exiting(tmp_path / "exited"), **options)
    iterator = iter(train)
    first = next(iterator)
    assert flatten(val) == list(range(20))
    assert set(flatten([first, *iterator])) == processes() - before


def test_a_copy_of_a_loader_and_a_pickled_one_have_a_pool_too():
    train = DataLoader(Numbers(8), batch_size=4, num_workers=1, pool=WorkerPool())
    assert flatten(train) == flatten(copy.copy(train)) == flatten(pickle.loads(pickle.dumps(train))) == list(range(8))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pool": 3, "num_workers": 1}, "must be a feedline.WorkerPool"),
        ({"num_workers": 1, "persistent_workers": False}, "requires persistent_workers=True"),
        ({"num_workers": 1, "worker_method": "thread"}, "worker processes"),
        ({}, "requires num_workers > 0"),
    ],
)
def test_what_a_pool_cannot_be_is_reported(arguments, words):
    with pytest.raises(ConfigError, match=words):
        DataLoader(Numbers(), **{"pool": WorkerPool(), **arguments})


def test_one_pool_starts_its_processes_in_one_way():
    pool = WorkerPool()
    forked = DataLoader(Numbers(8), num_workers=1, multiprocessing_context="fork", pool=pool)
    assert flatten(forked) == list(range(8))
    spawned = DataLoader(Numbers(8), num_workers=1, multiprocessing_context="spawn", pool=pool)
    with pytest.raises(ConfigError, match="started by 'fork'"):
        iter(spawned)


def test_parts_are_those_that_can_change():
    class Holder:
        pass

    one, other, shared = Holder(), Holder(), [1, "two"]
    one.paths, other.paths = [("a", 0)] * 20_000, [("b", 1)]
    one.mode = other.mode = random.choice
    one.function = other.function = note_worker
    one.pair = other.pair = (1, 2)
    before = Parts([one])
    assert not before.shares(Parts([other])) and before == Parts([one])
    one.tags, other.tags = (shared,), {"tags": shared}
    assert Parts([one]).shares(Parts([other])) and before != Parts([one])
    before = Parts([one])
    one.paths[7] = ("c", 0)
    assert before != Parts([one])
    one.generator = torch.Generator()
    before = Parts([one])
    torch.rand(1, generator=one.generator)
    assert before != Parts([one])


def test_a_process_that_is_late_takes_one_opening_after_the_other():
    """Several wait in its socket: reading one must not consume the next one's descriptors."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for number in range(2):
            read, write = os.pipe()
            os.write(write, bytes([number]))
            send_session_request(ours, SessionRequest(None, number, {}, [], {}), [read] * FDS)
            os.close(read)
            os.close(write)
        for number in range(2):
            request, fds = receive_session_request(theirs)
            assert (request.worker, len(fds), os.read(fds[0], 9)) == (number, FDS, bytes([number]))
            for fd in fds:
                os.close(fd)
        ours.close()
        assert receive_session_request(theirs) is None
