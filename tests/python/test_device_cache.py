# SPDX-License-Identifier: Apache-2.0
"""``cache("device")``: images that a GPU keeps, on the stand-in of CUDA's driver, against the host's batches."""

from __future__ import annotations

import gc
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_cuda
import numpy as np
import pytest

import feedline

STATISTICS = (feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
Batches = list[list[Any]]


def on_host(dataset: feedline.Dataset, options: dict[str, Any], epochs: int = 2) -> Batches:
    with dataset.loader(**options, output="numpy") as loader:
        return [[np.array(field) for field in batch] for _ in range(epochs) for batch in loader]


def on_gpu(gpu: made_cuda.Gpu, loader: feedline.Loader, epochs: int = 2) -> Batches:
    return [[gpu.take(field).content() for field in batch] for _ in range(epochs) for batch in loader]


def assert_same(found: Batches, expected: Batches) -> None:
    assert len(found) == len(expected) > 0
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def cropped(dataset: feedline.Dataset) -> feedline.Dataset:
    return dataset.random_resized_crop(32).random_horizontal_flip().normalize(*STATISTICS)


def erased(dataset: feedline.Dataset) -> feedline.Dataset:
    return cropped(dataset).random_erasing(p=0.8)


CHAINS: dict[str, tuple[Callable[[feedline.Dataset], feedline.Dataset], dict[str, Any]]] = {
    "resized crops": (cropped, {}),
    "float16 NHWC": (cropped, {"dtype": "float16", "layout": "NHWC"}),
    "bytes": (lambda d: d.random_crop(32).random_horizontal_flip().random_vertical_flip(), {}),
    "bytes NHWC": (lambda d: d.resize(36).random_crop(32), {"layout": "NHWC"}),
    "bordered": (
        lambda d: d.random_crop(48, padding=4, padding_mode="reflect").normalize(*STATISTICS).random_vertical_flip(),
        {},
    ),
    "evaluated": (lambda d: d.resize(36, interpolation="bicubic").center_crop(32).normalize(*STATISTICS), {}),
    "coloured": (
        lambda d: (
            d.random_resized_crop(32).color_jitter(0.4, 0.4, 0.4, 0.1).random_grayscale(0.3).normalize(*STATISTICS)
        ),
        {},
    ),
    "erased": (lambda d: cropped(d).random_erasing(p=0.9, value=(0.25, -3.5, 1e-6)).random_horizontal_flip(), {}),
    "erased by colours": (
        lambda d: cropped(d).timm_random_erasing(1.0, mode="rand", max_count=3).to_dtype("float16").random_erasing(),
        {"layout": "NHWC"},
    ),
    "erased and mixed": (erased, {"mixup": 0.4, "cutmix": 1.0, "mix_mode": "half", "drop_last": True}),
    "mixed": (cropped, {"mixup": 0.4, "cutmix": 1.0}),
    "mixed to half": (cropped, {"mixup": 0.4, "mix_mode": "half", "drop_last": True}),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_batches_are_the_hosts(gpu: made_cuda.Gpu, folder: Path, chain: str) -> None:
    chained, more = CHAINS[chain]
    options = {"batch_size": 4, "shuffle": True, "seed": 5, **more}
    photos = feedline.open(folder).resize(40)
    dataset = chained(photos.cache("device"))
    with dataset.loader(**options, output="dlpack", device="cuda") as loader:
        found = on_gpu(gpu, loader)
        cache = loader.stats()["cache"]
        # of two threads that come for a sample at once both decode it
        assert len(dataset) <= loader.stats()["stages"]["decode"]["items"] < 1.5 * len(dataset)
    assert cache["where"] == "device" and cache["present"] == cache["samples"] == len(dataset) and not cache["full"]
    assert_same(found, on_host(chained(photos), options))
    assert gpu.count("memory") > 0, "the dataset keeps them"


def test_without_a_size_of_their_own_before(gpu: made_cuda.Gpu, folder: Path) -> None:
    options = {"batch_size": 4, "shuffle": True}
    with cropped(feedline.open(folder).cache("device")).loader(**options, output="dlpack", device="cuda") as loader:
        found = on_gpu(gpu, loader)
    assert_same(found, on_host(cropped(feedline.open(folder)), options))


def test_other_loaders_find_what_is_there_and_resume_anywhere(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = cropped(feedline.open(folder).resize(40).cache("device"))
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "output": "dlpack", "device": "cuda"}
    with dataset.loader(**options) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
        rest = [[gpu.take(field).content() for field in batch] for batch in batches]
    used = gpu.count("memory_bytes")
    with dataset.loader(**options) as loader:
        loader.load_state_dict(state)
        assert_same(on_gpu(gpu, loader, 1), rest)
        assert loader.stats()["stages"]["decode"]["items"] == 0
    fresh = cropped(feedline.open(folder).resize(40).cache("device"))
    with fresh.loader(**options) as loader:  # whose cache is empty
        loader.load_state_dict(state)
        assert_same(on_gpu(gpu, loader, 1), rest)
    del fresh
    gc.collect()
    feedline.arrays(y=np.arange(4)).loader(2, output="dlpack", device="cuda").close()  # looks at what was left behind
    assert gpu.count("memory_bytes") <= used + (1 << 20)


def test_ranks_and_another_gpu(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = cropped(feedline.open(folder).resize(40).cache("device"))
    host = cropped(feedline.open(folder).resize(40))
    for rank in range(2):
        options = {"batch_size": 4, "shuffle": True, "rank": rank, "world_size": 2}
        with dataset.loader(**options, output="dlpack", device=f"cuda:{rank}") as loader:
            assert f"cache on cuda:{rank}" in loader.explain()
            found = on_gpu(gpu, loader)
        assert_same(found, on_host(host, options))


def test_a_kernel_waits_for_images_that_another_loader_brought(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = feedline.open(folder).resize(40).cache("device").random_crop(32)
    expected = on_host(feedline.open(folder).resize(40).random_crop(32), {"batch_size": 4}, 1)
    gpu.hold(True)
    with (
        dataset.loader(4, output="dlpack", device="cuda") as first,
        dataset.loader(4, output="dlpack", device="cuda") as second,
    ):
        held = [[next(batches)[0] for batches in (iter(first), iter(second))] for _ in range(1)]
        step = 0
        while gpu.driver.fake_cuda_step(made_cuda.ctypes.c_uint64((1 << 64) - 1 - step)):  # the last stream first
            step += 1
        for array in held[0]:
            np.testing.assert_array_equal(gpu.take(array).content(), expected[0][0])
        gpu.hold(False)
        del array, held


def test_explain_tells_what_is_stored_where(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = cropped(feedline.open(folder).resize((40, 40)).cache("device"))
    with dataset.loader(4, output="dlpack", device="cuda") as loader:
        on_gpu(gpu, loader, 1)
        lines = [line for line in loader.explain().splitlines() if line.startswith("image")]
    size = 40 * 40 * 3
    assert any(f"cache on cuda:0: {len(dataset)} of {len(dataset)} samples cached" in line for line in lines)
    assert loader.stats()["cache"]["bytes"] == size * len(dataset)
    there = next(i for i, line in enumerate(lines) if "cache on" in line)
    assert all("on the GPU: " in line for line in lines[there + 1 :]) and len(lines) > there + 1
    assert not any("on the GPU" in line for line in lines[:there]) and there > 0


def test_samples_on_the_host_are_the_same(folder: Path) -> None:
    dataset = cropped(feedline.open(folder).resize(40).cache("device"))
    plain = cropped(feedline.open(folder).resize(40))
    np.testing.assert_array_equal(dataset[3][0], plain[3][0])
    assert dataset.draw(3) == plain.draw(3)
    assert "random_resized_crop" in dataset.explain()


@pytest.mark.parametrize("on_error", ["replace", "skip"])
def test_a_broken_photo_leaves_the_others(gpu: made_cuda.Gpu, folder: Path, tmp_path: Path, on_error: str) -> None:
    photos = shutil.copytree(folder, tmp_path / "photos")
    broken = sorted(photos.glob("*/*.jpg"))[5]
    broken.write_bytes(broken.read_bytes()[:300])
    options = {"batch_size": 4, "on_error": on_error}
    dataset = erased(feedline.open(photos).resize(40).cache("device"))
    with dataset.loader(**options, output="dlpack", device="cuda") as loader:
        found = on_gpu(gpu, loader)
        assert {bad.key for bad in loader.errors} == {dataset.key(5)}
    assert_same(found, on_host(erased(feedline.open(photos).resize(40)), options))


REFUSED = {
    "random_solarize after it is not supported on a GPU": lambda d: d.random_solarize(128),
    "random_crop after it follows color_jitter": lambda d: d.color_jitter(0.2).random_crop(32),
    "random_erasing after it draws a number for each value": lambda d: d.normalize(*STATISTICS).random_erasing(
        value="random"
    ),
    "resize after it follows random_horizontal_flip": lambda d: d.random_horizontal_flip().resize((32, 32)),
    "with pad_if_needed is not supported on a GPU": lambda d: d.random_crop(50, pad_if_needed=True),
    "random_erasing after it needs float input": lambda d: d.random_crop(32).random_erasing(),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_a_gpu_does_not_do_is_named_at_once(folder: Path, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=re.escape(words)):
        REFUSED[words](feedline.open(folder).cache("device"))


def test_without_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = cropped(feedline.open(folder).cache("device"))
    with pytest.raises(feedline.ConfigError, match=r'device="cuda", or use cache\("memory"\)'):
        dataset.loader(4)
    monkeypatch.setenv("FEEDLINE_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(feedline.ConfigError, match="no NVIDIA driver is installed"):
        dataset.loader(4, device="cuda", output="dlpack")


def test_what_does_not_fit_is_refused_first(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = feedline.open(folder).resize((6000, 6000)).cache("device").random_crop(32)
    need = len(dataset) * 6000 * 6000 * 3 / (1 << 30)
    words = rf'need {need:.2f} GiB, but Fake GPU 0 \(cuda:0\) has 1.00 GiB of 1.00 GiB free.*cache\("memory"\)'
    with pytest.raises(feedline.ConfigError, match=words):
        dataset.loader(4, output="dlpack", device="cuda")
    small = feedline.open(folder).resize((40, 40)).cache("device", budget=10_000).random_crop(32)
    with pytest.raises(feedline.ConfigError, match="its budget is 10 KiB"):
        small.loader(4, output="dlpack", device="cuda")


def test_memory_that_runs_out_meanwhile_is_no_bad_sample(gpu: made_cuda.Gpu, folder: Path) -> None:
    dataset = feedline.open(folder).resize((40, 40)).cache("device").random_crop(32)
    with dataset.loader(4, output="dlpack", device="cuda", on_error="replace") as loader:
        gpu.fail("cuMemHostAlloc", 2)  # the first is for batches
        with pytest.raises(feedline.StorageError, match=r'cache\("device"\): .*page-locked memory'):
            on_gpu(gpu, loader)
        gpu.fail(None)
