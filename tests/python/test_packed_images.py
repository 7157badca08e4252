# SPDX-License-Identifier: Apache-2.0
"""Packed conversations with images: batches, resume, ranks, and damaged images."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import made_vision_models as made
import numpy as np
import pytest

import feedline
from feedline.loader.image_packed_loader import mrope_positions

pytest.importorskip("jinja2")
pytest.importorskip("tokenizers")

SAMPLES = 23
LENGTH = 160
IMAGES_FIRST = """\
{% for message in messages %}\
{% if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}\
{% elif message.content is string %}{{ message.content }}\
{% else %}{% for part in message.content %}\
{% if part.type == 'image' %}<|image_pad|>{% else %}{{ part.text }}{% endif %}\
{% endfor %}{% endif %}{% endfor %}"""
IMAGE = 256 + made.SPECIAL.index("<|image_pad|>")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def chats(tmp_path: Path) -> feedline.Dataset:
    """Sample i has i % 3 images, whose sizes and pixels differ."""
    lines = []
    for number in range(SAMPLES):
        names = [f"{number}-{image}.jpg" for image in range(number % 3)]
        for image, name in enumerate(names):
            size = 40 + 17 * (number % 7), 50 + 23 * (number % 5) + 30 * image
            (tmp_path / name).write_bytes(made.picture(*size, seed=10 * number + image))
        talk = [
            {"role": "user", "content": "<image>" * len(names) + "?" * (number % 6 + 1)},
            {"role": "assistant", "content": f"answer {number}" + "!" * (number * 7 % 31)},
        ]
        lines.append(json.dumps({"messages": talk, "images": names}))
    (tmp_path / "chats.jsonl").write_text("".join(f"{line}\n" for line in lines))
    dataset = feedline.open(tmp_path / "chats.jsonl", fields=["messages:json", "images:json"])
    model = made.model_folder(tmp_path / "model", made.QWEN2)
    return dataset.tokenize(model, messages="messages", images="images")


Document = tuple[tuple[int, ...], bytes]


def documents_of(batch: Any) -> list[Document]:
    """The tokens and the values of each document in a batch; checks that the values have the order of the tokens."""
    found, grid, row_at = [], iter(batch.image_grid_thw.tolist()), 0
    for row in range(len(batch.input_ids)):
        for number in range(int(batch.document_ids[row].max()) + 1):
            ids = batch.input_ids[row][batch.document_ids[row] == number]
            left, begin = int((ids == IMAGE).sum()), row_at
            while left:
                frames, height, width = next(grid)
                left -= frames * height * width // 4
                row_at += frames * height * width
            found.append((tuple(ids.tolist()), batch.pixel_values[begin:row_at].tobytes()))
    assert row_at == len(batch.pixel_values)
    assert next(grid, None) is None
    return found


def expected(chats: feedline.Dataset) -> Counter[Document]:
    samples = (chats[number] for number in range(SAMPLES))
    return Counter((tuple(one.input_ids.tolist()), one.pixel_values.tobytes()) for one in samples)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_document_has_its_images(chats: feedline.Dataset, workers: int) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    with packed.loader(2, shuffle=True, seed=3, output="numpy", num_workers=workers, uneven="exact") as loader:
        batches = list(loader)
    assert len(batches) > 2
    assert Counter(itertools.chain.from_iterable(map(documents_of, batches))) == expected(chats)


def test_datasets_are_mixed_by_weight_and_read_from_their_own_folders(tmp_path: Path) -> None:
    parts = []
    for folder, count in (("a", 4), ("b", 12)):
        (tmp_path / folder).mkdir()
        lines = []
        for number in range(count):
            name = f"{number}.jpg"  # the same names in both folders
            (tmp_path / folder / name).write_bytes(made.picture(60 + number, 70, seed=len(lines) + 100 * count))
            talk = [{"role": "user", "content": "<image>?"}, {"role": "assistant", "content": f"{folder}{number}"}]
            lines.append(json.dumps({"messages": talk, "images": [name]}))
        (tmp_path / folder / "chats.jsonl").write_text("".join(f"{line}\n" for line in lines))
        parts.append(feedline.open(tmp_path / folder / "chats.jsonl", fields=["messages:json", "images:json"]))
    model = made.model_folder(tmp_path / "model", made.QWEN2)
    options: dict[str, Any] = {"messages": "messages", "images": "images"}
    mixed = feedline.mix(parts, weights=[3, 1], samples=16)
    packed = mixed.tokenize(model, **options).pack_sequences(LENGTH, long="truncate")
    expected = [[part.tokenize(model, **options)[i] for i in range(len(part))] for part in parts]
    known = {(tuple(one.input_ids.tolist()), one.pixel_values.tobytes()): i for i in (0, 1) for one in expected[i]}
    with packed.loader(1, shuffle=True, output="numpy", uneven="exact") as loader:
        found = list(itertools.chain.from_iterable(map(documents_of, loader)))
        assert Counter(known[document] for document in found) == {0: 12, 1: 4}
        assert all(times == 3 for document, times in Counter(found).items() if known[document] == 0)
    assert "images     16 images" in packed.explain()

    part = mixed.collate("list", fields="images").tokenize(model, **options)
    with pytest.raises(feedline.ConfigError, match=r"collate is not supported between mix\(\) and tokenize\(\)"):
        part.pack_sequences(LENGTH, long="truncate")
    part = mixed.tokenize(model, **options).collate("list", fields="pixel_values")
    with pytest.raises(feedline.ConfigError, match=r"call it directly after tokenize\(\)"):
        part.pack_sequences(LENGTH, long="truncate")
    with pytest.raises(feedline.DataError, match="not in one local folder"):
        mixed.tokenize(model, **options)[0]


def test_a_state_resumes_at_the_next_batch(chats: feedline.Dataset) -> None:
    packed = chats.pack_sequences(LENGTH, long="drop")
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "output": "numpy", "uneven": "exact"}
    with packed.loader(1, **options) as loader:
        whole, states = [], [loader.state_dict()]
        for batch in loader:
            whole.append(documents_of(batch))
            states.append(loader.state_dict())
    for at in (0, 1, len(whole) // 2, len(whole) - 1):
        with packed.loader(1, **options) as loader:
            loader.load_state_dict(states[at])
            assert [documents_of(batch) for batch in loader] == whole[at:]
    with packed.loader(1, **options) as loader:
        loader.load_state_dict(states[-1])
        assert loader.epoch == 1


def test_ranks_share_the_packs(chats: feedline.Dataset) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    found: Counter[Document] = Counter()
    for rank in range(2):
        options: dict[str, Any] = {"rank": rank, "world_size": 2, "uneven": "exact", "output": "numpy"}
        with packed.loader(2, **options) as loader:
            found.update(itertools.chain.from_iterable(map(documents_of, loader)))
    assert found == expected(chats)


def test_truncation_keeps_whole_images(chats: feedline.Dataset) -> None:
    packed = chats.pack_sequences(64, long="truncate")
    with packed.loader(2, output="numpy", uneven="exact") as loader:
        documents = list(itertools.chain.from_iterable(map(documents_of, loader)))
    whole = list(expected(chats).elements())
    assert len(documents) == SAMPLES
    for ids, values in documents:
        assert any(all_ids[: len(ids)] == ids and every.startswith(values) for all_ids, every in whole)


def test_truncated_documents_are_counted(tmp_path: Path, chats: feedline.Dataset) -> None:
    """With this template, nothing is left of a document whose first image does not fit in a row."""
    chats = feedline.open(tmp_path / "chats.jsonl", fields=["messages:json", "images:json"]).tokenize(
        tmp_path / "model", messages="messages", images="images", chat_template=IMAGES_FIRST
    )
    whole = [len(chats[number].input_ids) for number in range(SAMPLES)]
    packed = chats.pack_sequences(9, long="truncate")
    with packed.loader(2, output="numpy", uneven="exact") as loader:
        documents = list(itertools.chain.from_iterable(map(documents_of, loader)))
    counts = packed.count()
    left = [len(ids) for ids, _ in documents]
    assert counts["empty"] == 0
    assert counts["dropped"] == SAMPLES - len(left) > 0
    assert counts["truncated"] + counts["dropped"] == sum(length > 9 for length in whole)
    assert counts["tokens"] == sum(left) == sum(whole) - counts["lost_tokens"]
    cut = counts["truncated"] + counts["dropped"]
    assert f"images; {cut} documents were truncated by {counts['lost_tokens']} tokens" in packed.explain()


def test_a_budget_limits_the_images_in_memory(chats: feedline.Dataset) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    for budget, most in ((None, 2), (1 << 20, 0)):
        with packed.loader(4, output="numpy", memory_budget=budget) as loader:
            iterator = iter(loader)
            next(iterator)
            assert len(loader._pending) == most


def test_memory_in_use_is_not_used_again(chats: feedline.Dataset) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    with packed.loader(2, output="numpy", shuffle=True, seed=3, epochs=3, uneven="exact") as loader:
        kept = [(batch.pixel_values[:1, ::7], batch.pixel_values[:1, ::7].copy()) for batch in loader]
    assert len(kept) > 9
    for view, copy in kept:
        assert np.array_equal(view, copy)


def test_changed_images_are_named(chats: feedline.Dataset, tmp_path: Path) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    (tmp_path / "4-0.jpg").write_bytes(made.picture(300, 200))
    with (
        packed.loader(30, output="numpy") as loader,
        pytest.raises(feedline.DataError, match=r"300 x 200 pixels instead of .* remove .*tokens.*sample 4\]"),
    ):
        next(iter(loader))


def test_a_damaged_image_is_an_error_or_skipped(chats: feedline.Dataset, tmp_path: Path) -> None:
    packed = chats.pack_sequences(LENGTH, long="truncate")
    bad = tuple(chats[4].input_ids.tolist())
    file = tmp_path / "4-0.jpg"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with (
        packed.loader(30, output="numpy", uneven="exact") as loader,
        pytest.raises(feedline.DataError, match=r"image 0: .*sample 4\]"),
    ):
        next(iter(loader))
    with packed.loader(30, output="numpy", uneven="exact", on_error="skip") as loader:
        (batch,) = loader
        assert loader.bad_documents == 1
    trained = {}
    for row in range(len(batch.input_ids)):
        for number in range(int(batch.document_ids[row].max()) + 1):
            here = batch.document_ids[row] == number
            trained[tuple(batch.input_ids[row][here].tolist())] = bool((batch.labels[row][here] != -100).any())
    assert not trained.pop(bad)
    assert all(trained.values())


def test_forms_of_trainers_have_the_images(chats: feedline.Dataset, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    packed = chats.pack_sequences(LENGTH, long="truncate")
    with packed.loader(1, output="numpy", uneven="exact") as loader:
        images = [batch.pixel_values for batch in loader]
    for preset in ("transformers", "megatron"):
        with packed.loader(1, preset=preset, uneven="exact") as loader:
            for batch, expected in zip(loader, images, strict=True):
                if len(expected) or preset == "megatron":
                    assert np.array_equal(batch["pixel_values"].numpy(), expected)
    without = feedline.open(tmp_path / "chats.jsonl", fields=["messages:json", "images:json"]).subset([0, 3])
    texts = without.tokenize(tmp_path / "model", messages="messages", images="images")
    with texts.pack_sequences(LENGTH, long="drop").loader(1, preset="transformers") as loader:
        (batch,) = loader
        assert batch["position_ids"].shape == (4, 1, LENGTH)
        assert "pixel_values" not in batch


def test_refused_samples_are_left_out(
    chats: feedline.Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = expected(chats)
    refused = {4: b"", 7: b"no image"}
    for number, content in refused.items():
        ids = tuple(chats[number].input_ids.tolist())
        whole = Counter({document: count for document, count in whole.items() if document[0] != ids})
        (tmp_path / f"{number}-0.jpg").write_bytes(content)
    with pytest.raises(feedline.DataError, match=r'sample 4\].*; to leave out such samples, pass on_error="skip"'):
        chats.pack_sequences(LENGTH, long="truncate")
    for _ in range(2):  # written, and opened again
        packed = chats.pack_sequences(LENGTH, long="truncate", on_error="skip")
        counts = packed.count()
        assert counts["empty"] == len(refused)
        assert counts["dropped"] == counts["truncated"] == 0
        with packed.loader(2, shuffle=True, output="numpy", uneven="exact") as loader:
            assert Counter(itertools.chain.from_iterable(map(documents_of, loader))) == whole
    assert sum("is left out" in message for message in caplog.messages) == len(refused)


def test_splitting_is_refused(chats: feedline.Dataset) -> None:
    with pytest.raises(feedline.ConfigError, match=r'long="split" would cut images; pass long="truncate".*"drop"'):
        chats.pack_sequences(LENGTH)
    with pytest.raises(feedline.ConfigError, match='method="concat" would cut images'):
        chats.pack_sequences(LENGTH, "concat", "drop")
    texts = feedline.arrays(input_ids=feedline.ragged(np.arange(9), [4, 5]))
    with pytest.raises(feedline.ConfigError, match="only supported for packed documents with images"):
        texts.pack_sequences(8).loader(1, on_error="skip")


def test_positions_of_images_are_grids() -> None:
    image = 9
    ids = np.array([[1, 2, *[image] * 6, 3, 4, image, 5, 0, 0]])
    positions = np.array([[*range(10), 0, 1, 0, 1]])
    made_positions = mrope_positions(ids, positions, image, np.array([[1, 4, 6], [1, 2, 2]]), 2)
    assert made_positions[:, 0].tolist() == [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 0, 1],
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 0, 1, 0, 1],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 0, 1, 0, 1],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 0, 1, 0, 1],
    ]
