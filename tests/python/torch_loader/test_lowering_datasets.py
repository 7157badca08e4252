# SPDX-License-Identifier: Apache-2.0
"""Feedline's datasets in loaders of torch's kind: lowered or not, samples are drawn again in every epoch."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
import torch
from conftest import training
from lowered import assert_same, plan_of
from torch.utils.data import BatchSampler, ConcatDataset, SequentialSampler, Subset
from torch.utils.data import DataLoader as TorchLoader

import feedline
from feedline import DataLoader


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "This DataLoader will create")  # torch prints this on a machine with few CPUs
        yield


@pytest.fixture
def crops(folder: Path) -> feedline.Dataset:
    return feedline.open(folder).random_resized_crop(24).random_horizontal_flip()


@pytest.fixture
def whole(folder: Path) -> feedline.Dataset:
    return feedline.open(folder).resize(40).center_crop(24).normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


def by_sample(loader: Any) -> dict[int, bytes]:
    """Identifies each sample of an epoch by a number that only it has: its position in sequential order."""
    pixels = [row.numpy().tobytes() for batch in loader for row in batch[0]]
    return dict(enumerate(pixels))


def differing(one: dict[int, bytes], other: dict[int, bytes]) -> float:
    assert one.keys() == other.keys()
    return sum(one[i] != other[i] for i in one) / len(one)


# ---- lowered ----


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"batch_size": 5, "drop_last": True}], ids=str)
def test_batches_are_those_of_torchs_loader(whole: feedline.Dataset, workers: int, options: dict[str, Any]) -> None:
    options = {"batch_size": 4, **options}
    torch.manual_seed(3)
    ours = DataLoader(whole, num_workers=workers, **options)
    assert plan_of(ours) == "images", ours.explain()
    found = list(ours)
    torch.manual_seed(3)
    theirs = list(TorchLoader(whole, **options))
    assert_same(found, theirs)
    assert type(found[0]) is type(whole[0])
    assert found[0].label.dtype == torch.int64


def test_every_kind_of_source_is_lowered(folder: Path, tars: list[Path], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.bin"
    np.arange(2000, dtype=np.uint16).tofile(tokens)
    x = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    photos = feedline.open(folder).resize((20, 30))
    feedline.pack_pixels(photos, tmp_path / "kept.pixels")
    sources = [
        photos,
        feedline.open([str(tar) for tar in tars]).resize((20, 30)),
        feedline.open(tmp_path / "kept.pixels").center_crop(16),
        photos.cache("memory").grayscale(),
        feedline.tokens(tokens, window=16, dtype="uint16"),
        feedline.arrays(x=x, y=np.arange(30, dtype=np.int32), z=x[:, 0], flag=x[:, 1] > 0, half=x.astype(np.float16)),
        feedline.mix([photos, feedline.open([str(tar) for tar in tars]).resize((20, 30))]),
    ]
    for dataset in sources:
        loader = DataLoader(dataset, batch_size=4, num_workers=2)
        assert plan_of(loader) == "images", loader.explain()
        assert_same(list(loader), list(TorchLoader(dataset, batch_size=4)))
        assert_same(list(loader), list(TorchLoader(dataset, batch_size=4)))  # the pipeline that was idle in between


def test_subsets_and_odd_samplers(whole: feedline.Dataset) -> None:
    subset = Subset(Subset(whole, list(range(20, 0, -2))), [3, 3, -1, 0, 9])
    repeated = BatchSampler([1, 1, 20, -1, 0], 3, False)
    for dataset, options in ((subset, {"batch_size": 2}), (whole, {"batch_sampler": repeated})):
        loader = DataLoader(dataset, **options)
        assert plan_of(loader) == "images"
        assert_same(list(loader), list(TorchLoader(dataset, **options)))
    with pytest.raises(IndexError, match="sample 21 is out of range: the dataset has 21"):
        list(DataLoader(whole, sampler=[0, 21]))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("seed", [None, 7])
def test_lowered_crops_change_every_epoch(crops: feedline.Dataset, workers: int, seed: int | None) -> None:
    torch.manual_seed(1)
    loader = DataLoader(crops, batch_size=4, num_workers=workers, seed=seed)
    assert plan_of(loader) == "images"
    first, second, third = (by_sample(loader) for _ in range(3))
    assert min(differing(first, second), differing(second, third), differing(first, third)) > 0.9
    torch.manual_seed(1)
    again = DataLoader(crops, batch_size=3, num_workers=workers, seed=seed)
    assert by_sample(again) == first
    again.set_epoch(2)
    assert seed is None or by_sample(again) == third


def test_explain_knows_our_datasets(crops: feedline.Dataset) -> None:
    text = DataLoader(crops, batch_size=4, num_workers=3).explain()
    assert "Dataset (folder)" in text
    assert "random_resized_crop(" in text
    assert text.count("native, 3 threads") == 4
    text = DataLoader(Subset(crops, [1, 2]), num_workers=0).explain()
    assert "Subset of Dataset (folder)" in text
    text = DataLoader(crops, batch_size=4, collate_fn=list).explain()
    assert "collate_fn is not torch's" in text
    assert "seeded by one number per sample from torch's generator" in text


def test_a_state_resumes_with_the_same_batches(crops: feedline.Dataset) -> None:
    loader = DataLoader(crops, batch_size=4, shuffle=True, seed=3, num_workers=2)
    list(loader)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    rest = list(iterator)
    other = DataLoader(crops, batch_size=4, shuffle=True, seed=3, num_workers=1)
    other.load_state_dict(state)
    assert_same(list(other), rest)


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_samples_are_what_they_are_elsewhere(tmp_path: Path, workers: int) -> None:
    root = made_data.make_folder(tmp_path / "train")
    (root / "birch/003.jpg").write_bytes(b"no image")
    crops = training(feedline.open(root))
    loader = DataLoader(crops, batch_size=4, num_workers=workers)
    with pytest.raises(feedline.DataError, match=r"birch/003\.jpg"):
        list(loader)
    loader = DataLoader(crops, batch_size=4, num_workers=workers, on_error="skip")
    labels = torch.cat([batch.label for batch in loader])
    assert plan_of(loader) == "images"
    assert sorted(labels.tolist()) == [0] * 7 + [1] * 6 + [2] * 7
    assert len(loader.errors) == 1
    loader = DataLoader(crops, batch_size=4, num_workers=workers, on_error="replace")
    first, second = by_sample(loader), by_sample(loader)
    assert len(first) == 21
    assert differing(first, second) == 1  # including the sample that replaces the bad one


def test_what_collate_would_refuse_stays_in_python(folder: Path) -> None:
    assert plan_of(DataLoader(feedline.open(folder))) == "python"  # images of many sizes
    ragged = feedline.arrays(text=feedline.ragged([np.arange(3), np.arange(5)]))
    loader = DataLoader(ragged)
    assert plan_of(loader) == "python"
    assert "different lengths" in loader.explain()
    with pytest.raises(feedline.ConfigError, match="different lengths"):
        DataLoader(ragged, lower="require")


def test_a_last_batch_that_is_never_full_is_reported(whole: feedline.Dataset) -> None:
    with pytest.warns(UserWarning, match=r"drop_last leaves no batches: 21 samples, fewer than batch_size=22"):
        assert list(DataLoader(whole, batch_size=22, drop_last=True)) == []


# ---- not lowered ----


class Wrapped(torch.utils.data.Dataset):
    """As users write them."""

    def __init__(self, dataset: feedline.Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]


LOADERS = {
    "torch's": lambda ds, n: TorchLoader(ds, batch_size=4, num_workers=n, persistent_workers=n > 0),
    "torch's, new workers": lambda ds, n: TorchLoader(ds, batch_size=4, num_workers=n),
    "torch's, Subset": lambda ds, n: TorchLoader(Subset(ds, range(21)), batch_size=4, num_workers=n),
    "ours": lambda ds, n: DataLoader(ds, batch_size=4, num_workers=n, lower="never"),
    "ours, seed": lambda ds, n: DataLoader(ds, batch_size=4, num_workers=n, lower="never", seed=4),
    "ours, skip": lambda ds, n: DataLoader(ds, batch_size=4, num_workers=n, lower="never", on_error="skip"),
    "ours, wrapped": lambda ds, n: DataLoader(Wrapped(ds), batch_size=4, num_workers=n),
    "ours, joined": lambda ds, n: DataLoader(ConcatDataset([ds, ds.grayscale(3)]), batch_size=4, num_workers=n),
    "ours, threads": lambda ds, n: DataLoader(
        Wrapped(ds), batch_size=4, num_workers=n, worker_method="thread" if n else "process"
    ),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", LOADERS)
def test_crops_change_every_epoch(crops: feedline.Dataset, kind: str, workers: int) -> None:
    torch.manual_seed(1)
    loader = LOADERS[kind](crops, workers)
    first, second, third = (by_sample(loader) for _ in range(3))
    assert min(differing(first, second), differing(second, third), differing(first, third)) > 0.9
    if kind != "ours, threads" or not workers:  # threads share torch's generator
        torch.manual_seed(1)
        again = LOADERS[kind](crops, workers)
        assert [by_sample(again), by_sample(again)] == [first, second]
    del loader


def test_a_sample_by_itself_stays_that_of_epoch_0(crops: feedline.Dataset) -> None:
    of_loader = next(iter(crops.loader(21)))[0].numpy()
    before = torch.get_rng_state()
    list(DataLoader(crops, batch_size=4))
    list(TorchLoader(crops, batch_size=4))
    torch.set_rng_state(before)
    assert all(np.array_equal(crops[i].image, of_loader[i]) for i in range(21))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_random_operation_draws_nothing(whole: feedline.Dataset) -> None:
    before = torch.get_rng_state()
    TorchLoader(whole, batch_size=4).dataset.__getitems__([0, 1])
    assert torch.equal(torch.get_rng_state(), before)


def test_a_second_epoch_of_the_same_draws_is_reported_once(folder: Path) -> None:
    """torch's loader without workers does not inform a user's dataset of its use."""
    crops = feedline.open(folder).random_resized_crop(24)
    loader = TorchLoader(Wrapped(crops), batch_size=4)
    list(loader)
    with pytest.warns(UserWarning, match=r"repeats the random draws of epoch 0") as said:
        list(loader), list(loader)
    assert len(said) == 1
    whole = feedline.open(folder).resize((20, 20))
    for _ in range(3):
        list(TorchLoader(Wrapped(whole), sampler=SequentialSampler(whole)))


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_bfloat16_are_collated_as_torch_collates_them(workers):
    dataset = feedline.arrays(x=(torch.arange(12).reshape(6, 2) / 3).bfloat16(), id=torch.arange(6))
    wanted = list(TorchLoader(dataset, 4))
    found = list(feedline.DataLoader(dataset, 4, num_workers=workers))
    assert [batch.x.dtype for batch in found] == [torch.float32] * 2
    assert all(torch.equal(ours.x, theirs.x) for ours, theirs in zip(found, wanted, strict=True))
