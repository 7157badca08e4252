# SPDX-License-Identifier: Apache-2.0
"""Programs that replace methods of torch's iterators: an adapter for SpeechBrain, torch's iterators for others."""

from __future__ import annotations

import functools
import logging
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset, TensorDataset
from torch.utils.data import dataloader as torch_dataloader

import feedline

BASE = torch_dataloader._BaseDataLoaderIter


class Rows(Dataset[int]):
    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> int:
        self.read.append(index)
        return index


class Saveable(feedline.DataLoader[Any]):
    """SpeechBrain's SaveableDataLoader, over feedline.DataLoader instead of torch's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._speechbrain_recovery_skip_to: int | None = None
        self._speechbrain_iterator: Any = None

    def __iter__(self) -> Any:
        iterator = super().__iter__()
        self._speechbrain_iterator = iterator
        return iterator

    def saved(self) -> int | None:
        return None if self._speechbrain_iterator is None else self._speechbrain_iterator._num_yielded


@pytest.fixture
def speechbrain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its patch of torch's base iterator, as in speechbrain/dataio/dataloader.py."""
    scope: dict[str, Any] = {"__name__": "speechbrain.dataio.dataloader", "old": BASE.__init__, "functools": functools}
    exec(
        """
def new_init(self, loader, *args, **kwargs):
    old(self, loader, *args, **kwargs)
    skip = getattr(loader, "_speechbrain_recovery_skip_to", None)
    if skip is not None:
        for i in range(skip):
            next(self._sampler_iter)
        self._num_yielded = skip
        loader._speechbrain_recovery_skip_to = None

def new_reset(self, loader, first_iter=False, *args, **kwargs):
    if not first_iter:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
""",
        scope,
    )
    monkeypatch.setattr(BASE, "__init__", scope["new_init"])
    monkeypatch.setattr(BASE, "_reset", scope["new_reset"])


def flat(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in (batch[0] if isinstance(batch, list) else batch)]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
@pytest.mark.parametrize("native", [False, True])
def test_speechbrains_recovered_epochs_skip_what_was_seen(
    speechbrain: None, options: dict[str, Any], native: bool
) -> None:
    def made() -> Saveable:
        data = TensorDataset(torch.arange(24)) if native else Rows()
        torch.manual_seed(3)
        return Saveable(data, batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(7), **options)

    first = made()
    whole = flat(first)
    first = made()
    batches = iter(first)
    for _ in range(4):
        next(batches)
    assert first.saved() == 4
    recovered = made()
    recovered._speechbrain_recovery_skip_to = first.saved()
    batches = iter(recovered)
    assert flat([next(batches) for _ in range(3)]) == whole[8:14]
    assert recovered.saved() == 7, "saved by a second checkpoint"
    again = made()
    again._speechbrain_recovery_skip_to = recovered.saved()
    assert flat(again) == whole[14:]
    assert again._speechbrain_recovery_skip_to is None
    assert sorted(flat(again)) == list(range(24)), "the next epoch is complete"
    assert "iterators" not in again.explain()


def test_skipped_samples_are_not_read(speechbrain: None) -> None:
    data = Rows()
    loader = Saveable(data, batch_size=2)
    loader._speechbrain_recovery_skip_to = 10
    assert flat(loader) == data.read == list(range(20, 24))


@pytest.mark.parametrize("method", ["__init__", "_next_index"])
@pytest.mark.parametrize("native", [False, True])
def test_other_replacements_get_torchs_iterators(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str, native: bool
) -> None:
    calls: list[str] = []
    before = getattr(BASE, method)

    @functools.wraps(before)
    def replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(method)
        return before(self, *args, **kwargs)

    monkeypatch.setattr(BASE, method, replacement)
    loader = feedline.DataLoader(TensorDataset(torch.arange(24)) if native else Rows(), batch_size=4)
    with caplog.at_level(logging.WARNING, logger="feedline"):
        assert flat(loader) == list(range(24))
    assert calls and type(iter(loader)).__module__ == "torch.utils.data.dataloader"
    assert f"another program replaced _BaseDataLoaderIter.{method} (by {__name__})" in caplog.text
    assert (
        f"torch's iterators are used, because another program replaced _BaseDataLoaderIter.{method} (by {__name__})"
        in loader.explain()
    )


def test_a_replaced_next_is_run_by_our_iterators_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like InfoBatch, which removes indices from each batch."""
    before = BASE.__next__
    monkeypatch.setattr(BASE, "__next__", lambda self: before(self) + 100)
    for workers in (0, 2):
        loader = feedline.DataLoader(Rows(), batch_size=4, num_workers=workers)
        assert flat(loader) == list(range(100, 124))
        assert "iterators" not in loader.explain()
    tensor = feedline.DataLoader(torch.arange(24), batch_size=4)  # type: ignore[arg-type]
    assert flat(tensor) == list(range(100, 124))
    assert "torch's iterators are used" in tensor.explain()


def test_a_replaced_iter_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like tracers, which replace DataLoader.__iter__."""
    before, calls = TorchLoader.__iter__, []

    def timed(self: Any) -> Any:
        calls.append(type(self))
        yield from before(self)

    monkeypatch.setattr(TorchLoader, "__iter__", timed)
    for options in ({}, {"num_workers": 2, "persistent_workers": True}):
        loader = feedline.DataLoader(Rows(), batch_size=4, **options)
        assert flat(loader) == flat(loader) == list(range(24))
    assert calls == [feedline.DataLoader] * 4


def test_torchs_own_methods_are_no_replacements() -> None:
    from feedline.torch_loader import foreign_patches

    assert foreign_patches.replaced(True) == []
