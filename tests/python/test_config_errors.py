# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments raise ConfigError at the call, before any read, naming the operation and the argument."""

from __future__ import annotations

import enum
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import feedline
import feedline.testing
from feedline.data import arguments

Call = Callable[[feedline.Dataset], object]


class TorchvisionsInterpolation(enum.Enum):
    """The same values as torchvision.transforms.InterpolationMode."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


OPERATIONS: dict[str, list[Call]] = {
    "decode": [lambda d: d.decode("CMYK"), lambda d: d.decode(3)],
    "resize": [
        lambda d: d.resize(0),
        lambda d: d.resize(-1),
        lambda d: d.resize(2.5),
        lambda d: d.resize("224"),
        lambda d: d.resize(True),
        lambda d: d.resize(None),
        lambda d: d.resize((1, 2, 3)),
        lambda d: d.resize(()),
        lambda d: d.resize(2**40),
        lambda d: d.resize(10**9),
        lambda d: d.resize(8, interpolation="hamming"),
        lambda d: d.resize(8, interpolation=TorchvisionsInterpolation.HAMMING),
        lambda d: d.resize(8, interpolation=5),
        lambda d: d.resize(8, interpolation=None),
        lambda d: d.resize(8, antialias=False),
        lambda d: d.resize(8, max_size=8),
        lambda d: d.resize((8, 8), max_size=16),
        lambda d: d.resize(8, max_size=0),
    ],
    "center_crop": [
        lambda d: d.center_crop(0),
        lambda d: d.center_crop((1, 2, 3)),
        lambda d: d.center_crop([4.0]),
        lambda d: d.center_crop(4, 300),
        lambda d: d.center_crop(4, padding_mode="wrap"),
    ],
    "random_crop_or_pad": [
        lambda d: d.random_crop_or_pad(0),
        lambda d: d.random_crop_or_pad(4, (1, 2)),
        lambda d: d.random_crop_or_pad(4, padding_mode="wrap"),
    ],
    "trim_border": [
        lambda d: d.trim_border(-1),
        lambda d: d.trim_border("2"),
        lambda d: d.trim_border(2.5),
        lambda d: d.resize((8, 9)).trim_border(4),
        lambda d: d.trim_border(2**31),
    ],
    "resize_keep_ratio": [
        lambda d: d.resize_keep_ratio(0),
        lambda d: d.resize_keep_ratio(4, -0.1),
        lambda d: d.resize_keep_ratio(4, float("nan")),
        lambda d: d.resize_keep_ratio(4, interpolation="hamming"),
        lambda d: d.resize_keep_ratio(4, random_scale_prob=-1),
        lambda d: d.resize_keep_ratio(4, random_scale_range=(2, 1)),
        lambda d: d.resize_keep_ratio(4, random_scale_area=1),
        lambda d: d.resize_keep_ratio(4, random_aspect_prob="p"),
        lambda d: d.resize_keep_ratio(4, random_aspect_range=(0, 1)),
    ],
    "random_crop": [
        lambda d: d.random_crop(0),
        lambda d: d.random_crop(8, padding=-1),
        lambda d: d.random_crop(8, padding=(1, 2, 3)),
        lambda d: d.random_crop(8, pad_if_needed=1),
        lambda d: d.random_crop(8, fill=256),
        lambda d: d.random_crop(8, fill=(1, 2)),
        lambda d: d.random_crop(8, fill=0.5),
        lambda d: d.random_crop(8, padding_mode="wrap"),
    ],
    "random_resized_crop": [
        lambda d: d.random_resized_crop(0),
        lambda d: d.random_resized_crop(8, scale=(0.5,)),
        lambda d: d.random_resized_crop(8, scale=0.5),
        lambda d: d.random_resized_crop(8, scale=(0.9, 0.1)),
        lambda d: d.random_resized_crop(8, scale=(-0.1, 1)),
        lambda d: d.random_resized_crop(8, ratio=(0, 1)),
        lambda d: d.random_resized_crop(8, ratio=(1, float("nan"))),
        lambda d: d.random_resized_crop(8, antialias=False),
    ],
    "random_horizontal_flip": [
        lambda d: d.random_horizontal_flip(1.5),
        lambda d: d.random_horizontal_flip(-0.1),
        lambda d: d.random_horizontal_flip("x"),
        lambda d: d.random_horizontal_flip(float("nan")),
    ],
    "random_vertical_flip": [lambda d: d.random_vertical_flip(2)],
    "pad": [
        lambda d: d.pad(-1),
        lambda d: d.pad(None),
        lambda d: d.pad((1, 2, 3)),
        lambda d: d.pad(1, fill="red"),
        lambda d: d.pad(1, padding_mode="zero"),
    ],
    "grayscale": [lambda d: d.grayscale(2), lambda d: d.grayscale("1")],
    "color_jitter": [
        lambda d: d.color_jitter(-1),
        lambda d: d.color_jitter(brightness=(2, 1)),
        lambda d: d.color_jitter(contrast=(-1, 1)),
        lambda d: d.color_jitter(saturation="x"),
        lambda d: d.color_jitter(hue=0.6),
        lambda d: d.color_jitter(hue=(-0.6, 0)),
    ],
    "normalize": [
        lambda d: d.normalize(0.5, 0.5),
        lambda d: d.normalize((0.5,) * 2, (0.5,) * 3),
        lambda d: d.normalize((0.5,) * 2, (0.5,) * 2),
        lambda d: d.normalize((0.5,) * 3, (0.5, 0, 0.5)),
        lambda d: d.normalize((0.5, "x", 0), (1, 1, 1)),
        lambda d: d.normalize((), ()),
        lambda d: d.grayscale().normalize((0.5,) * 3, (0.5,) * 3),
    ],
    "to_dtype": [
        lambda d: d.to_dtype("float64"),
        lambda d: d.to_dtype(np.float64),
        lambda d: d.to_dtype(float),
        lambda d: d.to_dtype(None),
        lambda d: d.to_dtype("float32", scale="yes"),
        lambda d: d.to_dtype("float32").to_dtype("uint8"),
    ],
}
CASES = [(name, i, call) for name, calls in OPERATIONS.items() for i, call in enumerate(calls)]


@pytest.mark.parametrize(("name", "number", "call"), CASES, ids=[f"{name}-{i}" for name, i, _ in CASES])
def test_operations(folder: pathlib.Path, name: str, number: int, call: Call) -> None:
    with pytest.raises(feedline.ConfigError, match=name) as caught:
        call(feedline.open(folder))
    assert isinstance(caught.value, ValueError)


def test_nothing_is_read_before_the_refusal(tmp_path: pathlib.Path) -> None:
    """The images are no images: an operation that looked at one would raise DataError."""
    (tmp_path / "train" / "a").mkdir(parents=True)
    (tmp_path / "train" / "a" / "1.jpg").write_bytes(b"text")
    dataset = feedline.open(tmp_path / "train")
    with pytest.raises(feedline.ConfigError, match="random_crop"):
        dataset.random_crop(0)
    with pytest.raises(feedline.ConfigError, match="size"):
        dataset.loader(4, output="numpy")
    with pytest.raises(feedline.ConfigError, match="size"):
        dataset.resize(8).loader(4, output="numpy")


LOADER: dict[str, list[Any]] = {
    "batch_size": [0, -1, 1.5, "4", None, True, 2**63],
    "shuffle": ["yes", 1, None],
    "seed": [-1, 2**64, 0.5, None],
    "drop_last": [1],
    "num_workers": [-1, "all", 2.0, None, 10**6],
    "memory_budget": [0, -1, "much", "1 XB", "", 1.5, 1, "1 KB"],
    "in_order": [0],
    "on_error": ["ignore", None],
    "error_budget": [-1, 0.5],
    "uneven": ["even", None],
    "epochs": [0, -1, 1.5],
    "device": ["cuda", 0, "mps", "cuda:x", -1, 1.5, True, ""],
    "dtype": ["float64", float],
    "layout": ["NCWH", "nchw"],
    "output": ["jax", None],
    "timeout": [0, -1, float("nan"), "5"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in LOADER.items() for value in values])
def test_loader_arguments(train: feedline.Dataset, name: str, value: object) -> None:
    options: dict[str, Any] = {"batch_size": 4, "output": "numpy", name: value}
    with pytest.raises(feedline.ConfigError, match=name):
        train.loader(**options)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("on_error", "'raise', 'skip', 'replace'"),
        ("uneven", "'pad', 'drop', 'exact'"),
        ("layout", "'NCHW', 'NHWC'"),
    ],
)
@pytest.mark.parametrize("value", ["report", None, 3, ["raise"], "a\ud800", "raise\0"])
def test_words_are_the_engines_to_check(train: feedline.Dataset, name: str, words: str, value: Any) -> None:
    options: dict[str, Any] = {"batch_size": 4, "output": "numpy", name: value}
    with pytest.raises(feedline.ConfigError) as refused:
        train.loader(**options)
    assert str(refused.value) == f"loader: {name} must be one of {words}, not {value!r}"


def test_a_state_that_is_none_is_refused_by_the_engine_too(train: feedline.Dataset) -> None:
    engine = train.loader(4, output="numpy")._engine
    state = engine.state()
    engine.restore(state)
    for damaged in ({}, {**state, "seed": -1}, {**state, "dataset": {}}, {**state, "delivered": [3]}):
        with pytest.raises(
            feedline.ConfigError, match=r"load_state_dict: (dataset|seed|dataset: fingerprint|delivered)"
        ):
            engine.restore(damaged)
    with pytest.raises(feedline.ConfigError, match="fidelity must be one of 'exact', 'fast', 'nvjpeg', not 5"):
        engine.restore({**state, "fidelity": 5})


@pytest.mark.parametrize("count", [-1, 1025, 4096, 2**31, 2**70, -(2**40)])
def test_number_of_threads_has_one_bound(train: feedline.Dataset, count: int) -> None:
    """One bound and one message for both languages; src/consumer/loader_test.cpp has the same."""
    train.loader(4, output="numpy", num_workers=1024)
    with pytest.raises(feedline.ConfigError) as refused:
        train.loader(4, output="numpy", num_workers=count)
    assert str(refused.value) == f"loader: num_workers must be between 0 and 1024, got {count}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("dtype", "uint16"), ("window", 128), ("endpoint_url", "http://x"), ("retries", 3)],
)
def test_arguments_of_open_that_come_later(folder: pathlib.Path, name: str, value: Any) -> None:
    with pytest.raises(feedline.ConfigError, match=rf"{name} is not supported in this version"):
        feedline.open(folder, **{name: value})


@pytest.mark.parametrize("source", [None, 3, [], [None], [""], "", b"bytes"])
def test_sources(source: Any) -> None:
    with pytest.raises(feedline.ConfigError, match="source"):
        feedline.open(source)


def test_formats_and_fields(folder: pathlib.Path, tars: list[pathlib.Path]) -> None:
    with pytest.raises(feedline.ConfigError, match="format"):
        feedline.open(folder, format="zip")
    with pytest.raises(feedline.ConfigError, match="fields"):
        feedline.open(tars, fields=[1])
    assert feedline.open(str(folder), format="folder").format == "folder"
    assert feedline.open(tars[0], format="tar", fields=("jpg;png", "cls")).format == "tar"
    assert len(feedline.open(tars[0], fields="jpg;png cls")) == 7


def test_what_torchvision_takes_is_taken(folder: pathlib.Path) -> None:
    from PIL import Image

    photos = feedline.open(folder)
    same = photos.resize((24, 24))[0][0]
    for interpolation in ("bilinear", "BILINEAR", 2, Image.Resampling.BILINEAR, TorchvisionsInterpolation.BILINEAR):
        for size in ((24, 24), [24, 24], np.array([24, 24])):
            np.testing.assert_array_equal(photos.resize(size, interpolation, None, True)[0][0], same)
    np.testing.assert_array_equal(photos.resize([24]).center_crop([16])[0][0], photos.resize(24).center_crop(16)[0][0])
    nearest = photos.resize((9, 9), "nearest")[0][0]
    np.testing.assert_array_equal(photos.resize((9, 9), TorchvisionsInterpolation.NEAREST_EXACT)[0][0], nearest)
    small = photos.resize((8, 10))
    np.testing.assert_array_equal(small.pad(2)[0][0], small.pad((2, 2))[0][0])
    np.testing.assert_array_equal(small.pad([1, 2])[0][0], small.pad((1, 2, 1, 2), fill=(0, 0, 0))[0][0])
    np.testing.assert_array_equal(small.pad(1, fill=None)[0][0], small.pad(1, fill=0.0)[0][0])
    jittered = photos.resize((8, 8)).color_jitter(brightness=np.float32(0.25))
    assert jittered.draw(0) == photos.resize((8, 8)).color_jitter(brightness=(0.75, 1.25)).draw(0)
    assert photos.resize((8, 8)).to_dtype(np.float32, True)[0][0].dtype == np.float32
    assert photos.resize((8, 8)).to_dtype(np.dtype("float16"), True)[0][0].dtype == np.float16
    assert photos.resize((8, 8)).normalize(np.zeros(3), np.ones(3), inplace=True)[0][0].dtype == np.float32


def test_torchs_own_dtypes(folder: pathlib.Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    photos = feedline.open(folder).resize((8, 8))
    assert photos.to_dtype(torch.float16, scale=True)[0][0].dtype == np.float16
    with photos.loader(4, dtype=torch.float32, device=torch.device("cpu")) as loader:
        assert next(iter(loader)).image.dtype is torch.float32
    with pytest.raises(feedline.ConfigError, match="dtype"):
        photos.loader(4, dtype=torch.complex64)


def test_torchvisions_own_interpolation(folder: pathlib.Path) -> None:
    transforms = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed")
    photos = feedline.open(folder)
    for mode in ("NEAREST", "BILINEAR", "BICUBIC", "BOX"):
        ours = photos.resize((9, 9), getattr(transforms.InterpolationMode, mode))[0][0]
        np.testing.assert_array_equal(ours, photos.resize((9, 9), mode)[0][0])


def test_datasets_are_immutable_sequences(folder: pathlib.Path) -> None:
    photos = feedline.open(folder)
    small = photos.resize((8, 8))
    assert photos.operations == []
    assert len(small.operations) == 1
    assert len(list(small)) == len(small) == 21
    np.testing.assert_array_equal(small[-1][0], small[20][0])
    assert small[np.int64(2)].label == small[2].label
    for wrong in (21, -22, 2**70):
        with pytest.raises(IndexError):
            small[wrong]
        with pytest.raises(IndexError):
            small.encoded(wrong)
    with pytest.raises(feedline.ConfigError, match="an integer or a slice"):
        small["0"]  # type: ignore[index]
    assert small.key(0) == "apple/000.jpg"
    assert small.encoded(0) == (folder / small.key(0)).read_bytes()
    assert small.classes == ["apple", "birch", "crow"]
    assert [small[i].label for i in (0, 7, 20)] == [0, 1, 2]
    assert small.schema == {"image": ((3, 8, 8), "uint8"), "label": ((), "int64")}
    assert small.fingerprint == photos.fingerprint
    assert len(small.fingerprint) == 16


def test_single_images(folder: pathlib.Path) -> None:
    data = (folder / "apple" / "000.jpg").read_bytes()
    info = feedline.image_info(data)
    assert info == ("jpeg", 60, 50)
    for buffer in (bytearray(data), memoryview(data)):
        assert feedline.decode_image(buffer).shape == (50, 60, 3)
    assert feedline.decode_image(data, mode="L").shape == (50, 60, 1)
    for box in ((0, 0, 61, 50), (-1, 0, 5, 5), (5, 5, 5, 9), (0, 0, 1), "box", (0.0, 0, 1, 1)):
        with pytest.raises(feedline.ConfigError, match=r"box|region"):
            feedline.decode_image(data, box)  # type: ignore[arg-type]
    with pytest.raises(feedline.ConfigError, match="mode"):
        feedline.decode_image(data, mode="HSV")
    with pytest.raises(feedline.ConfigError, match="data must be bytes"):
        feedline.decode_image("text")  # type: ignore[arg-type]
    pixels = feedline.decode_image(data)
    assert feedline.resize_image(pixels[:, :, 0], (5, 7)).shape == (5, 7)
    np.testing.assert_array_equal(
        feedline.resize_image(pixels[::2, ::-1], (5, 7)), feedline.resize_image(pixels[::2, ::-1].copy(), (5, 7))
    )
    for wrong in (pixels.astype(np.float32), pixels[0, 0], "x"):
        with pytest.raises(feedline.ConfigError, match="resize_image"):
            feedline.resize_image(wrong, (5, 7))  # type: ignore[arg-type]
    for size in (5, (0, 5), (5,), None):
        with pytest.raises(feedline.ConfigError, match="size"):
            feedline.resize_image(pixels, size)  # type: ignore[arg-type]
    with pytest.raises(feedline.ConfigError, match="variant"):
        feedline.testing.force_simd_variant("MMX")
    assert feedline.simd_variants()[-1] == "scalar"


@given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "mib", ""]))
def test_byte_counts(count: int, unit: str) -> None:
    power = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3}[unit[:1].upper()]
    base = 1024 if "i" in unit else 1000
    for text in (f"{count} {unit}", f"{count}{unit}", f" {count}  {unit} "):
        assert arguments.byte_count("loader", "memory_budget", text) == count * base**power


@pytest.mark.parametrize("value", [0, -1, "much", "1 XB", "", 1.5, True, [1], "9" * 400 + " GB", 2**63])
def test_a_memory_budget_is_refused_alike_by_both_loaders(train: feedline.Dataset, value: Any) -> None:
    with pytest.raises(feedline.ConfigError, match=r"^loader: memory_budget must be") as ours:
        train.loader(4, output="numpy", memory_budget=value)
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(feedline.ConfigError) as theirs:
        feedline.DataLoader([1, 2, 3], memory_budget=value)
    assert str(ours.value) == str(theirs.value)


def test_a_memory_budget_is_taken_alike_by_both_loaders(train: feedline.Dataset) -> None:
    train.loader(4, output="numpy", memory_budget="2 GiB").close()
    pytest.importorskip("torch", reason="torch is not installed")
    from feedline.torch_loader.options.settings import Settings

    for value in ("2 GiB", 2 << 30):
        loader = feedline.DataLoader([1, 2, 3], memory_budget=value)
        assert loader.memory_budget == Settings.of(loader).budget_bytes() == 2 << 30
        assert [batch.tolist() for batch in loader] == [[1], [2], [3]]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=5,
)


@given(ANYTHING)
def test_any_value_is_taken_or_refused_clearly(value: Any) -> None:
    """No argument form gets through with another exception, or as something that the engine's types do not hold."""
    forms: list[Callable[[], Any]] = [
        lambda: arguments.edge_size("op", value),
        lambda: arguments.square_size("op", value),
        lambda: arguments.sides("op", value),
        lambda: arguments.color("op", value),
        lambda: arguments.interpolation("op", value),
        lambda: arguments.low_high("op", "scale", value),
        lambda: arguments.jitter("op", "hue", value, 0.0, -0.5, 0.5),
        lambda: arguments.channel_values("op", "mean", value),
        lambda: arguments.dtype("op", value),
        lambda: arguments.byte_count("op", "memory_budget", value),
        lambda: arguments.padding_mode("op", value),
    ]
    for form in forms:
        try:
            result = form()
        except feedline.ConfigError as error:
            assert str(error).startswith("op: ")
        else:
            parts = result if isinstance(result, tuple | list) else [result]
            assert all(isinstance(part, int | float | str) for part in parts)
