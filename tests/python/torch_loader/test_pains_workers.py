# SPDX-License-Identifier: Apache-2.0
"""Known problems of torch's DataLoader: workers, epochs, random numbers, pinning."""

from __future__ import annotations

import inspect
import logging
import multiprocessing
import threading

import numpy as np
import pytest
import torch
from loader_datasets import (
    Augmented,
    Counted,
    Epochs,
    Large,
    Numbers,
    Scalars,
    Stream,
    flatten,
)
from loader_processes import HANG_S, run_script, until
from torch.utils.data import DistributedSampler, get_worker_info

import feedline
from feedline import DataLoader


def test_a_nested_tensor_arrives():
    loader = DataLoader(Numbers(2), num_workers=1, collate_fn=_nested)
    assert [t.is_nested for t in loader] == [True, True]


def _nested(samples):
    return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


def test_pin_memory_without_an_accelerator_costs_nothing_and_warns_once():
    """Pain 12: no thread, no copy."""
    if torch.cuda.is_available():
        pytest.skip("there is an accelerator")
    before = threading.enumerate()
    loader = DataLoader(Large(), batch_size=4, num_workers=1, pin_memory=True)
    with pytest.warns(UserWarning, match="no accelerator is found") as warned:
        iterator = iter(loader)
    ours = [warning for warning in warned if "no accelerator is found" in str(warning.message)]
    assert len(ours) == 1  # others warn of other resources that may end just now
    batch = next(iterator)
    begun = {thread.name for thread in threading.enumerate() if thread not in before}
    assert begun <= {"feedline-publish"}, "which is there with or without pinning"
    assert loader.stats()["bytes_held"] >= batch.nbytes  # the batch is still in the ring
    assert not hasattr(iterator, "_pin_memory_thread")


def test_device_argument_moves_every_tensor():
    """Pain 13."""
    batch = next(iter(DataLoader(Scalars(), batch_size=4, num_workers=1, device="meta")))
    assert all(value.device.type == "meta" for value in batch.values())


def test_workers_start_together_and_once():
    """Pain 9: persistent workers keep their pids; forkserver workers have torch imported before they begin."""
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    pids = []
    for _ in range(2):
        assert flatten(loader) == list(range(40))
        pids.append([worker.pid for worker in loader._iterator._workers])
    assert pids[0] == pids[1]


def test_the_first_batch_of_the_next_epoch_is_ready():
    """Pain 10: prefetch_epochs."""
    data = Counted(8)
    loader = DataLoader(data, batch_size=2, num_workers=2, persistent_workers=True, prefetch_epochs=True)
    assert flatten(loader) == list(range(8))
    until(lambda: data.read.value == 16, "the second epoch is read before it is asked for")
    assert next(iter(loader)).tolist() == [0, 1]


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
    """Pain 24: the order changes in any case; a set_epoch call by the user has precedence."""
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
    """Pain 15: in_order=False returns available batches."""
    asked_for_all_others = multiprocessing.Event()

    class Straggler(Numbers):
        def __getitem__(self, index):
            if index == 0:
                assert asked_for_all_others.wait(HANG_S)
            return index

    iterator = iter(DataLoader(Straggler(12), num_workers=2, in_order=False))
    others = flatten(next(iterator) for _ in range(10))  # one more waits in the slow worker
    assert 0 not in others
    asked_for_all_others.set()
    assert sorted([*others, *flatten(iterator)]) == list(range(12))


def test_an_unsharded_stream_is_reported(caplog):
    """Pain 21."""
    with caplog.at_level(logging.WARNING, "feedline"):
        assert len(flatten(DataLoader(Stream(sharded=False), batch_size=4, num_workers=2))) == 80
    assert "does not seem to be sharded" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "feedline"):
        assert sorted(flatten(DataLoader(Stream(), batch_size=4, num_workers=2))) == list(range(40))
    assert "sharded" not in caplog.text


def test_a_framework_rebuilds_the_loader_from_its_attributes():
    """Pain 31: with the constructor's argument names; with a seed, the order remains that of the seed."""
    loader = DataLoader(Numbers(), 4, shuffle=True, seed=7, on_error="skip", stall_timeout=9)
    names = set(inspect.signature(DataLoader.__init__).parameters) - {"self", "shuffle", "batch_sampler"}
    remade = type(loader)(**{name: getattr(loader, name) for name in names})
    assert (remade.seed, remade.on_error, remade.stall_timeout) == (7, "skip", 9)
    orders = [flatten(each) for each in (loader, remade, loader, remade)]
    assert orders[0] == orders[1] != orders[2] == orders[3]


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
    """Pain 34: an inherited __getitems__ does not bypass it."""
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


def test_lower_require_reports_why_not_and_explain_tells_the_truth():
    why = "Numbers is not a dataset that the engine knows"
    with pytest.raises(feedline.ConfigError, match=rf"cannot run natively: read \(Numbers\): {why}"):
        DataLoader(Numbers(), lower="require")
    text = DataLoader(Numbers(), num_workers=2).explain()
    assert "read       Numbers" in text and f"Python, in 2 worker processes: {why}" in text


def test_data_in_memory_is_gathered_and_not_read_sample_by_sample():
    """Pain 14: slicing is not slower because the class is a dataset."""
    data = torch.utils.data.TensorDataset(torch.arange(20.0).reshape(10, 2), torch.arange(10))
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2, lower="require")
    assert "native, in this thread: one gather per array; a worker process would be slower" in loader.explain()
    rows = [row for x, y in loader for row in zip(x.tolist(), y.tolist(), strict=True)]
    assert sorted(rows) == [([2.0 * i, 2.0 * i + 1], i) for i in range(10)]
    assert not multiprocessing.active_children()


def test_importing_feedline_does_not_import_torch():
    done = run_script(
        "import sys, feedline; print('torch' in sys.modules); feedline.DataLoader; print('torch' in sys.modules)"
    )
    assert done.stdout.split() == ["False", "True"]
