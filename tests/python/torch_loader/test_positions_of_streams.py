# SPDX-License-Identifier: Apache-2.0
"""Streams that count samples: a position set on the dataset is used, and the state has the version of its library."""

from __future__ import annotations

import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import IterableDataset, get_worker_info

import feedline

TOTAL, BATCH = 100, 4


class LitStream(IterableDataset[int]):
    """The methods of LitData's StreamingDataset over numbers, which are assigned to workers batch by batch."""

    def __init__(self) -> None:
        self._state_dict: dict[str, Any] | None = None
        self.current_epoch, self.batch_size, self.num_workers = 1, 1, 1

    def set_batch_size(self, size: int) -> None:
        self.batch_size = size

    def set_num_workers(self, number: int) -> None:
        self.num_workers = number or 1

    def set_epoch(self, epoch: int) -> None:
        if self._state_dict is None:
            self.current_epoch = epoch

    def state_dict(self, num_samples_yielded: int, num_workers: int, batch_size: int) -> dict[str, Any]:
        state = {
            "num_samples_yielded": num_samples_yielded,
            "num_workers": num_workers or 1,
            "batch_size": batch_size,
            "current_epoch": self.current_epoch,
        }
        if self._state_dict is not None:
            self._state_dict.update(state)
            return self._state_dict
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state_dict = state

    def reset_state_dict(self) -> None:
        self._state_dict = None

    def __iter__(self) -> Any:
        first, epoch = 0, self.current_epoch
        if self._state_dict is not None:
            first, epoch = self._state_dict["num_samples_yielded"], self._state_dict["current_epoch"]
        info = get_worker_info()
        mine, of = (info.id, info.num_workers) if info else (0, 1)
        for sample in range(first, TOTAL):
            if sample // BATCH % of == mine:
                yield 1000 * epoch + sample
        if info is None:
            self.current_epoch = epoch + 1
            self.reset_state_dict()


class MosaicStream(IterableDataset[int]):
    """The methods of MosaicML's StreamingDataset, without workers."""

    replication = None

    def __init__(self) -> None:
        self.next_epoch = 0
        self.resumed: dict[str, Any] | None = None

    def _where(self, epoch: int) -> tuple[int, int]:
        if self.resumed is None or self.resumed["epoch"] < epoch:
            return epoch, 0
        return self.resumed["epoch"], self.resumed["sample_in_epoch"]

    def state_dict(self, num_samples: int, from_beginning: bool) -> dict[str, Any]:
        epoch, offset = self._where(self.next_epoch - 1)
        return {"epoch": epoch, "sample_in_epoch": num_samples if from_beginning else offset + num_samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.resumed = json.loads(json.dumps(state))

    def __iter__(self) -> Any:
        epoch, first = self._where(self.next_epoch)
        self.next_epoch = epoch + 1
        yield from (1000 * epoch + sample for sample in range(first, TOTAL))


def flat(loader: Any) -> list[int]:
    return [int(sample) for batch in loader for sample in batch]


def told(samples: int, epoch: int) -> dict[str, Any]:
    return {"num_samples_yielded": samples, "num_workers": 2, "batch_size": BATCH, "current_epoch": epoch}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}])
def test_a_dataset_with_a_resume_position_resumes_once(workers: int, options: dict[str, Any]) -> None:
    data = LitStream()
    state = told(44, 3) | {"num_workers": workers or 1}
    data.load_state_dict(state)
    loader = feedline.DataLoader(data, batch_size=BATCH, num_workers=workers, **(options if workers else {}))
    assert flat(loader) == list(range(3044, 3100))
    assert flat(loader) == list(range(4000, 4100))
    assert flat(loader) == list(range(5000, 5100))
    assert state == told(44, 3) | {"num_workers": workers or 1}, "the caller's dictionary"
    data.load_state_dict(state)
    assert flat(loader)[:3] == [3044, 3045, 3046]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_with_set_epoch_gets_its_epoch(workers: int) -> None:
    data = LitStream()
    data.set_epoch(6)
    loader = feedline.DataLoader(data, batch_size=BATCH, num_workers=workers)
    torchs = TorchLoader(LitStream(), batch_size=BATCH, num_workers=workers)
    torchs.dataset.set_epoch(6)  # type: ignore[attr-defined]
    assert flat(loader) == flat(torchs)
    assert flat(loader)[0] == 7000
    data.set_epoch(20)
    assert [flat(loader)[0], flat(loader)[0]] == [20000, 21000]
    loader.set_epoch(40)
    assert flat(loader)[0] == 40000


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_states_within_such_an_epoch_continue_exactly(workers: int) -> None:
    data = LitStream()
    data.load_state_dict(told(44, 3) | {"num_workers": workers or 1})
    loader = feedline.DataLoader(data, batch_size=BATCH, num_workers=workers)
    batches = iter(loader)
    states = [loader.state_dict()]
    for _ in range(3):
        next(batches)
        states.append(json.loads(json.dumps(loader.state_dict())))
    assert [int(x) for batch in batches for x in batch] == list(range(3056, 3100))
    for delivered, state in enumerate(states):
        fresh = feedline.DataLoader(LitStream(), batch_size=BATCH, num_workers=workers)
        fresh.load_state_dict(state)
        first = 3044 + BATCH * delivered
        assert flat(fresh) == list(range(first, 3100)), delivered
        assert flat(fresh)[0] == 4000


def test_a_loaders_own_state_is_stronger_than_the_datasets() -> None:
    loader = feedline.DataLoader(LitStream(), batch_size=BATCH)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    data = LitStream()
    data.load_state_dict(told(44, 3))
    fresh = feedline.DataLoader(data, batch_size=BATCH)
    fresh.load_state_dict(state)
    assert flat(fresh) == list(range(1004, 1100))
    assert flat(fresh)[0] == 2000


def test_mosaics_datasets_with_a_resume_position() -> None:
    data = MosaicStream()
    data.load_state_dict({"epoch": 2, "sample_in_epoch": 44})
    loader = feedline.DataLoader(data, batch_size=BATCH)
    batches = iter(loader)
    assert next(batches).tolist() == [2044, 2045, 2046, 2047]
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [int(x) for batch in batches for x in batch]
    fresh = feedline.DataLoader(MosaicStream(), batch_size=BATCH)
    fresh.load_state_dict(state)
    assert flat(fresh) == rest == list(range(2048, 2100))
    assert flat(fresh)[0] == flat(loader)[0] == 3000


# -- versions


def of_library(monkeypatch: pytest.MonkeyPatch, module: str, version: str) -> type[LitStream]:
    stand_in = types.ModuleType(module)
    stand_in.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, stand_in)
    return type("StreamingDataset", (LitStream,), {"__module__": f"{module}.streaming.dataset"})


@pytest.mark.parametrize(("module", "name"), [("litdata", "litdata"), ("streaming", "mosaicml-streaming")])
def test_states_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    loader = feedline.DataLoader(of_library(monkeypatch, module, "0.2.45")(), batch_size=BATCH)
    between = loader.state_dict()
    batches = iter(loader)
    next(batches)
    within = json.loads(json.dumps(loader.state_dict()))
    assert (within["library"], within["library_version"]) == (name, "0.2.45")
    rest = [int(x) for batch in batches for x in batch]
    after = loader.state_dict()

    same = feedline.DataLoader(of_library(monkeypatch, module, "0.2.45")(), batch_size=BATCH)
    same.load_state_dict(within)
    assert flat(same) == rest
    other = of_library(monkeypatch, module, "0.2.76")
    with pytest.raises(feedline.ConfigError, match=rf"{name} 0\.2\.45, but {name} 0\.2\.76 is installed"):
        feedline.DataLoader(other(), batch_size=BATCH).load_state_dict(within)
    for state, first in ((between, 1000), (after, 2000)):  # no sample of their epoch was delivered
        fresh = feedline.DataLoader(other(), batch_size=BATCH)
        fresh.load_state_dict(state)
        assert flat(fresh)[0] == first


def test_states_without_a_version_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loader = feedline.DataLoader(of_library(monkeypatch, "litdata", "0.2.76")(), batch_size=BATCH)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    del state["library"]
    with caplog.at_level(logging.WARNING, logger="feedline"):
        fresh = feedline.DataLoader(of_library(monkeypatch, "litdata", "0.2.76")(), batch_size=BATCH)
        fresh.load_state_dict(state)
    assert "does not contain the version of litdata" in caplog.text
    assert flat(fresh)[0] == 1004


@pytest.mark.parametrize("workers", [0, 2])
def test_litdatas_own_dataset(tmp_path: Path, workers: int) -> None:
    litdata = pytest.importorskip("litdata")
    from litdata.streaming.cache import Cache

    cache = Cache(input_dir=str(tmp_path), chunk_size=16)
    for i in range(TOTAL):
        cache[i] = i
    cache.done()
    cache.merge()

    def loader() -> Any:
        data = litdata.StreamingDataset(str(tmp_path), shuffle=True, seed=3)
        return feedline.DataLoader(data, batch_size=BATCH, num_workers=workers)

    whole = loader()
    batches = iter(whole)
    first = [int(x) for _ in range(11) for x in next(batches)]
    of_dataset = whole.dataset.state_dict(44, workers, BATCH)
    rest = [int(x) for batch in batches for x in batch]
    assert sorted(first + rest) == list(range(TOTAL))
    continued = loader()
    continued.dataset.load_state_dict(of_dataset)
    assert flat(continued) == rest
    assert sorted(flat(continued)) == list(range(TOTAL))
    assert continued.state_dict()["library_version"] == litdata.__version__
