# SPDX-License-Identifier: Apache-2.0
"""For the drawn parameters, warps and resizes have the same effect on images as Pillow, and on masks as torchvision
v2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import photographs
import pytest
from PIL import Image

import feedline
import feedline.testing
from feedline.testing import elastic_displacement

PHOTOS = 20
Chain = Callable[[Any], Any]
Drawn = dict[str, tuple[float, ...]]

NEAREST, BILINEAR = Image.Resampling.NEAREST, Image.Resampling.BILINEAR
BICUBIC, LANCZOS = Image.Resampling.BICUBIC, Image.Resampling.LANCZOS


def _points(values: tuple[float, ...]) -> list[list[int]]:
    return [[int(x), int(y)] for x, y in zip(values[::2], values[1::2], strict=True)]


class Moved:
    """An operation: its method call, and torchvision's function for the drawn values."""

    def __init__(self, chain: Chain, call: str, interpolation: str, fill: Any = 0, **constant: Any) -> None:
        self.chain, self.call, self.interpolation, self.fill, self.constant = chain, call, interpolation, fill, constant

    def arguments(self, drawn: Drawn) -> dict[str, Any]:
        if self.call == "rotate":
            return {"angle": drawn["angle"][0], **self.constant}
        if self.call == "affine":
            return {
                "angle": drawn["angle"][0],
                "translate": [int(t) for t in drawn["translate"]],
                "scale": drawn["scale"][0],
                "shear": list(drawn["shear"]),
                **self.constant,
            }
        return {"startpoints": _points(drawn["startpoints"]), "endpoints": _points(drawn["endpoints"])}


WARPS: dict[str, Moved] = {
    "rotation": Moved(lambda d: d.random_rotation(30), "rotate", "nearest"),
    "rotation expanded": Moved(
        lambda d: d.random_rotation((-180, 180), "bilinear", expand=True, fill=(10, 120, 250)),
        "rotate",
        "bilinear",
        (10, 120, 250),
        expand=True,
    ),
    "rotation about": Moved(
        lambda d: d.random_rotation((10, 80), "bicubic", center=(5.5, 7)), "rotate", "bicubic", center=(5.5, 7)
    ),
    "rotation about expanded": Moved(
        lambda d: d.random_rotation(100, center=(0, 20), expand=True, fill=9),
        "rotate",
        "nearest",
        9,
        center=(0, 20),
        expand=True,
    ),
    "quarters": Moved(lambda d: d.random_rotation((90, 90), expand=True), "rotate", "nearest", expand=True),
    "affine": Moved(lambda d: d.random_affine(20), "affine", "nearest"),
    "affine all": Moved(
        lambda d: d.random_affine((-90, 45), (0.2, 0.4), (0.6, 1.7), (-20, 10, 0, 30), "bilinear", (1, 2, 3)),
        "affine",
        "bilinear",
        (1, 2, 3),
    ),
    "affine about": Moved(
        lambda d: d.random_affine(0, scale=(0.9, 1.1), shear=15, interpolation="bicubic", fill=200, center=(3, 4.5)),
        "affine",
        "bicubic",
        200,
        center=[3.0, 4.5],
    ),
    "shifts": Moved(lambda d: d.random_affine(0, translate=(0.3, 0.3)), "affine", "nearest"),
    "perspective": Moved(lambda d: d.random_perspective(p=0.8), "perspective", "bilinear"),
    "perspective all": Moved(
        lambda d: d.random_perspective(1.0, 1.0, "bicubic", fill=(0, 0, 255)), "perspective", "bicubic", (0, 0, 255)
    ),
    "perspective nearest": Moved(
        lambda d: d.random_perspective(0.3, 1.0, "nearest", fill=17), "perspective", "nearest", 17
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs of photos of any size, each with a mask of labels; every fourth photo is grey, and some are narrow."""
    root = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(3)
    for name in ("images/class", "masks"):
        (root / name).mkdir(parents=True)
    parts = photographs.crops(PHOTOS, largest=150)
    parts[3], parts[5], parts[9] = parts[3][:1], parts[5][:, :1], parts[9][:3, :5]
    parts[7] = parts[7][: min(parts[7].shape[:2]), : min(parts[7].shape[:2])]
    for i, part in enumerate(parts):
        image = Image.fromarray(part)
        (image.convert("L") if i % 4 == 1 else image).save(root / "images/class" / f"{i:03}.png")
        labels = rng.integers(1, 255, part.shape[:2], np.uint8)
        Image.fromarray(labels).save(root / "masks" / f"{i:03}.png")
    return root


def _images(root: Path, mode: str = "RGB") -> list[Image.Image]:
    return [Image.open(path).convert(mode) for path in sorted((root / "images/class").iterdir())]


def _masks(root: Path) -> list[np.ndarray]:
    return [np.asarray(Image.open(path)) for path in sorted((root / "masks").iterdir())]


def _pairs(root: Path) -> feedline.Dataset:
    """For images and masks of any size."""
    fields = ("image=images/class/{key}.png", "mask=masks/{key}.png:mask")
    return feedline.open(root, fields=fields).collate("list", fields=["image", "mask"])


def _delivered(dataset: feedline.Dataset, seed: int, **loader: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Returns the image and mask of every sample of epoch 0."""
    with dataset.loader(5, seed=seed, shuffle=False, layout="NHWC", output="numpy", **loader) as batches:
        for batch in batches:
            yield from zip(batch.image, batch.mask, strict=True)


def _drawn(dataset: feedline.Dataset, index: int, seed: int) -> Drawn:
    return {name: values for _operation, name, values in dataset.draw(index, seed=seed)}


def _pillow(functional: Any, image: Image.Image, moved: Moved, drawn: Drawn) -> Image.Image:
    """Uses torchvision's functions for PIL images."""
    how = functional.InterpolationMode(moved.interpolation)
    fill = moved.fill[0] if image.mode == "L" and isinstance(moved.fill, tuple) else moved.fill
    return getattr(functional, moved.call)(image, interpolation=how, fill=fill, **moved.arguments(drawn))


@pytest.mark.parametrize("warp", WARPS)
def test_warps_are_pillows_and_masks_torchvisions(folder: Path, wide: Path, warp: str) -> None:
    functional = pytest.importorskip("torchvision.transforms.functional", reason="torchvision is not installed")
    v2 = pytest.importorskip("torchvision.transforms.v2.functional")
    import torch
    from torchvision import tv_tensors

    moved = WARPS[warp]
    if moved.call == "perspective":  # torchvision's fails if the corners lie on a line
        folder = wide
    labels = wrong = 0
    for mode, seeds in (("RGB", range(2)), ("L", range(2, 3))):
        dataset = moved.chain(_pairs(folder).decode(mode, fields="image"))
        for seed in seeds:
            samples = zip(_images(folder, mode), _masks(folder), _delivered(dataset, seed), strict=True)
            for i, (image, mask, (ours, our_mask)) in enumerate(samples):
                drawn = _drawn(dataset, i, seed)
                wanted, wanted_mask = image, torch.from_numpy(mask.copy())
                if drawn:
                    wanted = _pillow(functional, image, moved, drawn)
                    wanted_mask = getattr(v2, moved.call)(
                        tv_tensors.Mask(wanted_mask), **moved.arguments(drawn), fill=0
                    )
                about = f"{warp} {mode} seed {seed} sample {i} {image.size}: {drawn}"
                np.testing.assert_array_equal(ours, np.asarray(wanted).reshape(ours.shape), err_msg=about)
                if wanted.size != (wanted_mask.shape[-1], wanted_mask.shape[-2]):
                    continue  # torchvision's two expanded sizes differ by a pixel: Feedline uses the image's
                assert our_mask.shape == tuple(wanted_mask.shape), about
                labels += our_mask.size
                wrong += int((our_mask != wanted_mask.numpy()).sum())
    assert labels > 200_000
    # if two labels are equally near, the last bit of torch's matrix product decides
    assert wrong <= labels * 2e-5, f"{wrong} of {labels} labels"


def test_elastic_is_within_one_level_of_torchvision(folder: Path) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2.functional", reason="torchvision is not installed")
    import torch
    from torchvision import tv_tensors

    wrong = labels = levels = moved = 0
    cases = [
        ("RGB", (50.0, 50.0), (5.0, 5.0), "bilinear", (0, 0, 0)),
        ("RGB", (120.0, 30.0), (3.0, 6.5), "bilinear", (9, 200, 31)),
        ("L", (60.0, 60.0), (4.0, 4.0), "bilinear", (77, 77, 77)),
        ("RGB", (80.0, 90.0), (5.0, 5.0), "nearest", (1, 2, 3)),
        ("RGB", (3.0, 3.0), (0.0, 0.0), "bilinear", (0, 0, 0)),
        ("RGB", (70.0, 50.0), (5.0, 5.0), "bicubic", (9, 200, 31)),
        ("L", (60.0, 60.0), (4.0, 4.0), "bicubic", (77, 77, 77)),
        ("RGB", (3.0, 3.0), (0.0, 0.0), "bicubic", (0, 0, 0)),
    ]
    cut = 0
    for seed, (mode, alpha, sigma, interpolation, fill) in enumerate(cases):
        opened = _pairs(folder).decode(mode, fields="image")
        dataset = opened.elastic_transform(alpha, sigma, interpolation, fill)
        samples = zip(_images(folder, mode), _masks(folder), _delivered(dataset, seed), strict=True)
        for i, (image, mask, (ours, our_mask)) in enumerate(samples):
            by = elastic_displacement(image.height, image.width, alpha, sigma, index=i, seed=seed, stream=1)
            displacement = torch.from_numpy(by.transpose(1, 2, 0)[None].copy())
            pixels = torch.from_numpy(np.atleast_3d(np.asarray(image)).transpose(2, 0, 1).copy())
            filled = [float(v) for v in fill[: pixels.shape[0]]]
            wanted = v2.elastic(tv_tensors.Image(pixels), displacement, interpolation, filled).numpy()
            if interpolation == "bicubic":  # which torchvision allows to wrap below 0 and above 255
                sums = v2.elastic(tv_tensors.Image(pixels.float()), displacement, interpolation, filled).numpy()
                wanted = np.where((sums < -0.4) | (sums > 255.4), sums.round().clip(0, 255), wanted)
                cut += int((sums.round() != sums.round().clip(0, 255)).sum())
            wanted_mask = v2.elastic(tv_tensors.Mask(torch.from_numpy(mask.copy())), displacement, fill=0).numpy()
            differs = np.abs(ours.astype(int) - wanted.transpose(1, 2, 0))
            levels = max(levels, int(differs.max())) if interpolation != "nearest" else levels
            moved += int((ours != np.asarray(image).reshape(ours.shape)).sum())
            wrong += int((our_mask != wanted_mask).sum()) + (
                int((differs > 0).sum()) if interpolation == "nearest" else 0
            )
            labels += our_mask.size
    assert levels <= 1
    assert cut > 1000
    assert moved > labels
    assert wrong <= labels * 2e-5, f"{wrong} of {labels} labels"


def test_elastic_draws_its_interpolation_next_to_its_noise(folder: Path) -> None:
    made = {name: _pairs(folder).elastic_transform(8.0, 1.5, name) for name in ("bilinear", "bicubic", "random")}
    numbers = []
    for seed in range(4):
        delivered = (_delivered(dataset, seed) for dataset in made.values())
        for index, (bilinear, bicubic, random) in enumerate(zip(*delivered, strict=True)):
            (number,) = _drawn(made["random"], index, seed)["interpolation"]
            np.testing.assert_array_equal(random[0], (bicubic if number == BICUBIC else bilinear)[0])
            np.testing.assert_array_equal(random[1], bilinear[1])
            assert bilinear[0].size < 100 or (bilinear[0] != bicubic[0]).any()
            numbers.append(number)
    assert set(numbers) == {BILINEAR, BICUBIC}


def test_elastic_noise_is_torchvisions() -> None:
    """With the same noise: without a blur, the displacement is the noise, so a blurred one is torchvision's blur of
    it.
    """
    v2 = pytest.importorskip("torchvision.transforms.v2.functional", reason="torchvision is not installed")
    import torch

    for height, width, alpha, sigma in [(60, 41, (50.0, 20.0), (5.0, 5.0)), (33, 80, (1.0, 7.0), (0.4, 3.0))]:
        bare = elastic_displacement(height, width, (width, height), (0, 0), index=3, stream=2)
        ours = elastic_displacement(height, width, alpha, sigma, index=3, stream=2)
        assert bare.min() >= -1
        assert bare.max() < 1
        for direction, side in ((0, width), (1, height)):
            kernel = int(8 * sigma[direction] + 1) | 1
            noise = torch.from_numpy(bare[direction].copy())[None, None]
            blurred = v2.gaussian_blur(noise, [kernel, kernel], list(sigma)) * alpha[direction] / side
            np.testing.assert_allclose(
                ours[direction], blurred[0, 0].numpy(), rtol=0, atol=alpha[direction] / side * 1e-5
            )


# ---- resizes ----


def _longest(image: Image.Image, limit: int) -> tuple[int, int]:
    short, long = sorted(image.size)
    sides = int(limit * short / long), limit
    return sides if image.width <= image.height else sides[::-1]


def _letterboxed(
    image: Image.Image, size: tuple[int, int], scaleup: bool, center: bool, resample: Any, fill: Any
) -> Any:
    """Ultralytics' arithmetic, with Pillow's resize."""
    height, width = size
    r = min(height / image.height, width / image.width)
    r = r if scaleup else min(r, 1.0)
    inner = round(image.width * r), round(image.height * r)
    dw, dh = (width - inner[0]) / (1 + center), (height - inner[1]) / (1 + center)
    out = Image.new("RGB", (width, height), fill)
    corner = (round(dw - 0.1), round(dh - 0.1)) if center else (0, 0)
    out.paste(image.resize(inner, resample), corner)
    return out, inner, corner


def _usable(root: Path) -> list[int]:
    """Samples that are wide enough that no side becomes 0."""
    return [i for i, image in enumerate(_images(root)) if min(image.size) > 4]


@pytest.fixture(scope="module")
def wide(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns `folder` without the narrow images."""
    root = tmp_path_factory.mktemp("wide")
    for name in ("images/class", "masks"):
        (root / name).mkdir(parents=True)
    for i in _usable(folder):
        for name in ("images/class", "masks"):
            (root / name / f"{i:03}.png").write_bytes((folder / name / f"{i:03}.png").read_bytes())
    return root


def _nearest_labels(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """torch's nearest; size is (width, height)."""
    places = [
        np.minimum(np.floor(np.arange(out, dtype=np.float32) * (np.float32(n) / np.float32(out))).astype(int), n - 1)
        for n, out in zip(mask.shape, size[::-1], strict=True)
    ]
    return mask[np.ix_(*places)]


RESIZES: dict[str, tuple[Chain, Any, Callable[[Image.Image, Drawn], tuple[int, int]]]] = {
    "longest": (lambda d: d.resize(None, "lanczos", 97), LANCZOS, lambda image, _: _longest(image, 97)),
    "longest up": (lambda d: d.resize(max_size=301, interpolation="bicubic"), BICUBIC, lambda i, _: _longest(i, 301)),
    "both": (lambda d: d.resize([40, 70], "lanczos"), LANCZOS, lambda *_: (70, 40)),
    "random": (
        lambda d: d.random_resize(20, 90, "lanczos"),
        LANCZOS,
        lambda _, drawn: (int(drawn["size"][1]), int(drawn["size"][0])),
    ),
    "short side": (
        lambda d: d.random_short_side([30, 64, 91], 120),
        BILINEAR,
        lambda _, drawn: (int(drawn["size"][1]), int(drawn["size"][0])),
    ),
    "jitter": (
        lambda d: d.scale_jitter((120, 80), (0.3, 1.5), "bicubic"),
        BICUBIC,
        lambda _, drawn: (int(drawn["size"][1]), int(drawn["size"][0])),
    ),
}


RESIZES |= {
    "keep ratio": (
        lambda d: d.resize_keep_ratio((60, 90), 0.3, "bicubic"),
        BICUBIC,
        lambda image, _: _kept_ratio(image.size, (60, 90), 0.3),
    ),
    "keep ratio, drawn": (
        lambda d: d.resize_keep_ratio(64, 1.0, "bilinear", 0.5, (0.5, 1.5), True, 0.6, (0.5, 2.0)),
        BILINEAR,
        lambda image, drawn: _kept_ratio(image.size, (64, 64), 1.0, drawn["scale"][0], drawn["aspect"][0]),
    ),
}


def _kept_ratio(
    image: tuple[int, int], target: tuple[int, int], longest: float, scale: float = 1.0, aspect: float = 1.0
) -> tuple[int, int]:
    """timm's ResizeKeepRatio.get_params(), with the drawn values. image: (width, height); target: (height, width)."""
    ratio_h, ratio_w = image[1] / target[0], image[0] / target[1]
    ratio = max(ratio_h, ratio_w) * longest + min(ratio_h, ratio_w) * (1.0 - longest)
    root = aspect**0.5
    return round(image[0] * (scale * root) / ratio), round(image[1] * (scale / root) / ratio)


@pytest.mark.parametrize("resize", RESIZES)
def test_resizes_are_pillows_and_masks_torchs(wide: Path, resize: str) -> None:
    chain, resample, size_of = RESIZES[resize]
    dataset = chain(_pairs(wide))
    for seed in range(3):
        samples = zip(_images(wide), _masks(wide), _delivered(dataset, seed), strict=True)
        for i, (image, mask, (ours, our_mask)) in enumerate(samples):
            size = size_of(image, _drawn(dataset, i, seed))
            about = f"{resize} {i} {image.size} to {size}"
            np.testing.assert_array_equal(ours, np.asarray(image.resize(size, resample)), err_msg=about)
            np.testing.assert_array_equal(our_mask, _nearest_labels(mask, size), err_msg=about)


def test_drawn_sizes_are_torchvisions(wide: Path) -> None:
    """For the same factor or edge: RandomShortestSize's and ScaleJitter's own arithmetic, over many sizes."""
    torch = pytest.importorskip("torch")
    from feedline.testing import draw_for_size

    opened = feedline.open(wide / "images").collate("list", fields="image")
    short = opened.random_short_side([200, 333, 480], 640)
    jitter = opened.scale_jitter((300, 200), (0.1, 2.0))
    rng = np.random.default_rng(1)
    for i in range(3000):
        height, width = (int(v) for v in rng.integers(40, 900, 2))
        size = next(d.values for d in draw_for_size(short, height, width, i) if d.name == "size")
        wanted = []
        for edge in (200, 333, 480):
            r = min(edge / min(height, width), 640 / max(height, width))
            wanted.append((int(height * r), int(width * r)))
        assert tuple(int(v) for v in size) in wanted
        drawn = {d.name: d.values for d in draw_for_size(jitter, height, width, i)}
        r = min(200 / height, 300 / width) * torch.tensor([drawn["scale"][0]], dtype=torch.float32)
        assert drawn["size"] == (int(height * r), int(width * r))


def test_sizes_of_one_ratio_are_timms(wide: Path) -> None:
    from feedline.testing import draw_for_size

    opened = feedline.open(wide / "images").collate("list", fields="image")
    drawing = opened.resize_keep_ratio((300, 200), 0.25, "bilinear", 0.5, (0.8, 1.3), False, 0.5, (0.7, 1.4))
    fixed = {longest: opened.resize_keep_ratio((224, 160), longest) for longest in (0.0, 0.5, 1.0)}
    rng = np.random.default_rng(2)
    for i in range(2000):
        height, width = (int(v) for v in rng.integers(40, 900, 2))
        drawn = {d.name: d.values for d in draw_for_size(drawing, height, width, i)}
        made = _kept_ratio((width, height), (300, 200), 0.25, drawn["scale"][0], drawn["aspect"][0])
        assert drawn["size"] == made[::-1]
        for longest, dataset in fixed.items():
            (size,) = [d.values for d in draw_for_size(dataset, height, width, i)]
            assert size == _kept_ratio((width, height), (224, 160), longest)[::-1]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "symmetric"])
@pytest.mark.parametrize("by_chance", [False, True])
def test_crops_with_a_border_where_the_image_is_smaller(wide: Path, mode: str, by_chance: bool) -> None:
    """timm's CenterCropOrPad and RandomCropOrPad, which draw only the position."""
    size, fill = (70, 90), (9, 120, 250)
    dataset = _pairs(wide)
    dataset = (dataset.random_crop_or_pad if by_chance else dataset.center_crop)(size, fill, mode)
    seen = Counter[bool]()
    for i, (image, mask, (ours, our_mask)) in enumerate(
        zip(_images(wide), _masks(wide), _delivered(dataset, 4), strict=True)
    ):
        drawn = _drawn(dataset, i, 4)
        left, top, width, height = (int(v) for v in drawn["crop"])
        more = max(0, size[1] - image.width), max(0, size[0] - image.height)
        if by_chance:
            sides = [int(v) for v in drawn["padding"]]
            assert (sides[0] + sides[2], sides[1] + sides[3]) == more
        else:
            sides = [more[0] // 2, more[1] // 2, (more[0] + 1) // 2, (more[1] + 1) // 2]
        assert (width, height) == size[::-1]
        border = ((sides[1], sides[3]), (sides[0], sides[2]))
        if mode == "constant":
            whole = np.empty((image.height + sum(border[0]), image.width + sum(border[1]), 3), np.uint8)
            whole[:] = fill
            whole[border[0][0] :, border[1][0] :][: image.height, : image.width] = np.asarray(image)
        else:
            whole = np.pad(np.asarray(image), (*border, (0, 0)), mode=mode)  # type: ignore[call-overload]
        np.testing.assert_array_equal(ours, whole[top : top + height, left : left + width])
        padded = np.pad(mask, border) if mode == "constant" else np.pad(mask, border, mode=mode)  # type: ignore[call-overload]
        np.testing.assert_array_equal(our_mask, padded[top : top + height, left : left + width])
        seen[any(sides)] += 1
    assert seen[True] and seen[False], "of both kinds"


@pytest.mark.parametrize(
    ("size", "scaleup", "center", "interpolation", "resample", "fill"),
    [
        ((64, 64), True, True, "bilinear", BILINEAR, (114, 114, 114)),
        ((51, 90), True, True, "lanczos", LANCZOS, (1, 2, 3)),
        ((100, 161), False, True, "bicubic", BICUBIC, (0, 0, 0)),
        ((73, 70), True, False, "bilinear", BILINEAR, (114, 114, 114)),
    ],
)
def test_letterbox(
    wide: Path, size: tuple[int, int], scaleup: bool, center: bool, interpolation: str, resample: Any, fill: Any
) -> None:
    dataset = _pairs(wide).letterbox(size, fill, interpolation, scaleup, center)
    for image, mask, (ours, our_mask) in zip(_images(wide), _masks(wide), _delivered(dataset, 0), strict=True):
        wanted, inner, corner = _letterboxed(image, size, scaleup, center, resample, fill)
        np.testing.assert_array_equal(ours, np.asarray(wanted), err_msg=f"{image.size}")
        labels = np.zeros(size, np.uint8)
        labels[corner[1] : corner[1] + inner[1], corner[0] : corner[0] + inner[0]] = _nearest_labels(mask, inner)
        np.testing.assert_array_equal(our_mask, labels)


def test_pad_to(wide: Path) -> None:
    for position in ("center", "top_left"):
        dataset = _pairs(wide).pad_to((171, 160), fill=(5, 6, 7), position=position)
        for image, mask, (ours, our_mask) in zip(_images(wide), _masks(wide), _delivered(dataset, 0), strict=True):
            dx, dy = 160 - image.width, 171 - image.height
            corner = (dx // 2, dy // 2) if position == "center" else (0, 0)
            wanted = Image.new("RGB", (160, 171), (5, 6, 7))
            wanted.paste(image, corner)
            np.testing.assert_array_equal(ours, np.asarray(wanted))
            labels = Image.new("L", (160, 171), 0)
            labels.paste(Image.fromarray(mask), corner)
            np.testing.assert_array_equal(our_mask, np.asarray(labels))
    with pytest.raises(
        feedline.DataError, match=r"pad_to: the image, which is .* at this point, is larger than 20 x 20"
    ):
        list(_delivered(_pairs(wide).pad_to(20), 0))
    edges = _pairs(wide).resize((30, 20)).pad_to(33, padding_mode="reflect")
    for image, (ours, _) in zip(_images(wide), _delivered(edges, 0), strict=True):
        small = np.asarray(image.resize((20, 30), BILINEAR))
        np.testing.assert_array_equal(ours, np.pad(small, ((1, 2), (6, 7), (0, 0)), "reflect"))


# ---- random interpolation ----

BY_CHANCE: dict[str, tuple[Chain, Callable[[Image.Image, Drawn, Any], Image.Image]]] = {
    "resize": (lambda d: d.resize((33, 47), "random"), lambda image, _, how: image.resize((47, 33), how)),
    "letterbox": (
        lambda d: d.letterbox(50, interpolation="random"),
        lambda image, _, how: _letterboxed(image, (50, 50), True, True, how, (114, 114, 114))[0],
    ),
    "random_resized_crop": (
        lambda d: d.random_resized_crop(32, interpolation="random"),
        lambda image, drawn, how: image.crop(_corners(drawn["crop"])).resize((32, 32), how),
    ),
    "random_rotation": (
        lambda d: d.random_rotation(30, "random"),
        lambda image, drawn, how: image.rotate(drawn["angle"][0], how, fillcolor=(0, 0, 0)),
    ),
    "rand_augment": (
        lambda d: d.rand_augment(1, 20, interpolation="random", fields="image"),
        lambda image, drawn, how: (
            image.rotate(drawn["rotate"][0], how, fillcolor=(0, 0, 0)) if "rotate" in drawn else image
        ),
    ),
}


def _corners(crop: tuple[float, ...]) -> tuple[int, int, int, int]:
    left, top, width, height = (int(v) for v in crop)
    return left, top, left + width, top + height


@pytest.mark.parametrize("operation", BY_CHANCE)
def test_interpolation_by_chance_is_what_was_drawn(wide: Path, operation: str) -> None:
    chain, wanted = BY_CHANCE[operation]
    dataset = chain(_pairs(wide))
    seen: Counter[float] = Counter()
    for seed in range(24 if operation == "rand_augment" else 4):
        for i, (image, (ours, _)) in enumerate(zip(_images(wide), _delivered(dataset, seed), strict=True)):
            drawn = _drawn(dataset, i, seed)
            if operation == "rand_augment" and "rotate" not in drawn:
                continue
            (number,) = drawn["interpolation"]
            how = {2: BILINEAR, 3: BICUBIC}[int(number)]
            np.testing.assert_array_equal(ours, np.asarray(wanted(image, drawn, how)), err_msg=f"{i} {drawn}")
            seen[number] += 1
    assert min(seen[2], seen[3]) >= (2 if operation == "rand_augment" else 15), seen


def test_lanczos_is_pillows_at_any_size() -> None:
    rng = np.random.default_rng(8)
    for variant in feedline.simd_variants():
        feedline.testing.force_simd_variant(variant)
        try:
            for photo in photographs.crops(12, largest=200):
                for _ in range(6):
                    height, width = (int(v) for v in rng.integers(1, 260, 2))
                    wanted = Image.fromarray(photo).resize((width, height), LANCZOS)
                    ours = feedline.resize_image(photo, (height, width), "lanczos")
                    np.testing.assert_array_equal(ours, np.asarray(wanted), err_msg=f"{variant} {photo.shape}")
        finally:
            feedline.testing.force_simd_variant("")


# ---- all operations ----

RANDOM: dict[str, Chain] = {
    "random_rotation": lambda d: d.random_rotation(30, "random", expand=True),
    "random_affine": lambda d: d.random_affine(20, (0.1, 0.1), (0.8, 1.2), 10, "bilinear"),
    "random_perspective": lambda d: d.random_perspective(0.5, 0.9),
    "elastic_transform": lambda d: d.elastic_transform(30.0, 3.0),
    "random_resize": lambda d: d.random_resize(20, 60),
    "random_short_side": lambda d: d.random_short_side([20, 50], 80),
    "resize_keep_ratio": lambda d: d.resize_keep_ratio((50, 60), random_scale_prob=0.5, random_aspect_prob=0.5),
    "random_crop_or_pad": lambda d: d.random_crop_or_pad((70, 60), 3),
    "scale_jitter": lambda d: d.scale_jitter((60, 60), (0.5, 2.0)),
    "resize": lambda d: d.resize(40, "random"),
    "letterbox": lambda d: d.letterbox(40, interpolation="random"),
}
FIXED: dict[str, Chain] = {
    "resize": lambda d: d.resize(max_size=60),
    "letterbox": lambda d: d.letterbox((60, 70), center=False),
    "resize_keep_ratio": lambda d: d.resize_keep_ratio((60, 70), 1.0),
    "center_crop": lambda d: d.center_crop((60, 70), (1, 2, 3)),
    "pad_to": lambda d: d.pad_to(200),
}


def _everything(dataset: feedline.Dataset) -> feedline.Dataset:
    for chain in RANDOM.values():
        dataset = chain(dataset)
    return dataset


def test_the_same_bytes_with_any_number_of_threads_and_after_a_stop(wide: Path) -> None:
    dataset = _everything(_pairs(wide))
    first = list(_delivered(dataset, 3, num_workers=1))
    assert any((a != b).any() for (a, _), (b, _) in zip(first, _delivered(dataset, 4, num_workers=1), strict=True))
    for threads in (2, 3, 8):
        for one, other in zip(first, _delivered(dataset, 3, num_workers=threads), strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])
    options = {"seed": 3, "shuffle": False, "layout": "NHWC", "output": "numpy"}
    with dataset.loader(5, **options) as stopped:
        next(iter(stopped))
        state = stopped.state_dict()
    with dataset.loader(5, **options) as resumed:
        resumed.load_state_dict(state)
        rest = [pair for batch in resumed for pair in zip(batch.image, batch.mask, strict=True)]
    assert len(rest) == len(first) - 5
    for one, other in zip(first[5:], rest, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("operation", FIXED)
def test_fixed_ones_may_precede_a_cache(wide: Path, operation: str) -> None:
    dataset = FIXED[operation](_pairs(wide)).collate("list", fields=["image", "mask"])
    changed = lambda d: d.random_rotation(40).elastic_transform(20.0, 2.0)  # noqa: E731
    cached = changed(dataset.cache("memory"))
    for _ in range(2):
        for one, other in zip(_delivered(changed(dataset), 1), _delivered(cached, 1), strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("operation", RANDOM)
def test_random_ones_may_not_precede_a_cache(wide: Path, operation: str) -> None:
    with pytest.raises(feedline.ConfigError, match=f"{operation} before cache would draw only once"):
        RANDOM[operation](_pairs(wide)).cache()


WORDS: dict[str, tuple[Chain, str]] = {
    "rotation": (
        lambda d: d.random_rotation(30, "bicubic", True, (1, 2), 5),
        "random_rotation(degrees=(-30, 30), expand=True, center=(1, 2), interpolation=bicubic, fill=5)",
    ),
    "affine": (
        lambda d: d.random_affine(10, (0.1, 0.2), (0.5, 2), (-1, 1, 2, 3), "random"),
        "random_affine(degrees=(-10, 10), translate=(0.1, 0.2), scale=(0.5, 2), shear=(-1, 1, 2, 3), "
        "interpolation=random)",
    ),
    "perspective": (lambda d: d.random_perspective(0.3), "random_perspective(distortion_scale=0.3, p=0.5)"),
    "elastic": (
        lambda d: d.elastic_transform((5, 6), fill=(1, 2, 3)),
        "elastic_transform(alpha=(5, 6), sigma=(5, 5), fill=(1, 2, 3))",
    ),
    "longest": (
        lambda d: d.resize(max_size=50, interpolation="lanczos"),
        "resize(None, max_size=50, interpolation=lanczos)",
    ),
    "random": (lambda d: d.random_resize(20, 30), "random_resize(min_size=20, max_size=30)"),
    "short": (lambda d: d.random_short_side(20), "random_short_side(min_size=(20,))"),
    "shorts": (lambda d: d.random_short_side([2, 3], 9), "random_short_side(min_size=(2, 3), max_size=9)"),
    "kept": (lambda d: d.resize_keep_ratio(20), "resize_keep_ratio(20, 20)"),
    "kept, drawn": (
        lambda d: d.resize_keep_ratio((20, 30), 1.0, "bicubic", 0.5, (0.8, 1), True, 0.25, (0.5, 2)),
        "resize_keep_ratio(20, 30, longest=1, random_scale_prob=0.5, random_scale_range=(0.8, 1), "
        "random_scale_area=True, random_aspect_prob=0.25, random_aspect_range=(0.5, 2), interpolation=bicubic)",
    ),
    "center": (lambda d: d.center_crop((20, 30), 7), "center_crop(20, 30, fill=7)"),
    "crop or pad": (
        lambda d: d.random_crop_or_pad(20, padding_mode="reflect"),
        "random_crop_or_pad(20, 20, padding_mode=reflect)",
    ),
    "jitter": (lambda d: d.scale_jitter((20, 30)), "scale_jitter(target_size=(20, 30), scale_range=(0.1, 2))"),
    "pad": (lambda d: d.pad_to((20, 30), position="top_left"), "pad_to(20, 30, position=top_left)"),
    "box": (lambda d: d.letterbox(20, scaleup=False), "letterbox(20, 20, fill=114, scaleup=False)"),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    chain, words = WORDS[case]
    assert chain(feedline.chain()).operations == [words]


WRONG: dict[str, tuple[Chain, str]] = {
    "degrees": (
        lambda d: d.random_rotation(-3),
        "random_rotation: degrees must not be negative if it is a single number",
    ),
    "order": (lambda d: d.random_rotation((3, 1)), "random_rotation: degrees must have its lower bound first"),
    "center": (lambda d: d.random_rotation(3, center=5), "random_rotation: center must be two numbers"),
    "box": (lambda d: d.random_rotation(3, "box"), "random_rotation: interpolation must be nearest"),
    "lanczos": (lambda d: d.random_affine(3, interpolation=1), "random_affine: interpolation must be nearest"),
    "translate": (lambda d: d.random_affine(3, (0, 1.5)), "random_affine: translate must be from 0 to 1, got 1.5"),
    "scale": (lambda d: d.random_affine(3, scale=(0, 1)), "random_affine: scale must be two numbers 0 < low"),
    "shear": (lambda d: d.random_affine(3, shear=(1, 2, 3)), "random_affine: shear must be one number"),
    "distortion": (lambda d: d.random_perspective(1.2), "random_perspective: distortion_scale must be from 0 to 1"),
    "p": (lambda d: d.random_perspective(p=2), "random_perspective: p must be between 0 and 1"),
    "sigma": (lambda d: d.elastic_transform(sigma=-1), "elastic_transform: sigma must be from 0 to 1000, got -1"),
    "sigmas": (lambda d: d.elastic_transform(sigma=(0, 1)), "elastic_transform: sigma must be above 0 in both"),
    "elastic": (lambda d: d.elastic_transform(1, 1, "lanczos"), "elastic_transform: interpolation must be nearest"),
    "none": (lambda d: d.resize(), "resize: size or max_size is needed"),
    "edges": (lambda d: d.random_resize(30, 30), "random_resize: max_size must be greater than min_size 30"),
    "empty": (
        lambda d: d.random_short_side([]),
        "random_short_side: min_size must be an integer or a sequence of integers",
    ),
    "target": (lambda d: d.scale_jitter(30), "scale_jitter: target_size must be two integers (pixels)"),
    "range": (lambda d: d.scale_jitter((3, 3), (0, 1)), "scale_jitter: scale_range must be two numbers 0 < low"),
    "longest": (lambda d: d.resize_keep_ratio(20, 1.5), "resize_keep_ratio: longest must be from 0 to 1, got 1.5"),
    "chance": (
        lambda d: d.resize_keep_ratio(20, random_aspect_prob=2),
        "resize_keep_ratio: random_aspect_prob must be between 0 and 1, got 2",
    ),
    "ratios": (
        lambda d: d.resize_keep_ratio(20, random_scale_range=(0, 1)),
        "resize_keep_ratio: random_scale_range must be two numbers 0 < low",
    ),
    "a side": (lambda d: d.random_crop_or_pad(0), "random_crop_or_pad: size"),
    "larger": (lambda d: d.resize((30, 40)).pad_to(35), "pad_to: the image, which is 30 x 40 at this point, is larger"),
    "position": (lambda d: d.pad_to(35, position="left"), "pad_to: position must be one of"),
    "floats": (lambda d: d.to_dtype("float32").letterbox(9), "letterbox: works on uint8 pixels"),
    "any size": (
        lambda d: d.resize((30, 40)).random_rotation(3, expand=True).loader(2),
        "the chain has no fixed output size",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named_at_the_call(wide: Path, case: str) -> None:
    chain, words = WRONG[case]
    with pytest.raises(feedline.ConfigError) as raised:
        chain(feedline.open(wide / "images"))
    assert words in str(raised.value)


def test_sizes_are_inferred(wide: Path) -> None:
    """After a fixed size, operations that keep it need no list; drawn values have torch's shape."""
    opened = feedline.open(wide / "images")
    same = opened.letterbox((40, 50)).random_rotation(9).random_affine(9).random_perspective().elastic_transform()
    for dataset, shape in ((same, (40, 50)), (opened.resize(40).resize(max_size=30).pad_to(70), (70, 70))):
        with dataset.loader(2, output="numpy") as loader:
            assert next(iter(loader)).image.shape[-2:] == shape


def test_a_side_of_no_pixels_names_the_operation_and_the_sample(folder: Path) -> None:
    for chain in (
        lambda d: d.letterbox(8),
        lambda d: d.resize(max_size=8),
        lambda d: d.scale_jitter((3, 3), (0.1, 0.2)),
    ):
        dataset = chain(feedline.open(folder / "images").collate("list", fields="image"))
        loader = dataset.loader(4, output="numpy")
        with pytest.raises(feedline.DataError, match="would become") as raised, loader:
            list(loader)
        assert ".png" in str(raised.value)
