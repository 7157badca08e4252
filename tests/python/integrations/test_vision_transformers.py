# SPDX-License-Identifier: Apache-2.0
"""Vision-language samples and packed batches against transformers' processors and models."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import made_vision_models as made
import numpy as np
import pytest
import torch

import feedline
from feedline import _engine
from feedline.data.vision import processors

transformers = pytest.importorskip(
    "transformers", reason="Transformers is not installed (tools/test --integrations installs it)"
)
pytest.importorskip("torchvision", reason="transformers' processors need torchvision")
pytest.importorskip("jinja2")

FAMILIES = {
    "qwen2": (made.QWEN2, "Qwen2VLProcessor", "Qwen2VLImageProcessor"),
    "qwen3": (made.QWEN3, "Qwen2VLProcessor", "Qwen2VLImageProcessor"),
    "clip": (made.CLIP, "LlavaProcessor", "CLIPImageProcessor"),
    "siglip": (made.SIGLIP, "LlavaProcessor", "SiglipImageProcessor"),
    "next": (made.NEXT, "LlavaNextProcessor", "LlavaNextImageProcessor"),
    "tiles": (made.TILES, "InternVLProcessor", "GotOcr2ImageProcessor"),
    "onevision": (made.ONEVISION, "LlavaOnevisionProcessor", "LlavaOnevisionImageProcessor"),
}
SIZES = [(120, 60), (31, 250), (640, 480), (57, 58), (28, 28), (500, 333)]


def image_processor(family: str) -> Any:
    config, _, kind = FAMILIES[family]
    given = {name: value for name, value in config.items() if name != "image_processor_type"}
    return getattr(transformers, kind)(**given)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_equal_bit_for_bit(tmp_path: Path, family: str) -> None:
    config = FAMILIES[family][0]
    own = processors.read("test", made.config_files(tmp_path, config), {})
    theirs = image_processor(family)
    for seed, size in enumerate(SIZES):
        encoded = made.picture(*size, seed=seed, orientation=1 + seed)
        from PIL import Image

        image = transformers.image_utils.load_image(Image.open(io.BytesIO(encoded)))
        expected = theirs(image, return_tensors="pt")
        one = own.input_of((image.height, image.width))
        values = np.full(one.shape, np.nan, np.float32)
        own.write(encoded, one, values)
        given = expected["pixel_values"]
        assert torch.equal(torch.from_numpy(values), given.reshape(values.shape)), (family, size)
        if one.grid is not None:
            assert expected["image_grid_thw"].tolist() == [list(one.grid)]


@pytest.mark.parametrize("family", ["qwen2", "clip", "next"])
def test_odd_images_have_equal_values(tmp_path: Path, family: str) -> None:
    from PIL import Image

    own = processors.read("test", made.config_files(tmp_path, FAMILIES[family][0]), {})
    theirs = image_processor(family)
    for name, encoded in made.odd_pictures().items():
        image = transformers.image_utils.load_image(Image.open(io.BytesIO(encoded)))
        one = own.input_of(_engine.upright_size(encoded))
        values = np.full(one.shape, np.nan, np.float32)
        own.write(encoded, one, values)
        expected = theirs(image, return_tensors="pt")["pixel_values"]
        assert torch.equal(torch.from_numpy(values), expected.reshape(values.shape)), name


@pytest.mark.parametrize("family", FAMILIES)
def test_token_counts_are_equal(tmp_path: Path, family: str) -> None:
    config, kind, _ = FAMILIES[family]
    template = "{% for message in messages %}{% for part in message['content'] %}<image>{% endfor %}{% endfor %}"
    folder = made.model_folder(tmp_path, config, template)
    own = processors.read("test", folder, {})
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.image_token, tokenizer.image_token_id = own.image_token, tokenizer.convert_tokens_to_ids(own.image_token)
    processor = getattr(transformers, kind).__new__(getattr(transformers, kind))
    outer = made.OUTER.get(str(config["image_processor_type"]), {})
    for name, value in outer.items():
        if name != "processor_class":
            setattr(processor, name, value)
    processor.image_processor, processor.tokenizer = image_processor(family), tokenizer
    rng = np.random.default_rng(5)
    sizes = [tuple(map(int, np.exp(rng.uniform(3.4, 7.5, 2)))) for _ in range(300)]
    if family == "clip" or family == "siglip":
        height, width = own.input_of((99, 99)).shape[2:]
        processor.image_processor.crop_size = {"height": height, "width": width}
    processor._merge_kwargs = lambda **_: {"images_kwargs": {}}
    counts = processor._get_num_multimodal_tokens(image_sizes=sizes)["num_image_tokens"]
    around = sum(map(bool, own.around))
    assert [own.input_of(size).tokens + around for size in sizes] == counts


def tiny_qwen(vocabulary: int, ids: dict[str, int]) -> Any:
    torch.manual_seed(0)
    text = {
        "vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0},
    }  # fmt: skip
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    config = transformers.Qwen2VLConfig(
        text_config=text, vision_config=vision, image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )  # fmt: skip
    return transformers.Qwen2VLForConditionalGeneration(config).eval()


def test_the_loss_of_a_packed_batch_is_that_of_its_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = made.model_folder(tmp_path / "model", made.QWEN2)
    lines = []
    for number in range(7):
        names = [f"{number}-{image}.jpg" for image in range(number % 3)]
        for image, name in enumerate(names):
            (tmp_path / name).write_bytes(made.picture(60 + 20 * number, 90, seed=number + image))
        talk = [
            {"role": "user", "content": "<image>" * len(names) + "?"},
            {"role": "assistant", "content": f"{number}!"},
        ]
        lines.append(json.dumps({"messages": talk, "images": names}))
    (tmp_path / "chats.jsonl").write_text("\n".join(lines))
    data = feedline.open(tmp_path / "chats.jsonl", fields=["messages:json", "images:json"])
    chats = data.tokenize(folder, messages="messages", images="images")
    ids = {token: 256 + number for number, token in enumerate(made.SPECIAL)}
    model = tiny_qwen(256 + len(made.SPECIAL), ids)
    expected, count = 0.0, 0
    with torch.no_grad():
        for number in range(7):
            sample = chats[number]
            tokens = torch.from_numpy(sample.input_ids)[None]
            labels = torch.where(torch.from_numpy(sample.loss_mask)[None], tokens, -100)
            trained = int((labels[:, 1:] != -100).sum())
            given: dict[str, Any] = {}
            if len(sample.image_grid_thw):
                given = {
                    "pixel_values": torch.from_numpy(sample.pixel_values),
                    "image_grid_thw": torch.from_numpy(sample.image_grid_thw),
                    "mm_token_type_ids": (tokens == ids["<|image_pad|>"]).int(),
                }
            loss = model(input_ids=tokens, labels=labels, use_cache=False, **given).loss
            expected, count = expected + float(loss) * trained, count + trained
        packed = chats.pack_sequences(200, long="drop")
        with packed.loader(50, preset="transformers", uneven="exact") as loader:
            (batch,) = loader
        assert batch["position_ids"].shape == (4, 1, batch["input_ids"].shape[1])
        assert int((batch["labels"][:, 1:] != -100).sum()) == count
        loss = float(model(**batch, use_cache=False).loss) * count
    assert loss == pytest.approx(expected, rel=1e-5)
