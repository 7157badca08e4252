# SPDX-License-Identifier: Apache-2.0
"""Image processors of models: for an image's size, the number of its tokens and the input of the vision encoder.

Values equal those of transformers' torchvision processors (5.23), bit for bit, for images loaded by ``load_image``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import _engine
from ...errors import ConfigError
from ..text.model_files import json_object
from . import size_rules
from .size_rules import Size

_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_HALF = (0.5, 0.5, 0.5)
_FILTERS = {2: "torch_bilinear", 3: "torch_bicubic"}  # PIL's numbers

Window = tuple[int, int, int, int, int, int]  # height and width of the resized image; left, top, width and height


@dataclass(frozen=True)
class EncoderInput:
    """The encoder's input for an image of a size.

    Attributes:
        size: height and width of the upright image in pixels.
        shape: of the values (float32) of this image; images are concatenated along the first dimension.
        tokens: the number of repeated image tokens.
        grid: the row of ``image_grid_thw``, or None.
    """

    size: Size
    windows: tuple[Window, ...]
    shape: tuple[int, ...]
    tokens: int
    grid: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Processor:
    """The processor of a model.

    Attributes:
        image_token: the placeholder that the chat template renders, which is repeated.
        around: tokens before and after the repeated tokens, or "".
        before: a token of the template before each image that must not be separated from it, or "".
        facts: the name of the per-image integers of a batch besides ``pixel_values``: ``"image_grid_thw"``,
            ``"image_sizes"``, or "".
    """

    name: str
    config: Mapping[str, Any]
    image_token: str
    rule: Callable[[Size], EncoderInput]
    values: Any  # float32 (3, 256): the normalized value of each 8-bit value
    interpolation: str
    patches: tuple[int, int, int] = (0, 1, 1)  # side, merge, frames; side 0: no patches
    around: tuple[str, str] = ("", "")
    before: str = ""
    facts: str = ""
    _inputs: dict[Size, EncoderInput] = field(default_factory=dict, compare=False, repr=False)

    def input_of(self, size: Size) -> EncoderInput:
        """Returns the encoder's input for images of a size. Raises ValueError if the model does not accept the size."""
        found = self._inputs.get(size)
        if found is None:
            if len(self._inputs) > 4096:
                self._inputs.clear()
            found = self._inputs[size] = self.rule(size)
        return found

    def row_shape(self) -> tuple[int, ...]:
        """Returns the shape of one row of the values."""
        return self.input_of((256, 256)).shape[1:]

    def write(self, encoded: Any, image: EncoderInput, out: Any) -> None:
        """Decodes an image and writes its values to ``out``, C-contiguous float32 of ``image.shape``, without the GIL.

        Raises DataError if the image is damaged, or does not have the size.
        """
        windows = list(image.windows)
        _engine.write_encoder_input(encoded, image.size, self.interpolation, windows, self.patches, self.values, out)

    def fact_of(self, image: EncoderInput) -> tuple[int, ...]:
        """Returns the row of ``facts`` for an image."""
        return image.grid if image.grid is not None else image.size

    def identity(self) -> dict[str, Any]:
        """Returns JSON values that determine the numbers of tokens."""
        text = json.dumps(dict(self.config), sort_keys=True, default=str)
        return {"processor": self.name, "processor_config_sha256": hashlib.sha256(text.encode()).hexdigest()}

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "config": self.config, "image_token": self.image_token}

    def __setstate__(self, state: dict[str, Any]) -> None:
        made = _made("tokenize", state["config"], state["image_token"])
        for name, value in vars(made).items():
            object.__setattr__(self, name, value)


def read(where: str, folder: Path, special_tokens: Mapping[str, str]) -> Processor:
    """Returns the processor in a model's folder: ``preprocessor_config.json``, ``processor_config.json``.

    Raises ConfigError if the folder has none, or one that is not supported.
    """
    outer = json_object(where, folder / "processor_config.json")
    inner = outer.get("image_processor") or json_object(where, folder / "preprocessor_config.json")
    if not isinstance(inner, dict) or not inner:
        raise ConfigError(
            f"{where}: images= needs the image processor of the model: {str(folder)!r} has neither "
            "preprocessor_config.json nor a processor_config.json with image_processor"
        )
    tokenizer = json_object(where, folder / "tokenizer_config.json")
    extra = tokenizer.get("extra_special_tokens")
    tokens = {**(extra if isinstance(extra, dict) else {}), **special_tokens}
    named = {name: _text(value) for name, value in tokens.items() if name.endswith("image_token")}
    config = {**outer, "image_processor": inner, "tokens": {name: value for name, value in named.items() if value}}
    token = named.get("context_image_token") or named.get("image_token") or _text(outer.get("image_token"))
    return _made(where, config, token)


def _made(where: str, config: Mapping[str, Any], token: str | None) -> Processor:
    given = config["image_processor"]
    kind = str(given.get("image_processor_type") or given.get("feature_extractor_type") or "")
    for end in ("Fast", "Pil"):
        kind = kind.removesuffix(end)
    make = _FAMILIES.get(kind)
    if make is None:
        raise ConfigError(
            f"{where}: the image processor {kind or 'without a type'} is not supported; supported are "
            f"{', '.join(sorted(_FAMILIES))}"
        )
    try:
        return make(where, kind, config, given, token)
    except ConfigError:
        raise
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{where}: the processor's files are not valid: {type(error).__name__}: {error}") from None


# ---- families ----


def _qwen(where: str, kind: str, config: Mapping[str, Any], given: Any, token: str | None) -> Processor:
    patch, merge = int(given.get("patch_size", 14)), int(given.get("merge_size", 2))
    frames = int(given.get("temporal_patch_size", 2))
    size = given.get("size") or {}
    fewest = int(given.get("min_pixels") or size.get("shortest_edge") or size.get("min_pixels") or 56 * 56)
    most = int(given.get("max_pixels") or size.get("longest_edge") or size.get("max_pixels") or 28 * 28 * 1280)
    columns = 3 * frames * patch * patch

    def rule(size: Size) -> EncoderInput:
        height, width = size_rules.smart_resize(size, patch * merge, fewest, most)
        grid = (1, height // patch, width // patch)
        count = grid[1] * grid[2]
        return EncoderInput(size, (_whole((height, width)),), (count, columns), count // merge**2, grid)

    return Processor(
        kind,
        config,
        token or "<|image_pad|>",
        rule,
        *_pixel_values(where, given, _CLIP_MEAN, _CLIP_STD),
        patches=(patch, merge, frames),
        before="<|vision_start|>",
        facts="image_grid_thw",
    )


def _fixed(where: str, kind: str, config: Mapping[str, Any], given: Any, token: str | None) -> Processor:
    is_siglip = kind.startswith("Siglip")
    crops = bool(given.get("do_center_crop", not is_siglip))
    crop = _square(given.get("crop_size", {"height": 224, "width": 224})) if crops else None
    size = given.get("size", {"height": 224, "width": 224} if is_siglip else {"shortest_edge": 224})
    if isinstance(size, int):
        size = {"height": size, "width": size} if is_siglip else {"shortest_edge": size}
    if given.get("do_pad"):
        raise ConfigError(f"{where}: do_pad is not supported for {kind}")
    if "height" not in size and crop is None:
        raise ConfigError(f"{where}: {kind} without a fixed size is not supported: size={size!r}, do_center_crop=False")
    out = crop or (int(size["height"]), int(size["width"]))
    tokens = _fixed_tokens(where, config, given, out)

    def rule(image: Size) -> EncoderInput:
        if "height" in size:
            resized = int(size["height"]), int(size["width"])
        else:
            resized = size_rules.with_shorter_side(image, int(size["shortest_edge"]))
        return EncoderInput(image, (_centre(resized, out),), (1, 3, *out), tokens)

    mean, std = (_HALF, _HALF) if is_siglip else (_CLIP_MEAN, _CLIP_STD)
    return Processor(kind, config, token or "<image>", rule, *_pixel_values(where, given, mean, std))


def _fixed_tokens(where: str, config: Mapping[str, Any], given: Any, size: Size) -> int:
    length = given.get("image_seq_length", config.get("image_seq_length"))
    if length is not None:
        return int(length)
    side = config.get("patch_size")
    if not side:
        raise ConfigError(
            f"{where}: the number of tokens per image is unknown: processor_config.json has neither patch_size nor "
            "image_seq_length"
        )
    count = size[0] // int(side) * (size[1] // int(side)) + int(config.get("num_additional_image_tokens") or 0)
    return count - (config.get("vision_feature_select_strategy") == "default")


def _tiles(where: str, kind: str, config: Mapping[str, Any], given: Any, token: str | None) -> Processor:
    if config.get("processor_class", given.get("processor_class")) != "InternVLProcessor":
        raise ConfigError(f"{where}: {kind} is only supported for InternVLProcessor")
    tile = _square(given.get("size", {"height": 384, "width": 384}))
    fewest, most = int(given.get("min_patches", 1)), int(given.get("max_patches", 12))
    per_tile = int(config.get("image_seq_length", 256))

    def rule(size: Size) -> EncoderInput:
        rows, columns = size_rules.tile_grid(size, tile, fewest, most)
        windows = _cells((rows * tile[0], columns * tile[1]), (0, 0), tile, rows, columns)
        windows += [_whole(tile)] if len(windows) > 1 else []
        return EncoderInput(size, tuple(windows), (len(windows), 3, *tile), per_tile * len(windows))

    names = config.get("tokens", {})
    around = names.get("start_image_token", "<img>"), names.get("end_image_token", "</img>")
    values = _pixel_values(where, given, _CLIP_MEAN, _CLIP_STD)
    return Processor(kind, config, token or "<IMG_CONTEXT>", rule, *values, around=around)


def _anyres(where: str, kind: str, config: Mapping[str, Any], given: Any, token: str | None) -> Processor:
    """LLaVA-NeXT, and LLaVA-OneVision for samples with one image."""
    is_next = kind == "LlavaNextImageProcessor"
    size = given.get("size", {"shortest_edge": 224} if is_next else {"height": 384, "width": 384})
    side = int(size["shortest_edge"] if "shortest_edge" in size else size["height"])
    if "height" in size and size["height"] != size["width"]:
        raise ConfigError(f"{where}: {kind} needs square tiles, not {size!r}")
    crop = given.get("crop_size") or {"height": side, "width": side}
    if is_next and given.get("do_center_crop", True) and _square(crop) != (side, side):
        raise ConfigError(f"{where}: {kind} with another crop_size than size is not supported")
    canvases = [(int(height), int(width)) for height, width in given["image_grid_pinpoints"]]
    limit = str(config.get("vision_aspect_ratio", "anyres_max_9"))
    base = side // int(config["patch_size"]) if is_next else math.isqrt(int(config["num_image_tokens"]))
    whole = base * base + int(config.get("num_additional_image_tokens") or 0) if is_next else base * base
    whole -= config.get("vision_feature_select_strategy") == "default"

    def rule(size: Size) -> EncoderInput:
        canvas = size_rules.best_canvas(size, canvases)
        resized = size_rules.inside_canvas(size, canvas)
        top, left = (canvas[0] - resized[0]) // 2, (canvas[1] - resized[1]) // 2
        grid = canvas[0] // side, canvas[1] // side
        windows = [_whole((side, side)), *_cells(resized, (top, left), (side, side), *grid)]
        rows, columns = size_rules.unpadded_cells(size, (base * grid[0], base * grid[1]))
        if not is_next:
            ratio = math.sqrt(rows * columns / (int(limit.removeprefix("anyres_max_")) * base**2))
            if ratio > 1.1:
                rows, columns = int(rows // ratio), int(columns // ratio)
        return EncoderInput(size, tuple(windows), (len(windows), 3, side, side), whole + rows * (columns + 1))

    values = _pixel_values(where, given, _CLIP_MEAN, _CLIP_STD)
    return Processor(kind, config, token or "<image>", rule, *values, facts="image_sizes")


_FAMILIES: dict[str, Callable[..., Processor]] = {
    "Qwen2VLImageProcessor": _qwen,  # also of Qwen2.5-VL and Qwen3-VL
    "Qwen2_5_VLImageProcessor": _qwen,
    "CLIPImageProcessor": _fixed,
    "LlavaImageProcessor": _fixed,
    "SiglipImageProcessor": _fixed,
    "GotOcr2ImageProcessor": _tiles,
    "LlavaNextImageProcessor": _anyres,
    "LlavaOnevisionImageProcessor": _anyres,
}


# ---- parts ----


def _pixel_values(where: str, given: Any, mean: Any, std: Any) -> tuple[Any, str]:
    """Returns the normalized value of each 8-bit value, float32 (3, 256), and the interpolation."""
    resample = given.get("resample", 3)
    if resample not in _FILTERS:
        raise ConfigError(f"{where}: resample={resample!r} is not supported, only 2 (bilinear) and 3 (bicubic)")
    for name in ("do_resize", "do_rescale", "do_normalize"):
        if not given.get(name, True):
            raise ConfigError(f"{where}: {name}=False is not supported")
    scale = np.float32(1 / float(given.get("rescale_factor", 1 / 255)))
    means, stds = (
        np.asarray(given.get(name) or default, np.float32)[:, None] * scale
        for name, default in (("image_mean", mean), ("image_std", std))
    )
    return np.ascontiguousarray((np.arange(256, dtype=np.float32) - means) / stds), _FILTERS[resample]


def _whole(size: Size) -> Window:
    return (*size, 0, 0, size[1], size[0])


def _centre(resized: Size, out: Size) -> Window:
    """Returns the window of ``center_crop``, ``image_processing_backends.py``; outside of the image it is black."""
    top, left = (int((inner - outer) / 2.0) for inner, outer in zip(resized, out, strict=True))
    if out[0] > resized[0] or out[1] > resized[1]:  # padded first, by whole pixels
        pads = [max(outer - inner, 0) // 2 for inner, outer in zip(resized, out, strict=True)]
        padded = [max(inner, outer) for inner, outer in zip(resized, out, strict=True)]
        top, left = (int((padded[i] - out[i]) / 2.0) - pads[i] for i in (0, 1))
    return (*resized, left, top, out[1], out[0])


def _cells(resized: Size, offset: Size, cell: Size, rows: int, columns: int) -> list[Window]:
    """Divides a canvas that has the resized image at ``offset`` (top, left)."""
    return [
        (*resized, column * cell[1] - offset[1], row * cell[0] - offset[0], cell[1], cell[0])
        for row in range(rows)
        for column in range(columns)
    ]


def _square(size: Any) -> Size:
    return (size, size) if isinstance(size, int) else (int(size["height"]), int(size["width"]))


def _text(value: Any) -> str | None:
    value = value.get("content") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) and value else None
