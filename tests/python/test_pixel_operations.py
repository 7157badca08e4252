# SPDX-License-Identifier: Apache-2.0
"""The operations of the augmentation recipes produce the same bytes as the installed Pillow, on every SIMD variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import photographs
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import feedline
import feedline.testing

Case = tuple[str, tuple[float, ...], dict[str, Any], Callable[[Image.Image], Image.Image]]

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
# shapes in which rows, columns and vectors are cut short, and one larger than a vector in both directions
SHAPES = [(1, 1), (1, 2), (1, 40), (40, 1), (2, 2), (3, 3), (3, 5), (5, 3), (4, 17), (17, 4), (31, 33), (131, 257)]
FACTORS = [0.0, 0.05, 0.1, 0.34, 0.5, 0.77, 0.9, 0.999, 1.0, 1.01, 1.1, 1.33, 1.5, 1.9, 2.0, 3.7, -0.3, -2.0, 1e4]
FILLS = [(0, 0, 0), (124, 116, 104), (255, 3, 77)]


def _photos() -> list[np.ndarray]:
    """Photos, grey and RGB, and generated images: noise, extremes, flat ones, and ones with few colours."""
    rng = np.random.default_rng(5)
    found = []
    for i, part in enumerate(photographs.crops(24, largest=150)):
        found.append(part if i % 4 else np.asarray(Image.fromarray(part).convert("L"))[:, :, None])
    for i, shape in enumerate(SHAPES):
        for channels in (1, 3):
            noise = rng.integers(0, 256, (*shape, channels), np.uint8)
            found.append(noise if i % 3 else np.where(noise > 127, 255, 0).astype(np.uint8))
    found.append(np.full((19, 23, 3), 200, np.uint8))
    found.append(np.full((19, 23, 1), 0, np.uint8))
    found.append(rng.integers(90, 93, (40, 37, 3), np.uint8))
    found.append(rng.choice(np.array([0, 254, 255], np.uint8), (37, 40, 3)))
    return [np.ascontiguousarray(photo) for photo in found]


PHOTOS = _photos()


def to_pillow(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def from_pillow(image: Image.Image) -> np.ndarray:
    pixels = np.asarray(image)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _fill_of(image: Image.Image, fill: tuple[int, int, int]) -> Any:
    return fill if image.mode == "RGB" else fill[0]


def _solarize_add(image: Image.Image, add: int, threshold: int) -> Image.Image:
    table = [min(255, i + add) if i < threshold else i for i in range(256)]
    return image.point(table * len(image.getbands()))


def _adjust_hue(image: Image.Image, factor: float) -> Image.Image:
    """torchvision's adjust_hue for PIL images."""
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    shifted = np.asarray(hue) + np.int32(factor * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(shifted), saturation, value)).convert("RGB")


def tables() -> Iterator[Case]:
    yield "autocontrast", (), {}, ImageOps.autocontrast
    yield "equalize", (), {}, ImageOps.equalize
    yield "invert", (), {}, ImageOps.invert
    for bits in range(1, 9):
        yield "posterize", (bits,), {}, lambda image, bits=bits: ImageOps.posterize(image, bits)
    for threshold in (0, 1, 25.5, 64, 127, 128, 180.2, 230, 255, 256):
        yield "solarize", (threshold,), {}, lambda image, t=threshold: ImageOps.solarize(image, t)
    for add in (0, 1, 11, 44, 88, 110, 255):
        for threshold in (128, 200):
            yield "solarize_add", (add, threshold), {}, lambda i, a=add, t=threshold: _solarize_add(i, a, t)


def enhancers() -> Iterator[Case]:
    named = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "saturation": ImageEnhance.Color,
        "sharpness": ImageEnhance.Sharpness,
    }
    for name, enhancer in named.items():
        for factor in FACTORS:
            yield name, (factor,), {}, lambda image, e=enhancer, f=factor: e(image).enhance(f)
    for factor in (-0.5, -0.41, -0.2, -0.003, 0.0, 0.003, 0.017, 0.1, 0.25, 0.33, 0.49, 0.5):
        yield "hue", (factor,), {}, lambda image, f=factor: _adjust_hue(image, f)
    for radius in (0.0, 0.02, 0.1, 0.1234567, 0.5, 0.7, 1.0, 1.41421, 1.9, 2.0, 2.6, 3.5, 7.3, 40.0, 333.3):
        yield "pillow_blur", (radius,), {}, lambda image, r=radius: image.filter(ImageFilter.GaussianBlur(r))
    yield "grayscale", (1,), {}, lambda image: image.convert("L")
    yield "grayscale", (3,), {}, lambda image: image.convert("L").convert("RGB")


def _affine_matrices() -> Iterator[tuple[float, ...]]:
    for slope in (-0.99, -0.3, -0.1, 0.037, 0.3):
        yield (1, slope, 0, 0, 1, 0)  # timm's shear_x and shear_y
        yield (1, 0, 0, slope, 1, 0)
    for shift in (-100.0, -3.0, -0.45, 0.0, 0.5, 7.0, 13.2):
        yield (1, 0, shift, 0, 1, 0)  # timm's translate_x and translate_y
        yield (1, 0, 0, 0, 1, shift)
    yield (0.5, 0, 0.25, 0, 0.4, -1)  # scaled: Pillow's method without rotation
    yield (-1, 0, 30, 0, -1, 25)
    yield (0, 0, 3, 0, 0, 2)
    yield (1e5, 1, 0, 3, 1, 0)  # beyond 16.16 fixed point
    yield (1, 0.1, 40000.5, 0.1, 1, -4)
    yield (-0.7, 0.6, 20.3, 0.6, 0.7, -5.1)
    center, shears = (11.0, 9.5), ((0.0, 0.0), (20.0, 0.0), (0.0, -15.0), (10.0, 12.0))
    for angle, shear in zip((-30.0, 0.0, 12.5, 135.0), shears, strict=True):
        yield tuple(feedline._engine.inverse_affine_matrix(center, angle, (3.0, -2.0), 1.1, shear))


def affine() -> Iterator[Case]:
    for i, matrix in enumerate(_affine_matrices()):
        fill = FILLS[i % len(FILLS)]
        for name, resample in FILTERS.items():
            options = {"interpolation": name, "fill": fill}
            yield (
                "affine",
                matrix,
                options,
                lambda image, m=matrix, r=resample, f=fill: image.transform(
                    image.size, Image.Transform.AFFINE, m, r, fillcolor=_fill_of(image, f)
                ),
            )
            yield (
                "affine",
                matrix,
                {**options, "size": (29, 45)},
                lambda image, m=matrix, r=resample, f=fill: image.transform(
                    (45, 29), Image.Transform.AFFINE, m, r, fillcolor=_fill_of(image, f)
                ),
            )


def perspective() -> Iterator[Case]:
    coefficients = [
        (1, 0, 0, 0, 1, 0, 0, 0),
        (0.9, 0.05, 1.2, -0.03, 1.1, -2.0, 0.001, -0.0007),
        (1.2, -0.2, 3.0, 0.1, 0.8, 4.0, -0.004, 0.002),
        (1, 0, 0, 0, 1, 0, -2 / 9, 0),  # the pole is in the image: 1 - 2/9 * 4.5 == 0
        (0, 0, 0, 0, 0, 0, -2, 0),  # 0 / 0 at x = 0
        (1, 0, 0, 0, 1, 0, -0.05, 0.03),
    ]
    for i, values in enumerate(coefficients):
        fill = FILLS[(i + 1) % len(FILLS)]
        for name, resample in FILTERS.items():
            yield (
                "perspective",
                values,
                {"interpolation": name, "fill": fill},
                lambda image, v=values, r=resample, f=fill: image.transform(
                    image.size, Image.Transform.PERSPECTIVE, v, r, fillcolor=_fill_of(image, f)
                ),
            )


def rotations() -> Iterator[Case]:
    for i, angle in enumerate((0, 1.5, -15, 30, 45, 90, -90, 135, 180, 270, 359.9, 360, -1e-20)):
        fill = FILLS[i % len(FILLS)]
        for expand in (False, True):
            for name, resample in FILTERS.items():
                yield (
                    "rotate",
                    (angle, expand),
                    {"interpolation": name, "fill": fill},
                    lambda image, a=angle, e=expand, r=resample, f=fill: image.rotate(
                        a, r, e, fillcolor=_fill_of(image, f)
                    ),
                )
    for center in ((0.0, 0.0), (5.0, 11.0)):
        yield "rotate", (90, False, *center), {}, lambda image, c=center: image.rotate(90, center=c)
        yield "rotate", (20, True, *center), {}, lambda image, c=center: image.rotate(20, expand=True, center=c)


def erasures() -> Iterator[Case]:
    def erased(image: Image.Image, fill: tuple[int, int, int]) -> Image.Image:
        out = image.copy()
        out.paste(_fill_of(image, fill), (0, 0, 1, 1))
        return out

    for fill in FILLS:
        yield "erase", (0, 0, 1, 1), {"fill": fill}, lambda image, f=fill: erased(image, f)


GROUPS = {
    "tables": tables,
    "enhancers": enhancers,
    "affine": affine,
    "perspective": perspective,
    "rotations": rotations,
    "erasures": erasures,
}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[np.ndarray]]:
    """Returns Pillow's result for every photo in every case, calculated once for all variants."""
    return {
        group: [from_pillow(pillow(to_pillow(photo))) for *_, pillow in cases() for photo in PHOTOS]
        for group, cases in GROUPS.items()
    }


def test_there_are_enough_cases(expected: dict[str, list[np.ndarray]]) -> None:
    assert sum(map(len, expected.values())) >= 22_000
    assert {photo.shape[2] for photo in PHOTOS} == {1, 3}


@pytest.mark.parametrize("variant", feedline.simd_variants())
@pytest.mark.parametrize("group", list(GROUPS))
def test_bytes_are_pillows(group: str, variant: str, expected: dict[str, list[np.ndarray]], best_variant: None) -> None:
    feedline.testing.force_simd_variant(variant)
    wanted = iter(expected[group])
    for name, values, options, _ in GROUPS[group]():
        for photo in PHOTOS:
            got = feedline.testing.pixel_operation(photo, name, *values, **options)
            np.testing.assert_array_equal(got, next(wanted), err_msg=f"{name} {values} {options} of {photo.shape}")


def _blurred(pixels: np.ndarray, sizes: tuple[int, int], sigmas: tuple[float, float]) -> np.ndarray:
    """A Gaussian blur in double precision, with a reflected border."""
    values = pixels.astype(np.float64)
    for axis, size, sigma in ((1, sizes[0], sigmas[0]), (0, sizes[1], sigmas[1])):
        radius = size // 2
        weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
        widths = [(0, 0)] * 3
        widths[axis] = (radius, radius)
        bordered = np.pad(values, widths, "reflect")
        windows = np.lib.stride_tricks.sliding_window_view(bordered, size, axis)
        values = windows @ (weights / weights.sum())
    return values


BLURS = [((3, 3), (0.3, 0.3)), ((3, 7), (0.8, 1.5)), ((9, 9), (0.1, 2.0)), ((23, 23), (2.0, 2.0)), ((1, 5), (1.0, 9.0))]


@pytest.mark.parametrize("variant", feedline.simd_variants())
def test_blur_is_the_real_one_rounded(variant: str, best_variant: None) -> None:
    """Within half a level plus the error of float32; all variants produce the same bytes."""
    feedline.testing.force_simd_variant(variant)
    for sizes, sigmas in BLURS:
        for photo in PHOTOS:
            got = feedline.testing.pixel_operation(photo, "gaussian_blur", *sizes, *sigmas)
            wanted = _blurred(photo, sizes, sigmas)
            assert np.abs(got - wanted).max() <= 0.5001, f"{sizes} {sigmas} of {photo.shape}"
            feedline.testing.force_simd_variant("scalar")
            plain = feedline.testing.pixel_operation(photo, "gaussian_blur", *sizes, *sigmas)
            feedline.testing.force_simd_variant(variant)
            np.testing.assert_array_equal(got, plain)


def test_blur_is_torchvisions() -> None:
    """Within one level, and at most one of 2,000 pixels differs."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    functional = pytest.importorskip("torchvision.transforms.v2.functional", reason="torchvision is not installed")
    different = total = 0
    for size in range(3, 24, 2):
        for photo in PHOTOS:
            if min(photo.shape[:2]) <= size // 2:  # torch reflects a border only once
                continue
            sigma = 0.1 + 0.08 * size
            tensor = torch.from_numpy(photo.copy()).permute(2, 0, 1)
            wanted = functional.gaussian_blur(tensor, [size, size], [sigma, sigma]).permute(1, 2, 0).numpy()
            got = feedline.testing.pixel_operation(photo, "gaussian_blur", size, size, sigma, sigma)
            distance = np.abs(got.astype(int) - wanted)
            assert distance.max() <= 1
            different += int((distance > 0).sum())
            total += distance.size
    assert different * 2000 <= total


def test_the_matrices_are_torchvisions() -> None:
    functional = pytest.importorskip("torchvision.transforms.functional", reason="torchvision is not installed")
    rng = np.random.default_rng(3)
    for _ in range(500):
        center, translate, shear = (tuple(map(float, rng.uniform(-40, 40, 2))) for _ in range(3))
        angle, scale = float(rng.uniform(-180, 180)), float(rng.uniform(0.3, 3))
        got = feedline._engine.inverse_affine_matrix(center, angle, translate, scale, shear)
        assert list(got) == functional._get_inverse_affine_matrix(
            list(center), angle, list(translate), scale, list(shear)
        )
        corners = np.array([[0, 0], [224, 0], [224, 180], [0, 180]], float)
        start = [tuple(map(float, corner)) for corner in np.round(corners + rng.integers(-50, 50, (4, 2)))]
        end = [tuple(map(float, corner)) for corner in np.round(corners + rng.integers(-50, 50, (4, 2)))]
        wanted = functional._get_perspective_coeffs([list(p) for p in start], [list(p) for p in end])
        np.testing.assert_allclose(feedline._engine.perspective_coefficients(start, end), wanted, rtol=2e-7)


def test_torchvisions_calls_on_pil_images() -> None:
    """The calls of RandAugment and similar classes, through torchvision itself."""
    functional = pytest.importorskip("torchvision.transforms.functional", reason="torchvision is not installed")
    modes = {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC"}
    for i, photo in enumerate(PHOTOS[:24]):
        image, (height, width) = to_pillow(photo), photo.shape[:2]
        for name, mode in modes.items():
            interpolation = functional.InterpolationMode[mode]
            angle, shear = 7.5 * i - 80, [math.degrees(math.atan(0.03 * i - 0.3)), 0.0]
            matrix = feedline._engine.inverse_affine_matrix((0.0, 0.0), 0.0, (0.0, 0.0), 1.0, tuple(shear))
            got = feedline.testing.pixel_operation(photo, "affine", *matrix, interpolation=name)
            wanted = functional.affine(image, 0.0, [0, 0], 1.0, shear, interpolation, center=[0, 0])
            np.testing.assert_array_equal(got, from_pillow(wanted))
            got = feedline.testing.pixel_operation(photo, "rotate", angle, i % 2, interpolation=name)
            np.testing.assert_array_equal(got, from_pillow(functional.rotate(image, angle, interpolation, bool(i % 2))))
            start = [(0.0, 0.0), (width - 1.0, 0.0), (width - 1.0, height - 1.0), (0.0, height - 1.0)]
            end = [(3.0, 5.0), (width - 9.0, 2.0), (width - 4.0, height - 8.0), (1.0, height - 3.0)]
            values = feedline._engine.perspective_coefficients(start, end)
            got = feedline.testing.pixel_operation(photo, "perspective", *values, interpolation=name)
            wanted = functional.perspective(image, start, end, interpolation)
            np.testing.assert_array_equal(got, from_pillow(wanted))


def test_erase_writes_over_its_box_alone() -> None:
    rng = np.random.default_rng(9)
    for photo in PHOTOS:
        height, width, channels = photo.shape
        for _ in range(5):
            left, top = int(rng.integers(0, width)), int(rng.integers(0, height))
            box = (left, top, int(rng.integers(0, width - left + 1)), int(rng.integers(0, height - top + 1)))
            noise = rng.integers(0, 256, (box[3], box[2], channels), np.uint8)
            inside = (slice(top, top + box[3]), slice(left, left + box[2]))
            filled, noisy = photo.copy(), photo.copy()
            filled[inside], noisy[inside] = (9, 8, 7)[:channels], noise
            np.testing.assert_array_equal(
                feedline.testing.pixel_operation(photo, "erase", *box, fill=(9, 8, 7)), filled
            )
            if noise.size:
                np.testing.assert_array_equal(
                    feedline.testing.pixel_operation(photo, "erase", *box, noise=noise), noisy
                )


@pytest.mark.parametrize(
    ("name", "values", "options"),
    [
        ("posterize", (9,), {}),
        ("posterize", (-1,), {}),
        ("grayscale", (2,), {}),
        ("affine", (1, 0, 0, 0, 1, 0), {"interpolation": "box"}),
        ("affine", (1, 0, 0, 0, 1, 0), {"size": (0, 4)}),
        ("perspective", (1, 0, 0, 0, 1, 0, 0, 0), {"interpolation": "box"}),
        ("rotate", (10, 0), {"interpolation": "box"}),
        ("gaussian_blur", (4, 3, 1.0, 1.0), {}),
        ("gaussian_blur", (3, 3, 1.0, 0.0), {}),
        ("gaussian_blur", (3, 3, math.nan, 1.0), {}),
        ("erase", (0, 0, 6, 1), {}),
        ("erase", (-1, 0, 1, 1), {}),
        ("erase", (1, 4, 1, 2**31 - 1), {}),
        ("erase", (0, 0, 2, 2), {"noise": np.zeros((2, 2, 1), np.uint8)}),
        ("sepia", (), {}),
    ],
)
def test_parameters_out_of_range_are_errors(name: str, values: tuple[float, ...], options: dict[str, Any]) -> None:
    photo = np.zeros((5, 5, 3), np.uint8)
    with pytest.raises(feedline.ConfigError):
        feedline.testing.pixel_operation(photo, name, *values, **options)


def test_posterize_to_no_bits_is_black() -> None:
    np.testing.assert_array_equal(feedline.testing.pixel_operation(PHOTOS[0], "posterize", 0), PHOTOS[0] * 0)
