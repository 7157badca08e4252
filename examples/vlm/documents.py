# SPDX-License-Identifier: Apache-2.0
"""Makes conversations about photos, and the folder of a tiny vision-language model: a tokenizer, the configuration of
the image processor, and a random Qwen2-VL.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import transformers
from PIL import Image

# Qwen2-VL's template without videos and tools, with marks around the assistant's messages
TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' -%}
{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}

{% else -%}
{% if message.content is string -%}
{{ message.content }}
{%- else -%}
{% for part in message.content -%}
{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}
{%- endfor %}
{%- endif %}<|im_end|>
{% endif -%}
{% endfor -%}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
    "<|video_pad|>",
]  # fmt: skip
COLOURS = {
    "red": (200, 50, 40), "green": (50, 160, 60), "blue": (50, 70, 190), "yellow": (220, 200, 60),
    "black": (30, 30, 30), "white": (225, 225, 225),
}  # fmt: skip
QUESTION, ONE, SEVERAL = "Which colours, in order?", "It is", "They are"


def photo(colour: str, drawn: random.Random) -> Image.Image:
    """Returns a photo of one colour with light, shadow and noise, of 60 to 200 pixels per side."""
    width, height = drawn.randint(60, 200), drawn.randint(60, 200)
    noise = np.random.default_rng(drawn.getrandbits(32)).normal(0, 12, (height, width, 3))
    light = np.linspace(-20, 20, width)[None, :, None] * drawn.choice((-1, 1))
    return Image.fromarray(np.clip(COLOURS[colour] + light + noise, 0, 255).astype(np.uint8))


def write_documents(folder: Path, count: int, seed: int) -> None:
    """Writes chats.jsonl, and a folder with the one to three photos of each conversation."""
    drawn = random.Random(seed)
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    with (folder / "chats.jsonl").open("w") as file:
        for number in range(count):
            colours = [drawn.choice(list(COLOURS)) for _ in range(drawn.randint(1, 3))]
            names = [f"photos/{number}-{image}.jpg" for image in range(len(colours))]
            for name, colour in zip(names, colours, strict=True):
                photo(colour, drawn).save(folder / name, quality=90)
            talk = [
                {"role": "user", "content": "<image>" * len(names) + QUESTION},
                {"role": "assistant", "content": f"{ONE if len(names) == 1 else SEVERAL} {', '.join(colours)}."},
            ]
            file.write(json.dumps({"messages": talk, "images": names}) + "\n")


def write_processor(folder: Path, max_pixels: int) -> Path:
    """Writes the files of the tokenizer and the image processor, with a token per byte and per special token."""
    folder.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={one: i for i, one in enumerate(alphabet)}, merges=[]))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=SPECIAL,
        chat_template=TEMPLATE,
    )
    tokenizer.save_pretrained(folder)
    # the form of Qwen2-VL's published files
    config = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2VLProcessor",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 56 * 56,
        "max_pixels": max_pixels,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(config, indent=2))
    return folder


def new_model(folder: Path) -> Any:
    """Returns a Qwen2-VL with random weights for the tokenizer in a folder."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>") for name, token in (
        ("image", "image_pad"), ("video", "video_pad"), ("vision_start", "vision_start"), ("vision_end", "vision_end"),
    )}  # fmt: skip
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0},
        "use_cache": False,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
    }
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    config = transformers.Qwen2VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **ids)
    return transformers.Qwen2VLForConditionalGeneration(config)
