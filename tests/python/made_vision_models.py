# SPDX-License-Identifier: Apache-2.0
"""Folders of vision-language models: a tokenizer of the library ``tokenizers`` and the configuration of processors."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

SPECIAL = (
    "<|end|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
    "<image>", "<video>", "<IMG_CONTEXT>", "<img>", "</img>",
)  # fmt: skip

# Qwen2-VL's template without videos and tools
QWEN_TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for content in message['content'] %}\
{% if content['type'] == 'image' or 'image' in content %}<|vision_start|><|image_pad|><|vision_end|>\
{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

QWEN2 = {
    "image_processor_type": "Qwen2VLImageProcessor", "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
    "min_pixels": 56 * 56, "max_pixels": 28 * 28 * 64, "resample": 3,
    "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
}  # fmt: skip
QWEN3 = {
    "image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
    "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip
CLIP = {
    "image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 112},
    "crop_size": {"height": 112, "width": 112}, "resample": 3,
}  # fmt: skip
SIGLIP = {"image_processor_type": "SiglipImageProcessor", "size": {"height": 96, "width": 96}, "resample": 2}
TILES = {
    "image_processor_type": "GotOcr2ImageProcessorFast", "size": {"height": 448, "width": 448}, "min_patches": 1,
    "max_patches": 12, "crop_to_patches": True,
}  # fmt: skip
NEXT = {
    "image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 336},
    "crop_size": {"height": 336, "width": 336},
    "image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]],
}  # fmt: skip
ONEVISION = {
    "image_processor_type": "LlavaOnevisionImageProcessor", "size": {"height": 384, "width": 384},
    "image_grid_pinpoints": [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)],
}  # fmt: skip
LLAVA = {"processor_class": "LlavaProcessor", "patch_size": 14, "num_additional_image_tokens": 1}
OUTER = {
    "CLIPImageProcessor": {**LLAVA, "vision_feature_select_strategy": "default"},
    "SiglipImageProcessor": {**LLAVA, "num_additional_image_tokens": 0, "vision_feature_select_strategy": "full"},
    "GotOcr2ImageProcessorFast": {"processor_class": "InternVLProcessor", "image_seq_length": 256},
    "LlavaNextImageProcessor": {**LLAVA, "vision_feature_select_strategy": "default"},
    "LlavaOnevisionImageProcessor": {
        "processor_class": "LlavaOnevisionProcessor", "num_image_tokens": 729, "vision_aspect_ratio": "anyres_max_9",
        "vision_feature_select_strategy": "full",
    },
}  # fmt: skip


def config_files(folder: Path, config: dict[str, Any]) -> Path:
    """Writes the processor's configuration."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    outer = OUTER.get(str(config["image_processor_type"]))
    if outer is not None:
        (folder / "processor_config.json").write_text(json.dumps(outer))
    return folder


def model_folder(folder: Path, config: dict[str, Any], template: str = QWEN_TEMPLATE) -> Path:
    """Writes a model's folder, with a byte-level BPE that has no merges."""
    import pytest

    tokenizers = pytest.importorskip("tokenizers")
    config_files(folder, config)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={one: i for i, one in enumerate(alphabet)}, merges=[]))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    bpe.add_special_tokens(list(SPECIAL))
    bpe.save(str(folder / "tokenizer.json"))
    named = {
        "image_token": "<image>" if "Llava" in str(OUTER.get(str(config["image_processor_type"]), "")) else None,
        "eos_token": "<|end|>",
    }
    if "Qwen" in str(config["image_processor_type"]):
        named["image_token"] = "<|image_pad|>"
    content = {
        "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": template,
        **{name: token for name, token in named.items() if token},
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    return folder


def odd_pictures() -> dict[str, bytes]:
    """Images of other modes, formats and orientations, by a name."""
    from PIL import Image

    def encoded(image: Any, format: str, **options: Any) -> bytes:
        file = io.BytesIO()
        image.save(file, format, **options)
        return file.getvalue()

    plain = Image.open(io.BytesIO(picture(150, 97, format="PNG")))
    rng = np.random.default_rng(0)
    translucent = plain.copy()
    translucent.putalpha(Image.fromarray(rng.integers(0, 256, (97, 150), np.uint8)))
    deep = Image.fromarray(rng.integers(0, 65536, (97, 150), np.uint16))
    found = {
        "grey.jpg": encoded(plain.convert("L"), "JPEG"),
        "grey with alpha.png": encoded(plain.convert("LA"), "PNG"),
        "1 bit.png": encoded(plain.convert("1"), "PNG"),
        "palette.gif": encoded(plain.convert("P"), "GIF"),
        "palette with transparency.png": encoded(plain.convert("P"), "PNG", transparency=3),
        "rgba.png": encoded(translucent, "PNG"),
        "rgba.webp": encoded(translucent, "WEBP", lossless=True),
        "cmyk.jpg": encoded(plain.convert("CMYK"), "JPEG"),
        "16 bit.png": encoded(deep, "PNG"),
        "progressive.jpg": encoded(plain, "JPEG", progressive=True),
        "1 x 1.png": encoded(plain.resize((1, 1)), "PNG"),
        "1 x 200.png": encoded(plain.resize((1, 200)), "PNG"),
        "large.jpg": picture(3000, 2000),
    }
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        found |= {f"turned {orientation}.{end}": encoded(plain, end, exif=exif) for end in ("JPEG", "PNG", "WEBP")}
    return found


def picture(width: int, height: int, seed: int = 0, format: str = "JPEG", orientation: int = 1) -> bytes:
    """A smooth image with noise."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (7, 5, 3), np.uint8)).resize((width, height))
    pixels = np.clip(np.asarray(small, np.int16) + rng.integers(-20, 20, (height, width, 3)), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(file, format, exif=exif) if orientation != 1 else Image.fromarray(pixels).save(
        file, format
    )
    return file.getvalue()
