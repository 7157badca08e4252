# SPDX-License-Identifier: Apache-2.0
"""Conversations with images: placeholders, tokens, masks and pixel values of samples."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import made_vision_models as made
import numpy as np
import pytest

import feedline
from feedline import _engine
from feedline.data.vision import processors
from feedline.data.vision.sample_images import folder_of

pytest.importorskip("jinja2")
pytest.importorskip("tokenizers")

SIZES = ((120, 60), (60, 90), (200, 170))  # (width, height)
# of QWEN2, whose images have 112 x 56, 56 x 84 and 196 x 168 pixels
TOKENS = (8, 6, 42)


def ask(text: str, images: int = 0) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image"}] * images + [{"type": "text", "text": text}]}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return made.model_folder(tmp_path / "model", made.QWEN2)


def dataset(folder: Path, samples: list[tuple[Any, Any]]) -> feedline.Dataset:
    """JSONL with messages and paths of images."""
    for number, size in enumerate(SIZES):
        (folder / f"{number}.jpg").write_bytes(made.picture(*size, seed=number))
    lines = [json.dumps({"messages": messages, "images": images}) for messages, images in samples]
    (folder / "chats.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return feedline.open(folder / "chats.jsonl", fields=["messages:json", "images:json"])


def tokenized(folder: Path, model: Path, samples: list[tuple[Any, Any]], **options: Any) -> feedline.Dataset:
    return dataset(folder, samples).tokenize(model, messages="messages", images="images", **options)


def image_id(model: Path) -> int:
    import tokenizers

    return int(tokenizers.Tokenizer.from_file(str(model / "tokenizer.json")).token_to_id("<|image_pad|>"))


def test_placeholders_are_expanded_and_pixels_follow(tmp_path: Path, model: Path) -> None:
    talk = [ask("which?", 2), answer("both"), ask("and this?", 1), answer("no")]
    sample = tokenized(tmp_path, model, [(talk, ["0.jpg", "1.jpg", "2.jpg"])])[0]
    assert sample._fields == ("input_ids", "loss_mask", "pixel_values", "image_grid_thw")
    assert sample.image_grid_thw.tolist() == [[1, 4, 8], [1, 6, 4], [1, 12, 14]]
    is_image = sample.input_ids == image_id(model)
    assert is_image.sum() == sum(TOKENS)
    assert not sample.loss_mask[is_image].any()
    runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], is_image, [0]]))))[::2]
    assert tuple(runs) == TOKENS
    made_by = processors.read("test", model, {})
    at = 0
    for number, grid in enumerate(sample.image_grid_thw.tolist()):
        encoded = (tmp_path / f"{number}.jpg").read_bytes()
        one = made_by.input_of(_engine.upright_size(encoded))
        assert list(one.grid or ()) == grid
        values = np.empty(one.shape, np.float32)
        made_by.write(encoded, one, values)
        assert np.array_equal(sample.pixel_values[at : at + len(values)], values)
        at += len(values)
    assert at == len(sample.pixel_values)


def test_text_without_images_and_forms_of_images(tmp_path: Path, model: Path) -> None:
    encoded = made.picture(*SIZES[0])
    text = [{"role": "user", "content": "look <image> here"}, answer("yes")]
    rows = [
        {"messages": [ask("hello"), answer("hi")], "images": []},
        {"messages": text, "images": [{"bytes": encoded, "path": None}]},
    ]
    arrow = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    table = pyarrow.table(
        {
            "messages": [json.dumps(row["messages"]) for row in rows],
            "images": pyarrow.array([row["images"] for row in rows], pyarrow.list_(kind)),
        }
    )
    arrow.write_table(table, tmp_path / "chats.parquet")
    chats = feedline.open(tmp_path / "chats.parquet", fields=["messages:json", "images"])
    made_of = chats.tokenize(model, messages="messages", images="images")
    assert made_of[0].pixel_values.shape == (0, 1176)
    assert made_of[0].image_grid_thw.shape == (0, 3)
    assert made_of[1].pixel_values.shape == (4 * TOKENS[0], 1176)
    with made_of.loader(2) as loader:
        (batch,) = loader
    assert [len(one) for one in batch.pixel_values] == [0, 4 * TOKENS[0]]


@pytest.mark.parametrize(
    ("talk", "images", "message"),
    [
        ([ask("a", 1), answer("b"), ask("c", 1), answer("d")], ["0.jpg"], "message 2 has a placeholder for image 1"),
        ([ask("a"), answer("b")], ["0.jpg"], "the sample has 1 image, but its 2 messages have 0 placeholders"),
        ([ask("<|image_pad|>", 1), answer("b")], ["0.jpg"], "renders 2 image tokens"),
        ([ask("a", 1), answer("b")], ["9.jpg"], "image 0 cannot be read: '9.jpg': No such file"),
        ([ask("a", 1), answer("b")], ["chats.jsonl"], "image 0: "),
        ([ask("a", 1), answer("b")], ["https://a/b.jpg"], "only local files are read"),
        ([ask("a", 1), answer("b")], [7], "image 0 must be bytes, a path"),
    ],
)
def test_wrong_samples_are_named(tmp_path: Path, model: Path, talk: Any, images: Any, message: str) -> None:
    with pytest.raises(feedline.DataError, match=message):
        tokenized(tmp_path, model, [(talk, images)])[0]


@pytest.mark.parametrize("length", range(20, 80, 3))
def test_truncation_never_cuts_an_image(tmp_path: Path, model: Path, length: int) -> None:
    talk = [answer("first"), ask("which?", 2), answer("both")]
    whole = tokenized(tmp_path, model, [(talk, ["0.jpg", "1.jpg"])])[0]
    cut = tokenized(tmp_path, model, [(talk, ["0.jpg", "1.jpg"])], max_length=length)[0]
    count = len(cut.input_ids)
    assert count <= length
    assert np.array_equal(cut.input_ids, whole.input_ids[:count])
    images = int((cut.input_ids == image_id(model)).sum())
    assert images in (0, TOKENS[0], sum(TOKENS[:2]))
    assert len(cut.pixel_values) == 4 * images
    assert np.array_equal(cut.pixel_values, whole.pixel_values[: 4 * images])
    if images == 0:
        start = int(np.flatnonzero(whole.input_ids == image_id(model))[0]) - 1
        assert count == min(length, start)


def test_wrong_arguments_are_named(tmp_path: Path, model: Path) -> None:
    data = dataset(tmp_path, [([ask("a", 1), answer("b")], ["0.jpg"])])
    with pytest.raises(feedline.ConfigError, match="images requires messages"):
        data.tokenize(model, images="images")
    with pytest.raises(feedline.ConfigError, match="images must be a field's name"):
        data.tokenize(model, messages="messages", images=7)
    (model / "preprocessor_config.json").unlink()
    with pytest.raises(feedline.ConfigError, match="needs the image processor of the model"):
        data.tokenize(model, messages="messages", images="images")


def test_relative_paths_need_one_local_folder(tmp_path: Path, model: Path) -> None:
    for source, folder in (
        ("a/x.jsonl", "a"),
        ("a/*.jsonl", "a"),
        ("a/x.jsonl::a/y.jsonl", "a"),
        ("file:///a/x.jsonl", "/a"),
        ("x.jsonl", ""),
        ("a/x.jsonl::b/y.jsonl", None),
        ("*/x.jsonl", None),
        ("s3://bucket/x.jsonl", None),
    ):
        assert folder_of(source) == folder, source
    sources = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        dataset(tmp_path / name, [([ask("a", 1), answer("b")], ["0.jpg"])])
        sources.append(tmp_path / name / "chats.jsonl")
    chats = feedline.open(sources, fields=["messages:json", "images:json"])
    with pytest.raises(feedline.DataError, match=r"relative path '0\.jpg', but the dataset is not in one local folder"):
        chats.tokenize(model, messages="messages", images="images")[0]


def test_a_template_in_the_processors_file(tmp_path: Path, model: Path) -> None:
    samples = [([ask("which?", 1), answer("this")], ["0.jpg"])]
    expected = tokenized(tmp_path, model, samples)[0]
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "chat_template.json").write_text(json.dumps({"chat_template": config.pop("chat_template")}))
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    assert np.array_equal(tokenized(tmp_path, model, samples)[0].input_ids, expected.input_ids)


def test_arrays_that_a_users_function_writes_to_again_are_copied(tmp_path: Path, model: Path) -> None:
    samples = [([ask("which?", 1), answer("this")], ["0.jpg"])] * 8
    counter = np.zeros(1000, np.int64)

    def counts(sample: dict[str, Any]) -> dict[str, Any]:
        counter[:] += 1
        return {**sample, "count": counter}

    numbered = dataset(tmp_path, samples).map(counts).collate("list", fields="count")
    chats = numbered.tokenize(model, messages="messages", images="images")
    (batch,) = chats.loader(8, num_workers=1)
    first = int(batch.count[0][0])  # samples are tried before the epoch
    assert [int(count[0]) for count in batch.count] == list(range(first, first + 8))
    assert all((count == count[0]).all() for count in batch.count)


def test_the_memory_of_earlier_images_is_freed_with_the_loader(tmp_path: Path, model: Path) -> None:
    chats = tokenized(tmp_path, model, [([ask("which?", 1), answer("this")], ["2.jpg"])] * 8)
    expected = chats[0].pixel_values
    loader = chats.loader(2, num_workers=2)
    for batch in loader:
        for values in batch.pixel_values:
            assert np.array_equal(values, expected)
    assert chats._chain is not None
    function: Any = chats._chain.steps[-1].function
    loader.close()
    del batch, values
    gc.collect()
    assert not function._memory._free
    assert chats[0].pixel_values.shape == expected.shape
    assert not function._memory._free, "single samples retain nothing"
