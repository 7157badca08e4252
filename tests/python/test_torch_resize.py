# SPDX-License-Identifier: Apache-2.0
"""Resizes with torch's arithmetic equal torch's results, to the bit."""

from __future__ import annotations

import numpy as np
import photographs
import pytest

import feedline
from feedline import _engine

torch = pytest.importorskip("torch")

PHOTOS = 400


def _torchs(image: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    """The call of torchvision v2's resize() for a uint8 tensor."""
    tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
    made = torch.nn.functional.interpolate(tensor, size, mode=mode, align_corners=False, antialias=True)
    return np.asarray(made[0].permute(1, 2, 0))


@pytest.fixture(scope="module")
def cases() -> list[tuple[np.ndarray, tuple[int, int]]]:
    """Parts of photos of any size, resized to any size, including extreme sizes, constant images and noise."""
    rng = np.random.default_rng(7)
    images = photographs.crops(PHOTOS, largest=260)
    images[::40] = [rng.integers(0, 256, image.shape, dtype=np.uint8) for image in images[::40]]
    images[1::40] = [(rng.random(image.shape) < 0.5).astype(np.uint8) * 255 for image in images[1::40]]
    sizes = [tuple(int(v) for v in rng.integers(1, 300, 2)) for _ in images]
    sizes[::10] = [(image.shape[0], size[1]) for image, size in zip(images[::10], sizes[::10], strict=True)]
    sizes[1::10] = [(size[0], image.shape[1]) for image, size in zip(images[1::10], sizes[1::10], strict=True)]
    images[5], images[6], images[7] = images[5][:1], images[6][:, :1], images[7][:2, :3]
    return list(zip(images, sizes, strict=True))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pixels_are_torchs(cases: list[tuple[np.ndarray, tuple[int, int]]], mode: str) -> None:
    others = 0
    for image, size in cases:
        ours = _engine.resize_image(np.ascontiguousarray(image), *size, f"torch_{mode}")
        np.testing.assert_array_equal(ours, _torchs(image, size, mode), err_msg=f"{image.shape} to {size}")
        others += not np.array_equal(ours, _engine.resize_image(np.ascontiguousarray(image), *size, mode))
    assert others > PHOTOS / 2, "Pillow's are others"


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_part_of_a_resize_has_the_weights_of_the_whole(tmp_path, mode: str) -> None:
    """Only the part that remains after crops and flips is calculated, although a weight's bits depend on the whole
    axis.
    """
    image = photographs.crops(1, largest=400)[0]
    folder = tmp_path / "a"
    folder.mkdir()
    from PIL import Image

    Image.fromarray(image).save(folder / "0.png")
    opened = feedline.open(tmp_path)
    for size in ((90, 41), (333, 280), (37, 500)):
        whole = _torchs(image, size, mode)
        cut = opened.resize(size, f"torch_{mode}").center_crop((20, 20)).random_horizontal_flip(1.0)
        top, left = (round((side - 20) / 2) for side in size)
        ours = next(iter(cut.loader(1, output="numpy", layout="NHWC"))).image[0]
        np.testing.assert_array_equal(ours, whole[top : top + 20, left : left + 20][:, ::-1])


def test_only_resizes_have_it() -> None:
    for chain in (
        lambda d: d.random_rotation(3, "torch_bilinear"),
        lambda d: d.elastic_transform(interpolation="torch_bilinear"),
        lambda d: d.rand_augment(interpolation="torch_bicubic"),
    ):
        with pytest.raises(feedline.ConfigError, match="interpolation must be nearest"):
            chain(feedline.chain())
