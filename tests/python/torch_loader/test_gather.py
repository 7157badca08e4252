# SPDX-License-Identifier: Apache-2.0
"""Large samples become rows of the batch as they are read; the only difference is the memory."""

from __future__ import annotations

import collections
import gc
import os
import time
import warnings

import numpy as np
import pytest
import torch
from loader_datasets import Large, Numbers
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset

from feedline import DataLoader

_Pair = collections.namedtuple("_Pair", "image label")


class _Made(Numbers):
    """Sample i is `make(i)`."""

    def __init__(self, make, count=10) -> None:
        super().__init__(count)
        self.make = make

    def __getitem__(self, index):
        return self.make(index)


def _floats(i, *shape):
    return torch.full(shape or (40_000,), float(i))


def _bytes(i, count=100_000):
    return np.full(count, i, np.uint8)


def _read_only(i):
    array = _bytes(i)
    array.flags.writeable = False
    return array


_SAMPLES = {
    "tensor": _floats,
    "pair": lambda i: (_floats(i), i),
    "dict of two": lambda i: {"image": _floats(i, 3, 200, 100), "mask": _bytes(i), "name": str(i)},
    "nested": lambda i: [{"views": (_floats(i), _floats(-i))}, _floats(i, 4)],
    "named tuple": lambda i: _Pair(_floats(i), i),
    "not contiguous": lambda i: _floats(i, 200, 100, 3).permute(2, 0, 1),
    "an array turned": lambda i: np.arange(60_000.0).reshape(200, 300).T + i,
    "an array backwards": lambda i: np.arange(60_000.0)[::-1] + i,
    "an array not to be written": _read_only,
    "big-endian": lambda i: np.full(60_000, i, ">f8"),
    "twice the same": lambda i: (lambda t: (t, t))(_floats(i)),
    "a view of a larger one": lambda i: torch.arange(100_000.0)[i : i + 50_000],
    "other types in between": lambda i: _floats(i).to(torch.float64 if i % 3 else torch.float32),
    "other shapes": lambda i: _floats(i, 40_000 + i),
    "other containers": lambda i: (_floats(i),) if i % 3 else [_floats(i)],
    "array or tensor": lambda i: _bytes(i) if i % 3 else torch.from_numpy(_bytes(i)),
    "tensor or array": lambda i: _bytes(i) if i % 3 == 0 else torch.from_numpy(_bytes(i)),
    "needs a gradient": lambda i: _floats(i).requires_grad_(),
    "a parameter": lambda i: torch.nn.Parameter(_floats(i), requires_grad=False),
    "sparse": lambda i: _floats(i).to_sparse(),
    "strings": lambda i: np.full(50_000, str(i)),
}

# torch's workers stack into shared memory, and reject what torch.stack otherwise accepts
_OTHER_IN_WORKERS = ("other types in between", "array or tensor", "tensor or array", "needs a gradient")


def _outcome(loader):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [_plain(batch) for batch in loader]
        except Exception as error:
            return type(error).__name__


def _plain(value):
    if isinstance(value, torch.Tensor):
        dense = value.detach().to_dense()
        return type(value).__name__, value.dtype, dense.shape, dense.stride(), dense.numpy().tobytes()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [_plain(part) for part in value]
    return value


@pytest.mark.parametrize("name", _SAMPLES)
def test_batches_and_errors_are_torchs(name):
    arguments = {"dataset": _Made(_SAMPLES[name]), "batch_size": 4}
    # torch's workers take five seconds to end after an error
    workers = 1 if name in _OTHER_IN_WORKERS else 0
    assert _outcome(DataLoader(**arguments, num_workers=1)) == _outcome(
        TorchDataLoader(**arguments, num_workers=workers)
    )


class _Stream(IterableDataset):
    def __iter__(self):
        return (_floats(i) for i in range(10))


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_last_batch_of_a_stream_is_as_long_as_it_is(drop_last):
    arguments = {"dataset": _Stream(), "batch_size": 4, "num_workers": 1, "drop_last": drop_last}
    assert _outcome(DataLoader(**arguments)) == _outcome(TorchDataLoader(**arguments))


def _keep_samples(samples):
    return samples


def test_a_collate_function_of_ones_own_gets_what_the_dataset_returned():
    batch = next(iter(DataLoader(_Made(_floats), batch_size=4, num_workers=1, collate_fn=_keep_samples)))
    assert len({sample.untyped_storage().data_ptr() for sample in batch}) == 4


class _ResidentNow(Large):
    """Sample i is the resident memory of the worker when it is read, in MB, and 20 MB of data."""

    def __getitem__(self, index):
        with open("/proc/self/statm", "rb") as file:
            resident, shared = map(int, file.read().split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGESIZE") / 1e6, torch.full((5_000_000,), float(index))


def test_a_worker_holds_one_large_sample_and_not_all_of_a_batch():
    batch, _ = next(iter(DataLoader(_ResidentNow(16), batch_size=16, num_workers=1)))
    assert float(batch[-1] - batch[0]) < 100  # 15 samples are 300 MB


@pytest.mark.parametrize("prefetch_factor", [2, 4])
def test_what_stays_warm_is_no_more_than_can_be_in_use(prefetch_factor):
    loader = DataLoader(
        Large(400, 250_000), batch_size=2, num_workers=2, prefetch_factor=prefetch_factor, persistent_workers=True
    )
    batches = list(loader)
    ring = loader._iterator._worker_group.ring
    del batches
    gc.collect()
    most = 2 * (prefetch_factor + 1) * 2_100_000  # per worker: the number of requested batches, and one in the loop
    assert os.fstat(ring.fd).st_blocks * 512 <= most


@pytest.mark.parametrize("prefetch_factor", [1, 2, 3])
def test_large_batches_are_as_many_as_are_made_ahead_and_the_one_in_the_loop_is_one_of_them(prefetch_factor):
    loader = DataLoader(
        Large(32, 1_250_000), batch_size=2, num_workers=2, prefetch_factor=prefetch_factor, persistent_workers=True
    )
    held = []
    for batch in loader:
        time.sleep(0.2)  # so that the workers produce as much as they may
        held.append(os.fstat(loader._iterator._worker_group.ring.fd).st_blocks * 512)
        del batch
    assert max(held) <= 2 * max(2, prefetch_factor) * 10_100_000


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("prefetch_factor", [1, 2])
def test_large_batches_that_are_kept_do_not_stop_the_workers(prefetch_factor, in_order):
    data = Large(24, 1_250_000)
    loader = DataLoader(data, batch_size=2, num_workers=2, prefetch_factor=prefetch_factor, in_order=in_order)
    assert sorted(int(batch[0, 0]) for batch in list(loader)) == list(range(0, 24, 2))
