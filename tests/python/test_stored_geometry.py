# SPDX-License-Identifier: Apache-2.0
"""Geometry and values of images with stored values (``decode(dtype=...)``), compared with NumPy and torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_tiff
import numpy as np
import pytest

import feedline
from feedline.errors import ConfigError, DataError

RNG = np.random.default_rng(5)
IMAGE = (RNG.normal(size=(61, 83, 3)).cumsum(axis=0) * 900 + 20000).clip(0, 65535).astype(np.uint16)


def dataset_of(folder: Path, *images: np.ndarray) -> feedline.Dataset:
    (folder / "class").mkdir(parents=True)
    for number, image in enumerate(images):
        (folder / "class" / f"{number:03}.tif").write_bytes(made_tiff.tiff(image))
    return feedline.open(str(folder))


def planes(image: np.ndarray) -> np.ndarray:
    return np.moveaxis(image, -1, 0)


def drawn(dataset: feedline.Dataset, index: int) -> dict[str, list[float]]:
    """Returns the drawn values by name."""
    return {name: values for _, name, values in dataset.draw(index)}


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8"])
def test_crops_and_flips_copy_values(tmp_path: Path, dtype: str) -> None:
    image = (IMAGE // (256 if dtype in ("u1", "i1") else 1)).astype(dtype)
    stored = dataset_of(tmp_path, *[image] * 8).decode(dtype="native")
    flipped = stored.random_crop((20, 31), padding=3).random_horizontal_flip().random_vertical_flip()
    seen = set()
    for index in range(8):
        values = {f"{operation}.{name}": drawn for operation, name, drawn in flipped.draw(index)}
        left, top, width, height = (int(number) for number in values["random_crop.crop"])
        want = np.pad(image, ((3, 3), (3, 3), (0, 0)))[top : top + height, left : left + width]
        flips = (values["random_horizontal_flip.flip"][0], values["random_vertical_flip.flip"][0])
        want = want[:: -1 if flips[1] else 1, :: -1 if flips[0] else 1]
        got = flipped[index][0]
        assert got.dtype == image.dtype
        np.testing.assert_array_equal(got, planes(want))
        seen.add(flips)
    assert len(seen) > 1


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_borders(tmp_path: Path, mode: str) -> None:
    got = dataset_of(tmp_path, IMAGE).decode(dtype="native").pad((4, 2, 5, 3), padding_mode=mode)[0][0]
    how: Any = "edge" if mode == "edge" else mode
    np.testing.assert_array_equal(got, planes(np.pad(IMAGE, ((2, 3), (4, 5), (0, 0)), mode=how)))


@pytest.mark.parametrize("size", [(30, 40), (100, 37), (61, 200), (7, 9)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [1, 3, 4, 5])
def test_resizes_are_torchs(tmp_path: Path, size: tuple[int, int], interpolation: str, channels: int) -> None:
    torch = pytest.importorskip("torch")
    image = np.concatenate([IMAGE, IMAGE[::-1]], axis=-1)[..., :channels]
    given = torch.from_numpy(planes(image).astype(np.float64))[None]
    want = torch.nn.functional.interpolate(given, size, mode=interpolation, antialias=True)[0].numpy()
    stored = dataset_of(tmp_path, image)
    floats = stored.decode(dtype="float32").resize(size, interpolation)[0][0]
    assert floats.dtype == np.float32
    np.testing.assert_allclose(floats, want, rtol=2e-6, atol=0.01)
    whole = stored.decode(dtype="uint16").resize(size, interpolation)[0][0]
    assert whole.dtype == np.uint16
    assert np.abs(whole.astype(np.float64) - want.clip(0, 65535)).max() <= 0.51


def test_random_resized_crops(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    stored = dataset_of(tmp_path, *[IMAGE] * 4).decode(dtype="float32").random_resized_crop(24).random_horizontal_flip()
    for index in range(4):
        values = drawn(stored, index)
        left, top, width, height = (int(number) for number in values["crop"])
        given = planes(IMAGE[top : top + height, left : left + width].astype(np.float64))[None]
        want = torch.nn.functional.interpolate(
            torch.from_numpy(given.copy()), (24, 24), mode="bilinear", antialias=True
        )[0].numpy()
        want = want[..., ::-1] if values["flip"][0] else want
        np.testing.assert_allclose(stored[index][0], want, rtol=2e-6, atol=0.01)


def test_nearest_copies_values(tmp_path: Path) -> None:
    got = dataset_of(tmp_path, IMAGE).decode(dtype="native").resize((20, 150), "nearest")[0][0]
    rows = ((np.arange(20) + 0.5) * 61 / 20).astype(int)
    columns = ((np.arange(150) + 0.5) * 83 / 150).astype(int)
    np.testing.assert_array_equal(got, planes(IMAGE[rows][:, columns]))


def test_wide_numbers_are_resized_in_double_precision(tmp_path: Path) -> None:
    image = (IMAGE.astype(np.int64) * 65536 - 2**31 + 3).astype(np.int32)
    got = dataset_of(tmp_path, image).decode(dtype="native").resize((122, 166))[0][0]
    assert got.dtype == np.int32
    smooth = np.full((8, 8, 1), 2**31 - 9, np.int32)
    np.testing.assert_array_equal(
        dataset_of(tmp_path / "smooth", smooth).decode(dtype="native").resize((5, 13))[0][0], smooth[0, 0, 0]
    )


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_quarter_turns_copy_values(tmp_path: Path, angle: int) -> None:
    turned = dataset_of(tmp_path, IMAGE).decode(dtype="native").random_rotation((angle, angle), expand=True)
    np.testing.assert_array_equal(turned[0][0], planes(np.rot90(IMAGE, angle // 90)))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_rotations_and_warps_are_those_of_floats(tmp_path: Path, interpolation: str) -> None:
    Image = pytest.importorskip("PIL.Image")
    stored = dataset_of(tmp_path, IMAGE).decode(dtype="float32")
    got = stored.random_rotation((33, 33), interpolation)[0][0]
    how = Image.Resampling.NEAREST if interpolation == "nearest" else Image.Resampling.BILINEAR
    for channel in range(3):
        want = np.asarray(Image.fromarray(IMAGE[..., channel].astype(np.float32)).rotate(33, how))
        differences = np.abs(got[channel] - want)
        assert (differences > 0.05).mean() < (0.01 if interpolation == "nearest" else 1e-9)


def test_masks_turn_with_their_images(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    labels = (IMAGE[..., 0] // 256).astype(np.uint8)
    (tmp_path / "images" / "a.tif").write_bytes(made_tiff.tiff(labels.astype(np.uint16) * 256))
    Image.fromarray(labels).save(tmp_path / "masks" / "a.png")
    dataset = feedline.open(str(tmp_path), fields=("images/{key}.tif", "masks/{key}.png")).decode(dtype="uint16")
    image, mask = dataset.random_affine((10, 60), translate=(0.1, 0.1), scale=(0.8, 1.2))[0]
    assert (np.asarray(image)[0] // 256 != mask).mean() < 0.02


def test_normalize_is_in_stored_units(tmp_path: Path) -> None:
    stored = dataset_of(tmp_path, IMAGE)
    mean, std = np.float32([20000, 21000, 22000]), np.float32([1000, 900, 800])
    for dtype in ("uint16", "float32", "native"):
        got = stored.decode(dtype=dtype).normalize(mean, std)[0][0]
        assert got.dtype == np.float32
        want = (planes(IMAGE).astype(np.float32) - mean[:, None, None]) / std[:, None, None]
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ConfigError, match="2 numbers for images with 3 channels"):
        stored.decode(dtype="uint16").normalize([1, 2], [3, 4])[0]


def test_half_floats_are_normalized_in_single_precision(tmp_path: Path) -> None:
    image = np.linspace(-3, 3, 60, dtype=np.float16).reshape(6, 10)
    got = dataset_of(tmp_path, image).decode(dtype="native").normalize([0.25], [1e-7])[0][0]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got[0], (image.astype(np.float32) - np.float32(0.25)) / np.float32(1e-7))


def test_window(tmp_path: Path) -> None:
    image = (IMAGE[..., 0].astype(np.int32) // 20 - 1000).astype(np.int16)
    got = dataset_of(tmp_path, image).decode(dtype="native").window(40, 400)[0][0]
    want = np.clip((image.astype(np.float32) - 40 + 200) / 400, 0, 1)
    assert got.dtype == np.float32 and 0.05 < want.mean() < 0.95
    np.testing.assert_array_equal(got[0], want)


def test_window_of_bytes(tmp_path: Path) -> None:
    image = (IMAGE // 256).astype(np.uint8)
    want = np.clip((planes(image).astype(np.float32) - 80 + 50) / 100, 0, 1)
    np.testing.assert_array_equal(dataset_of(tmp_path, image).window(80, 100)[0][0], want)


@pytest.mark.parametrize("width", [0, -1, float("nan")])
def test_windows_without_width_are_refused(tmp_path: Path, width: float) -> None:
    with pytest.raises(ConfigError, match="window: width must be"):
        dataset_of(tmp_path, IMAGE).window(0, width)


def test_scale_divides_by_the_largest_number(tmp_path: Path) -> None:
    got = dataset_of(tmp_path, IMAGE).decode(dtype="uint16").to_dtype("float32", scale=True)[0][0]
    np.testing.assert_array_equal(got, planes(IMAGE).astype(np.float32) / np.float32(65535))


def test_half_batches(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    stored = dataset_of(tmp_path, IMAGE, IMAGE).decode(dtype="float32").center_crop(8).normalize([20000], [1000])
    for name in ("float16", "bfloat16"):
        batch = next(iter(stored.loader(2, dtype=name))).image
        want = (torch.from_numpy(planes(IMAGE).astype(np.float32)) - 20000) / 1000
        assert batch.dtype == getattr(torch, name)
        assert torch.equal(batch[0], want[:, 26:34, 38:46].to(batch.dtype))


def test_functions_receive_stored_values(tmp_path: Path) -> None:
    stored = dataset_of(tmp_path, IMAGE).decode(dtype="uint16").center_crop(8)
    doubled = stored.map(lambda image: image.astype(np.int32) * 2, "image")
    np.testing.assert_array_equal(doubled[0][0], planes(IMAGE[26:34, 38:46]).astype(np.int32) * 2)


def test_bicubic_rotations_are_refused(tmp_path: Path) -> None:
    stored = dataset_of(tmp_path, IMAGE).decode(dtype="float32")
    with pytest.raises(ConfigError, match="must be nearest or bilinear, got bicubic"):
        stored.random_rotation(10, "bicubic")


def test_nan_stays_in_its_neighbourhood(tmp_path: Path) -> None:
    image = IMAGE[..., :1].astype(np.float32)
    image[30, 40] = np.nan
    got = dataset_of(tmp_path, image).decode(dtype="float32").resize((30, 41))[0][0]
    assert 0 < np.isnan(got).sum() < 25


def test_crops_that_are_too_large_name_the_sample(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"random_crop: .*000\.tif"):
        dataset_of(tmp_path, IMAGE).decode(dtype="uint16").random_crop(100)[0]
