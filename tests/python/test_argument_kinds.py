# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong types end in Feedline's errors in every public function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made_tokenizers
import numpy as np
import pytest
from PIL import Image

import feedline

VALUES: list[Any] = [
    None, 0.5, -1, 2**64, 10**30, "x", "", b"x", [], [None], {}, (1, 2, 3, 4, 5), object(), float("nan"), float("inf"),
    True, np.float32(1), np.array(2), np.arange(2), os.path, {1}, len,
]  # fmt: skip
# A wrong index is a TypeError or an IndexError, as for Python's sequences.
INDEXED = {"sample", "draw", "key", "encoded"}
NEEDED: dict[str, tuple[Any, ...]] = {
    "boxes": ("x",), "center_crop": (8,), "clip": (2,), "collate": ("list",), "filter": ([True] * 6,),
    "five_crop": (8,), "frames": ([0],), "gaussian_blur": (3,), "letterbox": (8,), "map": (len,),
    "normalize": ([0.5] * 3, [0.5] * 3), "pad": (1,), "pad_to": (8,),
    "random_adjust_sharpness": (2,), "random_affine": (10,), "random_apply": (feedline.chain(),),
    "random_choice": ([feedline.chain()],), "random_crop": (8,), "random_crop_or_pad": (8,),
    "random_order": (feedline.chain(),), "random_posterize": (4,), "random_resize": (8, 12),
    "random_resized_crop": (8,), "random_rotation": (10,), "random_short_side": (8,), "random_solarize": (128,),
    "repeat": (2,), "resize": (8,), "resize_keep_ratio": (8,), "split": (0.5,), "subset": ([0],), "take": (2,),
    "ten_crop": (8,), "to_dtype": ("float32",), "tokenize": (made_tokenizers.Words(),), "window": (128, 200),
}  # fmt: skip
MEASURE_OR_WRITE = {"measure_decode", "show", "loader", "pack", "verify"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kinds")
    for k in range(6):
        folder = root / "photos" / "ab"[k % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 12), (20 * k, 0, 0)).save(folder / f"{k}.png")
    np.arange(100, dtype=np.uint16).tofile(root / "tokens.bin")
    return root / "photos"


def changed(call: Callable[..., Any], *needed: Any, **options: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The call with each of its arguments replaced by each value."""
    signature = inspect.signature(call)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name == "device":
            continue
        for value in VALUES:
            bound = signature.bind_partial(*needed, **options)
            bound.arguments[parameter.name] = value
            try:
                signature.bind(*bound.args, **bound.kwargs)
            except TypeError:
                continue  # an argument is missing
            yield f"{parameter.name}={value!r:.40}", lambda bound=bound: call(*bound.args, **bound.kwargs)


def assert_own_errors(calls: Iterator[tuple[str, Callable[[], Any]]], *allowed: type[Exception]) -> None:
    tried, foreign = 0, {}
    for name, call in calls:
        tried += 1
        try:
            result = call()
        except (feedline.Error, *allowed):
            continue
        except Exception as error:
            foreign[name] = repr(error)[:150]
        else:
            if isinstance(result, feedline.Loader):
                result.close()
    assert tried
    assert not foreign


def test_sources(photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    rows = feedline.arrays(x=np.arange(6))
    assert_own_errors(changed(feedline.open, photos))
    assert_own_errors(changed(feedline.inspect, photos))
    assert_own_errors(changed(feedline.tokens, photos.parent / "tokens.bin", window=5, dtype="uint16"))
    assert_own_errors(changed(feedline.mix, [rows, rows]))
    assert_own_errors(changed(feedline.ragged, np.arange(4), [2, 2]))
    assert_own_errors((repr(value), lambda value=value: feedline.arrays(x=value)) for value in VALUES)
    assert_own_errors(
        (repr(value), lambda value=value: feedline.arrays(x=np.arange(3), fields=value)) for value in VALUES
    )
    assert_own_errors((repr(value), lambda value=value: feedline.views(value)) for value in VALUES)


def test_volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros((8, 8, 8), np.float32))
    volumes = feedline.open("a.npy", volumes=True)
    size = (4, 4, 4)
    assert_own_errors(changed(feedline.open, "a.npy", volumes=True))
    for crop in (volumes.random_crop, volumes.center_crop, volumes.grid_patches):
        assert_own_errors(changed(crop, size))
    patches = volumes.center_crop(size)
    assert_own_errors(changed(patches.random_affine, 10))
    assert_own_errors(changed(patches.normalize, 1, 2))
    names = ("flip", "rotate90", "gamma", "gaussian_noise", "gaussian_blur", "brightness", "contrast")
    for name in (*names, "low_resolution", "zoom"):
        assert_own_errors(changed(getattr(patches, f"random_{name}")))


def test_functions(photos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    image = next(photos.rglob("*.png")).read_bytes()
    assert_own_errors(changed(feedline.decode_image, image))
    assert_own_errors(changed(feedline.image_info, image))
    assert_own_errors(changed(feedline.resize_image, np.zeros((8, 8, 3), np.uint8), (4, 4)))
    assert_own_errors(changed(feedline.pack_pixels, photos, "photos.pixels"))
    assert_own_errors(changed(feedline.load_settings, "missing.json"), OSError)
    for name in ("imagenet_train", "simclr", "detection", "llm_pretraining"):
        assert_own_errors(changed(getattr(feedline.presets, name), str(photos)))


def test_operations(photos: Path) -> None:
    dataset = feedline.open(photos).resize((8, 8))
    for name in dir(feedline.Dataset):
        if name.startswith("_") or name in MEASURE_OR_WRITE or isinstance(getattr(feedline.Dataset, name), property):
            continue
        method = getattr(dataset, name)
        if not callable(method):
            continue
        allowed = (TypeError, IndexError) if name in INDEXED else ()
        if inspect.signature(method).parameters:
            assert_own_errors(changed(method, *NEEDED.get(name, ())), *allowed)


def test_loaders(photos: Path) -> None:
    dataset = feedline.open(photos).resize((8, 8))
    assert_own_errors(changed(dataset.loader, 2, output="numpy"))
    loader = dataset.loader(2, output="numpy")
    assert_own_errors((repr(value), lambda value=value: loader.set_epoch(value)) for value in VALUES)
    assert_own_errors((repr(value), lambda value=value: loader.load_state_dict(value)) for value in VALUES)
    state = loader.state_dict()
    states = ({**state, name: value} for name in state for value in VALUES)
    assert_own_errors((repr(value), lambda value=value: loader.load_state_dict(value)) for value in states)
    assert "endless" not in repr(dataset.loader(2, epochs=2**62, output="numpy"))


def test_the_drop_in() -> None:
    torch = pytest.importorskip("torch")
    table = torch.utils.data.TensorDataset(torch.arange(6))
    stock = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    own = inspect.signature(feedline.DataLoader.__init__).parameters
    for name in own:
        if name in stock or name in ("self", "device") or own[name].kind is inspect.Parameter.VAR_KEYWORD:
            continue
        options = [{name: value} for value in VALUES]
        assert_own_errors((repr(one), lambda one=one: feedline.DataLoader(table, **one)) for one in options)
    assert_own_errors(changed(feedline.BucketBatchSampler, [1, 2, 3], 2))
    assert_own_errors(changed(feedline.DistributedSampler, table, num_replicas=1, rank=0), ValueError)
    loader = feedline.DataLoader(table, batch_size=2)
    assert_own_errors((repr(value), lambda value=value: loader.load_state_dict(value)) for value in VALUES)
    of_another = feedline.arrays(x=np.arange(6)).loader(2, output="numpy").state_dict()
    with pytest.raises(feedline.ConfigError, match=r"not a state of feedline\.DataLoader"):
        loader.load_state_dict(of_another)


TAKEN: dict[str, Any] = {
    "DistributedSampler": lambda d: {"sampler": feedline.DistributedSampler(d, 2, 0), "batch_size": 4},
    "BucketBatchSampler": lambda d: {"batch_sampler": feedline.BucketBatchSampler([1, 2, 3] * 8, batch_size=4)},
    "shuffle": lambda d: {"shuffle": True, "batch_size": 4},
    "none": lambda d: {"batch_size": 4},
}


@pytest.mark.parametrize("resumed", TAKEN)
@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("batches", [0, 2])
def test_states_of_other_samplers(taken: str, resumed: str, batches: int) -> None:
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(24))
    loader = feedline.DataLoader(dataset, **TAKEN[taken](dataset))
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    other = feedline.DataLoader(dataset, **TAKEN[resumed](dataset))
    if taken == resumed:
        other.load_state_dict(loader.state_dict())
        assert len(list(other)) == len(loader) - batches
        return
    try:
        other.load_state_dict(loader.state_dict())
        assert list(other)
    except feedline.ConfigError as error:
        assert "sampler" in str(error) or "order" in str(error)
