# SPDX-License-Identifier: Apache-2.0
"""``cache("device")`` on a real GPU, by torch; test_device_cache.py asks the same of a stand-in for CUDA's driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data
import pytest

import feedline

torch = pytest.importorskip("torch", reason="torch, which takes the batches, is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
STATISTICS = (feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.make_uneven_folder(tmp_path_factory.mktemp("photos"), 96)


def cropped(dataset: feedline.Dataset) -> feedline.Dataset:
    return dataset.random_resized_crop(96).random_horizontal_flip().normalize(*STATISTICS)


CHAINS: dict[str, tuple[Callable[[feedline.Dataset], feedline.Dataset], dict[str, Any]]] = {
    "resized crops": (cropped, {}),
    "float16 NHWC": (cropped, {"dtype": "float16", "layout": "NHWC"}),
    "bytes": (lambda d: d.random_crop(96).random_horizontal_flip().random_vertical_flip(), {}),
    "bordered": (lambda d: d.random_crop(160, padding=20, padding_mode="reflect").normalize(*STATISTICS), {}),
    "evaluated": (lambda d: d.resize(112, interpolation="bicubic").center_crop(96).normalize(*STATISTICS), {}),
    "lanczos": (lambda d: d.resize((48, 200), interpolation="lanczos"), {}),
    "coloured": (
        lambda d: (
            d.random_resized_crop(96).color_jitter(0.4, 0.4, 0.4, 0.1).random_grayscale(0.3).normalize(*STATISTICS)
        ),
        {},
    ),
    "mixed": (cropped, {"mixup": 0.4, "cutmix": 1.0}),
}


@pytest.mark.parametrize("before", ["resized", "as stored"])
@pytest.mark.parametrize("chain", CHAINS)
def test_batches_are_the_hosts(photos: Path, chain: str, before: str) -> None:
    chained, more = CHAINS[chain]
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 3, **more}
    dataset = feedline.open(photos)
    if before == "resized":
        dataset = dataset.resize(144)
    with chained(dataset).loader(**options) as loader:
        expected = [tuple(field.clone() for field in batch) for _ in range(3) for batch in loader]
    with chained(dataset.cache("device")).loader(**options, device="cuda") as loader:
        found = [batch for _ in range(3) for batch in loader]
        assert loader.stats()["cache"]["present"] == 96
        assert "cache on cuda:0" in loader.explain()
    assert len(found) == len(expected) == 18
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.is_cuda and one.dtype == other.dtype and torch.equal(one.cpu(), other)


def test_memory_is_taken_once_and_given_back(photos: Path) -> None:
    dataset = cropped(feedline.open(photos).resize((144, 144)).cache("device"))
    free: list[int] = []
    for _ in range(6):
        with dataset.loader(16, shuffle=True, device="cuda") as loader:
            for _ in range(4):
                for batch in loader:
                    assert batch[0].shape == (16, 3, 96, 96)
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    assert free[-1] >= free[1] - (64 << 20)


def test_what_does_not_fit_is_refused_with_the_numbers(photos: Path) -> None:
    dataset = feedline.open(photos).resize((4_000, 4_000)).cache("device").random_crop(96)
    free, _ = torch.cuda.mem_get_info()
    held = torch.empty(free - (2 << 30), dtype=torch.uint8, device="cuda")  # the images are 4.3 GiB
    with pytest.raises(feedline.ConfigError, match=r'need \d+\.\d\d GiB and .* free.*cache\("memory"\)'):
        dataset.loader(16, device="cuda")
    del held
    torch.cuda.empty_cache()
