# SPDX-License-Identifier: Apache-2.0
"""Known problems of torch's DataLoader: uninformative errors, and bad samples that end the run."""

from __future__ import annotations

import errno
import threading

import pytest
import torch
from loader_datasets import (
    Arguments,
    BrokenGenerator,
    Failing,
    Files,
    FlakyStream,
    Numbers,
    Unpicklable,
    flatten,
)
from torch.utils.data import Subset

import feedline
from feedline import DataLoader


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_with_its_own_arguments_keeps_its_type(num_workers):
    """Pain 8: no `TypeError: __init__() missing`, and no RuntimeError instead of it."""
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


@pytest.mark.parametrize(
    "error",
    [OSError("broken"), AttributeError("broken"), NameError("broken"), ImportError("broken"), KeyError("broken"),
     SyntaxError("broken"), TimeoutError("broken"), RuntimeError("broken")],
    ids=repr,
)  # fmt: skip
def test_an_error_reports_which_worker_in_its_message(error):
    """Pain 8: in the message, as in torch, and not in a note."""
    with pytest.raises(type(error), match=r"Caught .* in DataLoader worker process 0") as caught:
        next(iter(DataLoader(Failing(8, {0}, error), num_workers=1, worker_method="thread")))
    assert "Caught" in str(caught.value)


def _cannot_start(worker):
    raise OSError(f"worker {worker} finds no disk")


def test_a_worker_whose_start_failed_gives_no_batches():
    """Pain 8: the same error for every batch, not data from a worker that was not set up."""
    iterator = iter(DataLoader(Numbers(), batch_size=4, num_workers=1, worker_init_fn=_cannot_start))
    for _ in range(3):
        with pytest.raises(OSError, match="worker 0 finds no disk"):
            next(iterator)


class _Local:
    def make(self):
        class LocalError(Exception):
            pass

        return LocalError("from nowhere")


def test_an_exception_that_cannot_be_pickled_still_arrives():
    """torch's loader hangs here, because the queue's thread cannot pickle it."""
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
    """Pain 29: batches stay full, and the same for any number of workers."""
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
def test_a_stream_continues_after_a_broken_item_but_a_broken_generator_never_ends_silently(num_workers):
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
