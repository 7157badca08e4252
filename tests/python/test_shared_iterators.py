# SPDX-License-Identifier: Apache-2.0
"""Threads that share an iterator receive each row of an epoch once in total, and all of them get StopIteration."""

import threading

import numpy as np
import pytest

import feedline

ROWS = 40


def taken_by_threads(iterator, threads=3):
    rows, failures = [], []

    def take():
        try:
            for batch in iterator:
                rows.extend(np.asarray(batch[0] if isinstance(batch, list | tuple) else batch).tolist())
        except Exception as error:
            failures.append(error)

    running = [threading.Thread(target=take) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert not any(thread.is_alive() for thread in running)
    assert not failures
    return sorted(rows)


@pytest.mark.parametrize("epochs", [None, 3])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_loaders_iterator(epochs, in_order):
    dataset = feedline.arrays(x=np.arange(ROWS))
    wanted = sorted(list(range(ROWS)) * (epochs or 1))
    for seed in range(20):
        with dataset.loader(
            4, shuffle=True, seed=seed, output="numpy", num_workers=2, epochs=epochs, in_order=in_order
        ) as loader:
            assert taken_by_threads(iter(loader)) == wanted
            assert taken_by_threads(iter(loader)) == wanted
            assert loader.epoch == 2 * (epochs or 1) - 1 or loader.epoch == 2 * (epochs or 1)


def test_a_later_iterator_ends_the_one_that_a_thread_waits_at():
    loader = feedline.arrays(x=np.arange(ROWS)).loader(4, output="numpy")
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(feedline.Error, match="ended this iterator"):
        next(first)
    assert sorted(row for batch in second for row in batch.x.tolist()) == list(range(ROWS))


@pytest.mark.parametrize("kind", ["map", "stream", "tensors", "feedline"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lower": "never"},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "worker_method": "thread"},
        {"num_workers": 2, "in_order": False},
    ],
    ids=str,
)
def test_an_iterator_of_the_drop_in(kind, options):
    torch = pytest.importorskip("torch")

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return ROWS

        def __getitem__(self, index):
            return torch.tensor(index)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            step, first = (worker.num_workers, worker.id) if worker else (1, 0)
            return (torch.tensor(i) for i in range(first, ROWS, step))

    datasets = {
        "map": Numbers,
        "stream": Stream,
        "tensors": lambda: torch.utils.data.TensorDataset(torch.arange(ROWS)),
        "feedline": lambda: feedline.arrays(x=np.arange(ROWS)),
    }
    loader = feedline.DataLoader(datasets[kind](), batch_size=4, shuffle=kind != "stream", **options)
    for _ in range(3):
        assert taken_by_threads(iter(loader)) == list(range(ROWS))
