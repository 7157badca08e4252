# SPDX-License-Identifier: Apache-2.0
"""Numbers of image tokens and inputs of vision encoders."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import made_vision_models as made
import numpy as np
import pytest

import feedline
from feedline import _engine
from feedline.data.vision import processors

QWEN2_MODEL = {**made.QWEN2, "max_pixels": 12845056}
SIZES = ((480, 640), (720, 1280), (2000, 3000))  # (height, width)


def processor(folder: Path, config: dict[str, Any]) -> processors.Processor:
    return processors.read("tokenize", made.config_files(folder, config), {})


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        (QWEN2_MODEL, (391, 1196, 7597)),
        ({**made.QWEN2, "max_pixels": 1003520}, (391, 1196, 1247)),
        (made.QWEN3, (300, 880, 5828)),
        (made.CLIP, (64, 64, 64)),
        (made.SIGLIP, (36, 36, 36)),
        (made.NEXT, (2340, 1948, 2144)),
        (made.ONEVISION, (2929, 5967, 7329)),
        (made.TILES, (3330 - 2, 2306 - 2, 1794 - 2)),
    ],
)
def test_numbers_of_tokens_are_those_of_published_processors(
    tmp_path: Path, config: dict[str, Any], tokens: tuple[int, ...]
) -> None:
    made_by = processor(tmp_path, config)
    assert tuple(made_by.input_of(size).tokens for size in SIZES) == tokens


def test_the_nested_configuration_wins(tmp_path: Path) -> None:
    made.config_files(tmp_path, made.QWEN3)
    (tmp_path / "processor_config.json").write_text(
        '{"image_processor": {"image_processor_type": "Qwen2VLImageProcessor", "size": {"shortest_edge": 3136, '
        '"longest_edge": 12845056}}}'
    )
    assert processors.read("tokenize", tmp_path, {}).input_of((480, 640)).tokens == 391


def values_of(config: dict[str, Any], pixels: Any) -> Any:
    """Normalizes (height, width, 3) uint8 with transformers' arithmetic in float32."""
    scale = np.float32(255)
    mean, std = np.float32(config["image_mean"]) * scale, np.float32(config["image_std"]) * scale
    return (pixels.astype(np.float32) - mean) / std


@pytest.mark.parametrize("size", [(96, 64), (300, 40), (57, 411), (28, 56), (1200, 700)])
def test_patches_are_rows_of_blocks(tmp_path: Path, size: tuple[int, int]) -> None:
    made_by = processor(tmp_path, made.QWEN2)
    encoded = made.picture(*size, format="PNG")
    one = made_by.input_of(feedline.image_info(encoded)[:0:-1])
    out = np.full(one.shape, np.nan, np.float32)
    made_by.write(encoded, one, out)
    _, rows, columns = one.grid or (0, 0, 0)
    resized = _engine.resize_image(feedline.decode_image(encoded), rows * 14, columns * 14, "torch_bicubic")
    whole = values_of(made.QWEN2, resized).reshape(rows // 2, 2, 14, columns // 2, 2, 14, 3)
    patches = whole.transpose(0, 3, 1, 4, 6, 2, 5).reshape(rows * columns, 3, 1, 14 * 14)
    assert np.array_equal(out, np.repeat(patches, 2, 2).reshape(rows * columns, -1))


def test_a_crop_beyond_the_image_is_black(tmp_path: Path) -> None:
    config = {**made.CLIP, "size": {"shortest_edge": 51}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    made_by = processor(tmp_path, config)
    encoded = made.picture(60, 100, format="PNG")
    one = made_by.input_of((100, 60))
    out = np.full(one.shape, np.nan, np.float32)
    made_by.write(encoded, one, out)
    resized = _engine.resize_image(feedline.decode_image(encoded), 85, 51, "torch_bicubic")
    black = np.zeros((112, 112, 3), np.uint8)
    black[13 : 13 + 85, 30 : 30 + 51] = resized
    assert np.array_equal(out[0], values_of(config, black).transpose(2, 0, 1))


def test_tiles_and_their_thumbnail(tmp_path: Path) -> None:
    config = {**made.TILES, "size": {"height": 32, "width": 32}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    made_by = processor(tmp_path, config)
    encoded = made.picture(90, 60, format="PNG")
    one = made_by.input_of((60, 90))
    out = np.full(one.shape, np.nan, np.float32)
    made_by.write(encoded, one, out)
    pixels = feedline.decode_image(encoded)
    tiles = _engine.resize_image(pixels, 64, 96, "torch_bicubic").reshape(2, 32, 3, 32, 3).transpose(0, 2, 1, 3, 4)
    thumbnail = _engine.resize_image(pixels, 32, 32, "torch_bicubic")
    expected = np.concatenate([tiles.reshape(6, 32, 32, 3), thumbnail[None]])
    assert np.array_equal(out, values_of(config, expected).transpose(0, 3, 1, 2))


def test_the_orientation_is_applied(tmp_path: Path) -> None:
    made_by = processor(tmp_path, made.QWEN2)
    turned = made.picture(120, 60, orientation=6)
    assert _engine.upright_size(turned) == (120, 60)
    one = made_by.input_of((120, 60))
    out = np.empty(one.shape, np.float32)
    made_by.write(turned, one, out)
    upright = feedline.decode_image(turned, apply_exif_orientation=True)
    resized = _engine.resize_image(upright, 112, 56, "torch_bicubic")
    assert np.array_equal(out[0, :14], values_of(made.QWEN2, resized)[0, :14, 0])


def test_odd_images_are_those_that_pillow_converts(tmp_path: Path) -> None:
    from PIL import Image, ImageOps

    made_by = processor(tmp_path, made.QWEN2)

    def values(encoded: bytes) -> Any:
        one = made_by.input_of(_engine.upright_size(encoded))
        out = np.full(one.shape, np.nan, np.float32)
        made_by.write(encoded, one, out)
        return out

    for name, encoded in made.odd_pictures().items():
        converted = io.BytesIO()
        ImageOps.exif_transpose(Image.open(io.BytesIO(encoded))).convert("RGB").save(converted, "BMP")
        assert np.array_equal(values(encoded), values(converted.getvalue())), name


def test_damaged_and_changed_images_are_refused(tmp_path: Path) -> None:
    made_by = processor(tmp_path, made.QWEN2)
    encoded = made.picture(100, 80)
    one = made_by.input_of((80, 100))
    out = np.empty(one.shape, np.float32)
    with pytest.raises(feedline.DataError, match=r"truncated|damaged|end"):
        made_by.write(encoded[: len(encoded) // 2], one, out)
    with pytest.raises(feedline.DataError, match="120 x 80 pixels instead of 100 x 80"):
        made_by.write(made.picture(120, 80), one, out)
    with pytest.raises(feedline.ConfigError, match="values instead of"):
        made_by.write(encoded, one, out[1:])


def test_unsupported_processors_are_named(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="FuyuImageProcessor is not supported"):
        processor(tmp_path / "fuyu", {"image_processor_type": "FuyuImageProcessor"})
    with pytest.raises(feedline.ConfigError, match="resample=1"):
        processor(tmp_path / "lanczos", {**made.QWEN2, "resample": 1})
    with pytest.raises(feedline.ConfigError, match="do_resize=False"):
        processor(tmp_path / "unresized", {**made.QWEN2, "do_resize": False})
    with pytest.raises(feedline.ConfigError, match="images= needs the image processor"):
        processors.read("tokenize", tmp_path, {})
    with pytest.raises(ValueError, match="over 200 times"):
        processor(tmp_path / "qwen", made.QWEN2).input_of((1, 300))


def test_a_processor_can_be_copied(tmp_path: Path) -> None:
    made_by = processor(tmp_path, made.QWEN2)
    for again in (pickle.loads(pickle.dumps(made_by)), copy.deepcopy(made_by)):
        assert again.input_of((480, 640)) == made_by.input_of((480, 640))
        assert np.array_equal(again.values, made_by.values)
