# SPDX-License-Identifier: Apache-2.0
"""Tensors, arrays and memory maps that the engine gathers: torch's batches, bit for bit, in torch's order.

FEEDLINE_FUZZ_CASES sets how many random cases run (400), FEEDLINE_FUZZ_SEED where they begin.
"""

from __future__ import annotations

import os
import random
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from lowered import assert_same, assert_same_epochs, error_of, plan_of, random_states
from torch.utils.data import (
    ConcatDataset,
    DistributedSampler,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data import DataLoader as TorchLoader

from feedline import ConfigError, DataLoader

CASES = int(os.environ.get("FEEDLINE_FUZZ_CASES", "400"))
FIRST = int(os.environ.get("FEEDLINE_FUZZ_SEED", "0"))
DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
    torch.bool, torch.bfloat16, torch.complex64, torch.complex128,
]  # fmt: skip


def filled(*shape, dtype=torch.float32) -> torch.Tensor:
    return torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


@pytest.fixture
def pairs() -> TensorDataset:
    return TensorDataset(filled(23, 12), filled(23, dtype=torch.int64))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_of_every_dtype_and_shape(dtype):
    for shape in ((11,), (11, 4), (11, 2, 3), (11, 0), (11, 1, 1, 1), (11, 70), (11, 9, 9)):
        assert_same_epochs(TensorDataset(filled(*shape, dtype=dtype)), plan="arrays", batch_size=4)
        assert_same_epochs(filled(*shape, dtype=dtype), plan="arrays", batch_size=4, shuffle=True)


def test_memory_that_is_not_in_one_piece():
    for tensor in (
        filled(16, 11).t(),
        filled(22, 14)[::2],
        filled(11, 4).flip(1),
        filled(1, 14).expand(11, 14),
        filled(12, 14)[1:],
    ):
        assert_same_epochs(TensorDataset(tensor), plan="arrays", batch_size=4, shuffle=True)
    array = filled(11, 4).numpy()
    assert_same_epochs(np.asfortranarray(array), plan="arrays", batch_size=4)
    assert_same_epochs(array[:, ::2], plan="arrays", batch_size=4)
    assert_same_epochs(array[::-1], plan="python", batch_size=4)  # torch has no such tensors


def test_a_tensor_that_is_resized_is_read_as_it_is_now():
    rows = filled(40, 20)
    loader = DataLoader(TensorDataset(rows), 4, sampler=[0, 9, 3, 8])
    rows.resize_(10, 20)
    rows.fill_(7)
    (batch,) = loader
    assert torch.equal(batch[0], torch.full((4, 20), 7.0))
    rows.resize_(5, 20)
    with pytest.raises(IndexError):
        list(loader)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f2", "f4", "f8", "?"])
def test_rows_of_numpy_arrays(dtype):
    assert_same_epochs(filled(9, 5).numpy().astype(dtype), plan="arrays", batch_size=4, workers=1)
    assert_same_epochs(filled(9, 2, 2).numpy().astype(dtype), plan="arrays", batch_size=4, drop_last=True)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_a_memory_map_come_without_a_warning(tmp_path, mode, workers):
    filled(40, 6).numpy().tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, shape=(40, 6), mode=mode)
    loader = DataLoader(mapped, 7, num_workers=workers)
    assert plan_of(loader) == "arrays"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = list(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(found, list(TorchLoader(mapped, 7)))
    found[0].fill_(-1.0)
    assert float(mapped[0, 0]) != -1.0


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [3, 40_000])
def test_batches_are_new_memory_that_is_the_users_own(size, workers):
    """Threads gather the larger rows in advance."""
    data = filled(16, size)
    before = data.clone()
    loader = DataLoader(TensorDataset(data), 8, num_workers=workers)
    batches = [batch for _ in range(2) for (batch,) in loader]
    for i, batch in enumerate(batches):
        assert batch.is_contiguous() and torch.equal(batch, before[8 * (i % 2) :][:8])
        batch.fill_(-float(i))
    assert torch.equal(data, before)
    assert len({batch.data_ptr() for batch in batches}) == len(batches)
    batches[0].resize_(100)


def test_gathering_in_threads_leaves_torchs_thread_count_alone():
    counts = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        counts.append(torch.get_num_threads())
        list(DataLoader(filled(16, 80_000), 8, num_workers=2))
    assert counts[:2] == counts[2:]


def test_torchs_thread_count_is_the_users_again_before_a_first_batch(monkeypatch):
    usual, setting = torch.get_num_threads(), torch.set_num_threads

    first = threading.Semaphore(1)

    def late_but_for_one(count):
        late = count == 1 and not first.acquire(blocking=False)
        time.sleep(0.05 * late)
        setting(count)
        time.sleep(0.3 * late)

    monkeypatch.setattr(torch, "set_num_threads", late_but_for_one)
    setting(3)
    try:
        loader = DataLoader(filled(32, 80_000), 4, num_workers=4)
        iterator = iter(loader)
        next(iterator)
        time.sleep(0.1)
        counts = []
        thread = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert counts == [3]
    finally:
        setting(usual)


def test_parts_by_any_kind_of_indices(pairs):
    joined = ConcatDataset([pairs, Subset(pairs, [3, 3, -1]), pairs])
    for indices in ([4, 0, -1, 4], range(1, 9, 3), np.array([5, 2]), torch.tensor([5, -3, 0]), (1, 2), np.arange(3, 8)):
        assert_same_epochs(Subset(pairs, indices), plan="arrays", batch_size=2, shuffle=True)
        assert_same_epochs(Subset(Subset(joined, indices), [1, 0, -1]), plan="arrays", batch_size=2)
    assert_same_epochs(joined, plan="arrays", batch_size=5, shuffle=True, workers=1)
    assert_same_epochs(joined, plan="arrays", batch_size=5, sampler=[48, -1, -49, 22, 23, 25, 26])
    mixed = ConcatDataset([pairs, TensorDataset(filled(4, 12, dtype=torch.float64), filled(4, dtype=torch.int64))])
    assert_same_epochs(mixed, plan="python", batch_size=5, sampler=[1, 2, 24])


def test_a_subset_may_change_between_epochs(pairs):
    subset = Subset(pairs, list(range(10)))
    loader = DataLoader(subset, 4)
    list(loader)
    subset.indices.reverse()
    assert_same(list(loader), list(TorchLoader(subset, 4)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "bad", [23, -24, 1.0, "0", None, [0], [0, 1], slice(0, 2), True, np.bool_(1), torch.tensor([3])]
)
def test_an_odd_index_does_what_it_does_with_torch(pairs, bad, workers):
    subset = Subset(pairs, list(range(23)))
    for dataset in (pairs, subset, ConcatDataset([pairs]), pairs.tensors[0], pairs.tensors[0].numpy()):
        found = []
        for kind in (DataLoader, TorchLoader):
            loader = kind(
                dataset, 2, sampler=[0, 1, bad, bad, 3, bad, 4, 5], num_workers=workers * (kind is DataLoader)
            )
            iterator = iter(loader)
            outcomes = []
            for _ in range(4):
                try:
                    outcomes.append(next(iterator))
                except Exception as error:
                    outcomes.append(type(error))
            found.append(outcomes)
        assert_same(*found)


@pytest.mark.parametrize(
    "container", [tuple, iter, set, np.array, torch.tensor, lambda rows: map(int, rows), dict.fromkeys]
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_indices_in_any_container(pairs, container, workers):
    class Batches:
        def __iter__(self):
            return iter([container([1, 2, 5]), container([4, 0]), container([22])])

        def __len__(self):
            return 3

    for dataset in (pairs, Subset(pairs, range(23)), ConcatDataset([pairs, pairs]), pairs.tensors[0]):
        ours = DataLoader(dataset, batch_sampler=Batches(), num_workers=workers)
        assert_same(list(ours), list(TorchLoader(dataset, batch_sampler=Batches())))


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_rows_are_skipped_and_replaced_as_in_python(pairs, policy):
    for workers in (0, 1):
        epochs = []
        for lower in ("auto", "never"):
            sampler = [0, 1, 99, 3, -50, 5, 6, 7, 8]
            loader = DataLoader(pairs, 2, sampler=sampler, on_error=policy, lower=lower, num_workers=workers)
            epochs.append([list(loader), list(loader.errors)])
        assert_same(*epochs)


def test_empty_batches_raise_what_torch_raises(pairs):
    for dataset in (pairs, pairs.tensors[0], Subset(pairs, [0])):
        ours, theirs = (kind(dataset, batch_sampler=[[], [0]]) for kind in (DataLoader, TorchLoader))
        assert error_of(lambda ours=ours: list(ours)) is error_of(lambda theirs=theirs: list(theirs)) is not None
        assert list(DataLoader(Subset(dataset, []), 4)) == list(TorchLoader(Subset(dataset, []), 4)) == []


def test_generators_are_where_torch_has_them_after_every_batch(pairs):
    for arguments in (
        {"shuffle": True},
        {"shuffle": True, "drop_last": True},
        {"sampler": "replacement"},
        {"sampler": "weighted"},
        {"sampler": "many"},
        {"sampler": "few"},
    ):
        trails = []
        for kind in (DataLoader, TorchLoader):
            torch.manual_seed(4)
            generator = torch.Generator().manual_seed(8)
            samplers = {
                "replacement": lambda g=generator: RandomSampler(pairs, replacement=True, generator=g),
                "weighted": lambda g=generator: WeightedRandomSampler([1.0] * 23, 30, generator=g),
                "many": lambda g=generator: RandomSampler(pairs, num_samples=50, generator=g),
                "few": lambda g=generator: RandomSampler(pairs, num_samples=8, generator=g),
            }
            options = dict(arguments)
            if "sampler" in options:
                options["sampler"] = samplers[options["sampler"]]()
            loader = kind(pairs, 4, generator=generator, **options)
            trail = []
            for _ in range(2):
                iterator = iter(loader)
                for batch in iterator:
                    trail.append((batch, generator.get_state(), random_states()))
                trail.append(([], generator.get_state(), random_states()))
            trails.append(trail)
        assert_same(*trails)


def test_what_stays_in_python_and_why(pairs):
    class Own(TensorDataset):
        pass

    class OwnTensor(torch.Tensor):
        pass

    cases = [
        (Own(*pairs.tensors), "Own"),
        (TensorDataset(filled(4, 3).requires_grad_()), "gradients"),
        (TensorDataset(filled(4, 3).as_subclass(OwnTensor)), "OwnTensor"),
        (TensorDataset(filled(4, 3).to_sparse()), "not a plain CPU tensor"),
        (TensorDataset(filled(4, 3, dtype=torch.complex64).conj()), "not a plain CPU tensor"),
        (np.arange(5.0), "one-dimensional array"),
        (np.array([["a"], ["b"]]), "ndarray"),
        (filled(4, 3).numpy().astype(">f4"), "ndarray"),
        (list(range(5)), "list is not a dataset that the engine knows"),
    ]
    for dataset, why in cases:
        loader = DataLoader(dataset, 2)
        assert plan_of(loader) == "python"
        assert why in loader.explain()
        with pytest.raises(ConfigError, match="read"):
            DataLoader(dataset, 2, lower="require")
    for options, why in (
        ({"collate_fn": list}, "collate_fn is not torch's"),
        ({"batch_size": None}, "turns off batching"),
        ({"num_workers": 1, "worker_init_fn": print}, "worker_init_fn"),
        ({"lower": "never"}, 'lower="never"'),
    ):
        assert plan_of(DataLoader(pairs, **options)) == "python"
        assert why in DataLoader(pairs, **options).explain()
    assert "gather" in DataLoader(pairs, lower="require").explain()


def test_gradients_still_flow_where_rows_have_them():
    weights = filled(6, 3).requires_grad_()
    for batch in DataLoader(TensorDataset(weights), 4):
        batch[0].sum().backward()
    assert weights.grad is not None and bool((weights.grad == 1).all())


def _made_dataset(dice: random.Random):
    count, dtype = dice.randint(1, 30), dice.choice(DTYPES)
    row = [dice.randint(0, 4) * dice.choice([1, 1, 9]) for _ in range(dice.randint(0, 3))]
    kind = dice.choice(["set", "tensor", "array", "two"])
    data = filled(count, *row, dtype=dtype)
    if kind == "array" and dtype is not torch.bfloat16:
        dataset = data.numpy()
    elif kind == "tensor":
        dataset = data
    else:
        dataset = TensorDataset(data, *([filled(count)] if kind == "two" else []))
    for _ in range(dice.randint(0, 2)):
        size = len(dataset)
        if dice.random() < 0.4:
            dataset = ConcatDataset([dataset] * dice.randint(1, 3))
        else:
            picked = [dice.randrange(-size, size) for _ in range(dice.randint(1, 25))]
            dataset = Subset(dataset, dice.choice([list, np.array, torch.tensor, tuple])(picked))
    return dataset


def _made_options(dice: random.Random, dataset) -> dict:
    size, options = len(dataset), {"batch_size": dice.randint(1, 9), "drop_last": dice.random() < 0.3}
    order = dice.choice(["none", "shuffle", "generator", "list", "weighted", "replacement", "distributed", "batches"])
    if order in ("shuffle", "generator"):
        options["shuffle"] = True
    if order == "generator":
        options["generator"] = torch.Generator().manual_seed(dice.randrange(99))
    elif order == "list":
        options["sampler"] = [
            dice.randint(-size - (dice.random() < 0.03), size - 1) for _ in range(dice.randint(0, 30))
        ]
    elif order == "weighted":
        options["sampler"] = WeightedRandomSampler([1.0] * size, dice.randint(1, 40))
    elif order == "replacement":
        options["sampler"] = RandomSampler(dataset, replacement=True, num_samples=dice.randint(1, 40))
    elif order == "distributed":
        options["sampler"] = DistributedSampler(dataset, 3, dice.randint(0, 2), shuffle=dice.random() < 0.5)
    elif order == "batches":
        del options["batch_size"], options["drop_last"]
        options["batch_sampler"] = [
            [dice.randrange(size) for _ in range(dice.randint(1, 7))] for _ in range(dice.randint(0, 6))
        ]
    return options


@pytest.mark.parametrize("group", range(8))
def test_random_cases_are_torchs(group):
    lowered = 0
    for number in range(FIRST + group, FIRST + CASES, 8):
        runs = []
        for kind in (DataLoader, TorchLoader):
            dice = random.Random(number)
            dataset = _made_dataset(dice)
            options = _made_options(dice, dataset)
            workers, lives_on, stop = dice.choice([0, 0, 1, 2]), dice.random() < 0.3, dice.random() < 0.2
            if kind is DataLoader and plan_of(DataLoader(dataset, **options)) == "arrays":
                options |= {"num_workers": workers, "persistent_workers": workers > 0 and lives_on}
                lowered += 1
            torch.manual_seed(number)
            loader = kind(dataset, **options)
            epochs = []
            for epoch in range(2):
                if isinstance(loader.sampler, DistributedSampler):
                    loader.sampler.set_epoch(epoch)
                try:
                    for batch in loader:
                        epochs.append(batch)
                        if stop:
                            break
                except Exception as error:
                    epochs.append(type(error))
            generator = options.get("generator")
            runs.append((epochs, random_states(), generator and generator.get_state(), loader.persistent_workers))
        print("case", number, options)
        if workers and (lives_on or stop) and ("shuffle" in options or "sampler" in options):
            continue  # torch's workers change the draws: one seed for all epochs, indices requested before a break
        assert_same(runs[0][0], runs[1][0])
        if not (stop or runs[0][3]):
            assert_same(runs[0][1:3], runs[1][1:3])
    assert lowered > CASES // 8 // 3
