# SPDX-License-Identifier: Apache-2.0
"""DataLoader(settings=): the values that the rules choose on different machines, the precedence of given arguments, and
tuned files.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import ChainDataset, IterableDataset, TensorDataset, get_worker_info

from feedline import ConfigError, DataLoader, SettingsWarning
from feedline.loader import tuned_settings
from feedline.torch_loader.options import auto_options as choices

MIB = 1 << 20


class Rows:
    """Samples of `values` float32 numbers."""

    def __init__(self, length: int = 10_000, values: int = 4) -> None:
        self.length, self.values = length, values

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= self.length:
            raise IndexError(index)
        return torch.full((self.values,), float(index))


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(8))


Machine = Any


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Replaces the facts from machine/, except for those that a test changes: 64 CPUs, no GPU, one rank."""
    facts = SimpleNamespace(usable=64, quota=None, ranks=1, gpus=0, left=64 << 30, torch_has_gpu=False, cores=None)
    limits = choices.limits
    monkeypatch.setattr(limits, "usable_cpus", lambda: facts.usable)
    monkeypatch.setattr(limits, "usable_cores", lambda: facts.cores)
    monkeypatch.setattr(limits, "cpu_quota", lambda: facts.quota)
    monkeypatch.setattr(limits, "sharing_ranks", lambda: facts.ranks)
    monkeypatch.setattr(limits, "share_of_cpus", lambda: max(1, facts.usable // facts.ranks))
    monkeypatch.setattr(limits, "share_of_memory_left", lambda: facts.left // facts.ranks)
    monkeypatch.setattr(choices.gpu_facts, "gpu_facts", lambda: ({"gpus": facts.gpus}, None))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: facts.torch_has_gpu)
    return facts


def auto(dataset: Any = None, batch_size: int = 4, **arguments: Any) -> DataLoader[Any]:
    return DataLoader(Rows() if dataset is None else dataset, batch_size, settings="auto", **arguments)


def shown(loader: DataLoader[Any]) -> dict[str, str]:
    """Returns the values and reasons that `explain()` shows."""
    lines = [line.split("settings", 1)[1].strip() for line in loader.explain().splitlines() if "  settings " in line]
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    ("usable", "quota", "ranks", "workers", "words"),
    [
        (1, None, 1, 1, "1 usable CPU, one of them"),
        (2, None, 1, 1, "2 usable CPUs, one of them"),
        (64, None, 1, 63, "64 usable CPUs, one of them"),
        (3, 2.5, 1, 2, "3 usable CPUs (a quota of 2.5), one of them"),
        (64, 100.0, 1, 63, "64 usable CPUs, one of them"),
        (64, None, 8, 7, "64 usable CPUs, shared by 8 ranks, one of them"),
        (4, None, 8, 1, "4 usable CPUs, shared by 8 ranks, one of them"),
    ],
)
def test_workers_are_the_cpus_but_one(
    machine: Machine, usable: int, quota: float | None, ranks: int, workers: int, words: str
) -> None:
    machine.usable, machine.quota, machine.ranks = usable, quota, ranks
    loader = auto()
    assert loader.num_workers == workers
    assert shown(loader)["num_workers"] == f"{workers}: {words} for the training loop"
    assert loader.num_workers == DataLoader(Rows(), 4, num_workers="auto").num_workers


def test_workers_where_more_would_be_idle_or_read_twice(machine: Machine) -> None:
    for dataset, workers, words in (
        (Rows(9), 3, "an epoch has 3 batches"),
        (Rows(3), 1, "an epoch has 1 batch"),
        (Stream(), 1, "could not determine whether"),
        (TensorDataset(torch.zeros(8, 2)), 0, "in memory"),
        (list(range(8)), 0, "in memory"),
    ):
        loader = auto(dataset)
        assert loader.num_workers == workers and words in shown(loader)["num_workers"], words
    assert auto(Rows(100), 1, batch_sampler=[[1, 2], [3]]).num_workers == 2
    assert auto(Rows(100), sampler=range(20)).num_workers == 5
    assert auto(Rows(100), None).num_workers == 63, "without batches nobody counts them"


class Sharing(Stream):
    def __iter__(self) -> Any:
        return iter(range(info.id, 8, info.num_workers) if (info := get_worker_info()) else range(8))


class AskingByModule(IterableDataset):
    def __iter__(self) -> Any:
        return (i for i in range(8) if self.is_mine(i))

    def is_mine(self, index: int) -> bool:
        info = torch.utils.data.get_worker_info()
        return info is None or index % info.num_workers == info.id


class Around(IterableDataset):
    def __init__(self, *inner: Any) -> None:
        self.inner = list(inner)

    def __iter__(self) -> Any:
        for one in self.inner:
            yield from one


def share_out(worker: int) -> None:
    info = get_worker_info()
    info.dataset.first = info.id


def seed_each(worker: int) -> None:
    torch.manual_seed(worker)


@pytest.mark.parametrize(
    ("dataset", "init", "words"),
    [
        (Sharing(), None, "Sharing queries the worker's number"),
        (AskingByModule(), None, "AskingByModule queries the worker's number"),
        (Around(Sharing(), AskingByModule()), None, "Sharing queries the worker's number"),
        (ChainDataset([Around(Sharing()), Sharing()]), None, "Sharing queries the worker's number"),
        (Stream(), share_out, "worker_init_fn queries the worker's number"),
        (Stream(), None, ""),
        (Stream(), seed_each, ""),
        (Around(Sharing(), Stream()), None, ""),
        (Around(), None, ""),
    ],
)
def test_streams_that_share_themselves_out_have_all_workers(
    machine: Machine, caplog: pytest.LogCaptureFixture, dataset: Any, init: Any, words: str
) -> None:
    """In the other cases, each worker may read all samples; num_workers="auto" uses the same rule."""
    workers = 63 if words else 1
    loader = auto(dataset, worker_init_fn=init)
    assert loader.num_workers == workers
    assert (words or "could not determine whether") in shown(loader)["num_workers"]
    with caplog.at_level(logging.INFO, "feedline"):
        assert DataLoader(dataset, 4, num_workers="auto", worker_init_fn=init).num_workers == workers
    assert (words or "could not determine whether") in caplog.text


def test_streams_give_every_sample_once_whatever_the_machine_has(machine: Machine) -> None:
    machine.usable = 4
    for dataset in (Sharing(), Stream(), AskingByModule()):
        loader = DataLoader(dataset, 2, num_workers="auto")
        assert loader.num_workers == (1 if type(dataset) is Stream else 3)
        assert sorted(value for batch in loader for value in batch.tolist()) == list(range(8))


def test_pipelines_of_webdataset_share_shards_out(machine: Machine, tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    shards = str(tmp_path / "{0..3}.tar")
    assert DataLoader(wds.WebDataset(shards, shardshuffle=False), None, num_workers="auto").num_workers == 63
    alone = wds.DataPipeline(wds.SimpleShardList(shards), wds.tarfile_to_samples())
    assert DataLoader(alone, None, num_workers="auto").num_workers == 1
    divided = wds.DataPipeline(wds.SimpleShardList(shards), wds.split_by_worker, wds.tarfile_to_samples())
    assert DataLoader(divided, None, num_workers="auto").num_workers == 63


def test_workers_live_on_where_there_are_any(machine: Machine) -> None:
    assert auto().persistent_workers and "not in every epoch" in shown(auto())["persistent_workers"]
    loader = auto(TensorDataset(torch.zeros(8, 2)))
    assert loader.persistent_workers is False and loader.prefetch_factor is None
    assert shown(loader)["persistent_workers"] == "False: there are no workers"
    assert len(list(loader)) == 2
    loader = auto(num_workers=0)
    assert (loader.num_workers, loader.persistent_workers) == (0, False)
    assert shown(loader)["num_workers"] == "0: as given"


@pytest.mark.parametrize(
    ("gpus", "torch_has_gpu", "device", "pinned", "words"),
    [
        (0, False, None, False, "no NVIDIA GPU"),
        (1, True, None, True, "page-locked"),
        (1, True, "cuda", True, "page-locked"),
        (1, True, "cpu", False, "batches stay on cpu"),
        (1, False, None, False, "torch cannot use a GPU"),
    ],
)
def test_pinning_is_for_gpus(
    machine: Machine, gpus: int, torch_has_gpu: bool, device: str | None, pinned: bool, words: str
) -> None:
    machine.gpus, machine.torch_has_gpu = gpus, torch_has_gpu
    loader = auto(device=device)
    assert loader.pin_memory is pinned and words in shown(loader)["pin_memory"]
    assert auto(device=device, pin_memory=not pinned).pin_memory is not pinned


def test_batches_ahead_are_what_the_budget_holds() -> None:
    for budget, batch, workers, ahead, words in (
        (
            100 * MIB,
            MIB,
            4,
            4,
            "holds 25 batches of 1,048,576 bytes for each of 4 workers, and more workers would not help",
        ),
        (12 * MIB, MIB, 4, 3, "holds 3 batches of 1,048,576 bytes for each of 4 workers"),
        (4 * MIB, MIB, 4, 1, "holds 1 batches of 1,048,576 bytes for each of 4 workers"),
        (2 * MIB, MIB, 4, 1, "holds 0 batches of 1,048,576 bytes for each of 4 workers, and the minimum is one"),
        (3 * MIB, MIB, 1, 3, "holds 3 batches of 1,048,576 bytes for one worker"),
        (MIB, 0, 1, 4, "more workers would not help"),
    ):
        choice = choices.batches_ahead(budget, batch, workers)
        assert choice.value == ahead and choice.why.endswith(words), choice


def test_prefetching_follows_the_measured_batches(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    batch = 4 * 40_000 * 4
    for budget, ahead in ((9 * batch, 4), (7 * batch, 3), (batch, 1)):
        machine.usable = 3
        loader = auto(Rows(120, 40_000), memory_budget=budget)
        assert loader.num_workers == 2 and shown(loader)["prefetch_factor"].startswith("2: until the first batch")
        with caplog.at_level(logging.INFO, "feedline"):
            caplog.clear()
            iterator = iter(loader)
            most, seen = 0, []
            for values in iterator:
                seen += values[:, 0].int().tolist()
                most = max(most, len(iterator._queue.tasks)) if len(seen) > 40 else 0
        assert seen == list(range(120))
        assert most <= 2 * ahead and (ahead == 1 or most > 2 * (ahead - 1)), (most, ahead)
        assert shown(loader)["prefetch_factor"].startswith(f"{ahead}: the memory budget of {budget:,} bytes holds")
        assert f"prefetch_factor={ahead}: the memory budget of" in caplog.text
        assert [values[0, 0].item() for values in loader] == list(range(0, 120, 4)), "another epoch, the same workers"
        del iterator, loader


def test_prefetching_changes_no_batches(machine: Machine) -> None:
    machine.usable = 4
    for arguments in ({"in_order": False}, {"prefetch_epochs": True, "seed": 3}, {"worker_method": "thread"}):
        batches = {}
        for settings in ("auto", None):
            workers = {"num_workers": 3, "persistent_workers": True}
            loader = DataLoader(Rows(50, 20_000), 4, shuffle=True, generator=torch.Generator().manual_seed(1),
                                memory_budget=4 * MIB, settings=settings, **workers, **arguments)  # fmt: skip
            batches[settings] = [sorted(int(b[0, 0]) for b in loader) for _ in range(2)]
        assert batches["auto"] == batches[None], arguments
    stream = auto(Stream(), memory_budget=1, num_workers=2)
    assert sorted(value for batch in stream for value in batch.tolist()) == sorted([*range(8), *range(8)])


def test_what_is_given_wins(machine: Machine) -> None:
    machine.gpus, machine.torch_has_gpu = 1, True
    given = {"num_workers": 2, "prefetch_factor": 5, "persistent_workers": False, "pin_memory": False}
    loader = auto(**given)
    assert {name: getattr(loader, name) for name in given} == given
    found = shown(loader)
    assert {name: found[name] for name in given} == {name: f"{value!r}: as given" for name, value in given.items()}
    assert set(found) - set(given) == {"batch_size", "drop_last"}
    assert not any(isinstance(value, choices.NotGiven) for value in vars(DataLoader(Rows())).values())
    plain = DataLoader(Rows())
    assert (plain.num_workers, plain.batch_size) == (0, 1)
    assert plain.pin_memory is False and plain.persistent_workers is False and "settings" not in plain.explain()


def test_each_choice_is_logged_with_its_reason(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "feedline"):
        loader = auto(prefetch_factor=3)
    lines = [record.getMessage().removeprefix("DataLoader over Rows: ") for record in caplog.records]
    assert lines == [f"{name}={text}" for name, text in shown(loader).items() if name != "prefetch_factor"]
    assert len(lines) == 5


def test_a_loader_that_is_rebuilt_chooses_again(machine: Machine) -> None:
    loader = auto(Rows(9))
    arguments = {name: value for name, value in vars(loader).items() if not name.startswith("_")}
    for name in ("batch_size", "sampler", "drop_last"):
        del arguments[name]
    again = type(loader)(**arguments)
    assert (again.num_workers, again.settings) == (3, "auto")
    assert isinstance(again.prefetch_factor, choices.AutomaticPrefetch)


def test_where_it_runs_natively_the_same_word_serves(machine: Machine, folder: Path) -> None:
    import feedline

    machine.usable = 2
    loader = auto(feedline.open(folder).resize((8, 8)))
    assert "native, up to 2 threads" in loader.explain()
    assert shown(loader)["prefetch_factor"] == "2: the engine limits prefetching by size"
    assert sum(len(labels) for _, labels in loader) == 21


# -- tuned files


def tuned(folder: Path, **arguments: Any) -> Path:
    machine = tuned_settings.machine_fingerprint()
    document = {"feedline_settings": 1, "use": "feedline", "machine": machine, "data": {"samples": 10_000}}
    path = folder / "tuned.json"
    path.write_text(json.dumps(document | {"arguments": {"DataLoader": arguments, "loader": None}}))
    return path


def test_a_tuned_file_is_taken(tmp_path: Path) -> None:
    values = {"num_workers": 3, "prefetch_factor": 4, "persistent_workers": True, "pin_memory": False, "batch_size": 7}
    path = tuned(tmp_path, **values)
    for given in (path, str(path)):
        loader = DataLoader(Rows(), settings=given)
        assert {name: getattr(loader, name) for name in values} == values
    assert shown(loader)["num_workers"] == f"3: measured by feedline tune: {path}"
    loader = DataLoader(Rows(), 5, num_workers=0, settings=path)
    assert (loader.num_workers, loader.batch_size, loader.prefetch_factor) == (0, 5, None)
    assert loader.persistent_workers is False
    loader = DataLoader(Rows(), batch_sampler=[[1]], prefetch_factor=6, settings=path)
    assert (loader.batch_size, loader.prefetch_factor, loader.num_workers) == (None, 6, 3)
    with pytest.warns(SettingsWarning, match="the dataset has 11 samples, and had 10000 when measured"):
        DataLoader(Rows(11), settings=path)


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    for wrong in (3, True, b"auto"):
        with pytest.raises(ConfigError, match='settings must be "auto" or the path of a tuned file'):
            DataLoader(Rows(), settings=wrong)
    with pytest.raises(ConfigError, match="'automatic' cannot be read: No such file"):
        DataLoader(Rows(), settings="automatic")
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(ConfigError, match="contains no settings"):
        DataLoader(Rows(), settings=tmp_path / "empty.json")
    path = tuned(tmp_path, num_workers=2)
    document = json.loads(path.read_text())
    document["arguments"] = {"DataLoader": None, "loader": {"num_workers": 2}}
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="own loader"):
        DataLoader(Rows(), settings=path)


@pytest.mark.parametrize(
    ("arguments", "drop_last", "batch_size"),
    [
        ({"batch_size": 4}, "False: all batches are full", "4: yours, because it changes the training"),
        ({"batch_size": 5}, "False: the last batch has 3 of 5 samples; set drop_last=True if", "5: yours"),
        ({"batch_size": 5, "drop_last": True}, "True: the last, smaller batch of each epoch is dropped", "5: yours"),
    ],
)
def test_what_would_change_the_training_is_explained_and_not_changed(machine, arguments, drop_last, batch_size) -> None:
    loader = auto(Rows(8), **arguments)
    found = shown(loader)
    assert found["drop_last"].startswith(drop_last) and found["batch_size"].startswith(batch_size)
    assert "tune --ladder" in found["batch_size"]
    assert (loader.batch_size, loader.drop_last) == (arguments["batch_size"], arguments.get("drop_last", False))


def test_torchs_own_batch_size_is_named_as_such_and_a_batch_sampler_has_none(machine) -> None:
    found = shown(DataLoader(Rows(8), settings="auto"))
    assert found["batch_size"].startswith("1: torch's default, because")
    assert "batch_size" not in shown(DataLoader(Rows(8), batch_sampler=[[0, 1]], settings="auto"))
    streamed = shown(auto(Stream()))
    assert streamed["drop_last"].startswith("False: the last batch may be smaller; set drop_last=True")
