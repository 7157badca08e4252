# SPDX-License-Identifier: Apache-2.0
"""Whole documents of datatrove's token files, and of token files with separators."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packed_runs import rows_of

import feedline

DOCUMENTS = [[5, 6, 7], [], [8], [9, 10, 70000, 12]]
LOSS = [[True, False, True], [], [False], [True, True, True, False]]
SEPARATOR = 2


def write(path: Path, documents: Sequence[Sequence[int]], dtype: str = "<u4", loss: Any = None) -> str:
    """Writes PATH, PATH.index and, for `loss`, PATH.loss, with the layout of datatrove's TokenizedFile."""
    path.write_bytes(b"".join(np.asarray(document, dtype).tobytes() for document in documents))
    ends = np.cumsum([len(document) for document in documents], dtype="<u8")
    Path(f"{path}.index").write_bytes(ends.tobytes())
    if loss is not None:
        Path(f"{path}.loss").write_bytes(b"".join(np.asarray(one, bool).tobytes() for one in loss))
    return str(path)


def tokens_of(dataset: feedline.Dataset) -> list[list[int]]:
    return [dataset[i].tokens.tolist() for i in range(len(dataset))]


def test_documents_of_datatrove(tmp_path: Path) -> None:
    dataset = feedline.open(write(tmp_path / "a.ds", DOCUMENTS))
    assert dataset.format == "datatrove"
    assert tokens_of(dataset) == DOCUMENTS
    assert dataset[3].tokens.dtype == np.int64
    assert [dataset[i].tokens_length for i in range(4)] == [3, 0, 1, 4]
    assert tokens_of(pickle.loads(pickle.dumps(dataset))) == DOCUMENTS


def test_the_size_of_tokens_follows_from_the_index(tmp_path: Path) -> None:
    small = [[5, 6], [65535]]
    assert tokens_of(feedline.open(write(tmp_path / "a.ds", small, "<u2"))) == small


def test_loss_masks_are_a_field_of_the_same_shape(tmp_path: Path) -> None:
    dataset = feedline.open(write(tmp_path / "a.ds", DOCUMENTS, loss=LOSS))
    assert [dataset[i].loss_mask.tolist() for i in range(4)] == LOSS
    assert dataset[0].loss_mask.dtype == np.bool_
    with dataset.loader(4, output="numpy") as loader:
        batch = next(iter(loader))
    assert batch.loss_mask.tolist() == [one + [False] * (4 - len(one)) for one in LOSS]
    assert batch.tokens.tolist() == [one + [0] * (4 - len(one)) for one in DOCUMENTS]


def test_several_files(tmp_path: Path) -> None:
    write(tmp_path / "a.ds", DOCUMENTS)
    write(tmp_path / "b.ds", [[1, 2]], "<u2")
    assert tokens_of(feedline.open(str(tmp_path / "*.ds"))) == [*DOCUMENTS, [1, 2]]


@pytest.mark.parametrize("masked", ["a", "b"])
def test_loss_masks_of_some_files_are_refused(tmp_path: Path, masked: str) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.ds", DOCUMENTS, loss=LOSS if name == masked else None)
    other = "b" if masked == "a" else "a"
    with pytest.raises(feedline.ConfigError, match=rf"{other}\.ds' has no loss mask .* '.*{masked}\.ds' has one"):
        feedline.open(str(tmp_path / "*.ds"))


def test_packs_contain_every_document(tmp_path: Path) -> None:
    documents = [list(range(10 * i, 10 * i + i % 7)) for i in range(50)]
    dataset = feedline.open(write(tmp_path / "a.ds", documents))
    with dataset.pack_sequences(16).loader(2, shuffle=True, output="numpy") as loader:
        found = sorted(int(token) for batch in loader for token in batch.input_ids[batch.document_ids >= 0])
    assert found == sorted(token for document in documents for token in document)


def test_packs_apply_the_loss_mask(tmp_path: Path) -> None:
    dataset = feedline.open(write(tmp_path / "a.ds", DOCUMENTS, loss=LOSS))
    masked = {6, 8, 12}

    def labels_of(document: tuple[int, ...]) -> list[int]:
        return [-100, *(-100 if token in masked else token for token in document[1:])]

    with dataset.pack_sequences(8).loader(1, output="numpy") as loader:
        pieces = [piece for batch in loader for row in rows_of(batch, labels_of=labels_of) for piece in row]
    assert sorted(pieces) == [(5, 6, 7), (8,), (9, 10, 70000, 12)]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ({".index": b"1234567"}, "the index has 7 bytes, which are not a multiple of 8"),
        ({".index": np.array([3, 2, 4, 8], "<u8").tobytes()}, "document 1 ends at token 2, but the document before it"),
        ({".index": np.array([3, 3, 4, 7], "<u8").tobytes()}, "describes 7 tokens, but the .ds file has 32 bytes"),
        ({".loss": b"\x01" * 9}, "the file has 9 bytes, but the index describes 8 tokens"),
    ],
)
def test_files_that_contradict_each_other(tmp_path: Path, damage: dict[str, bytes], text: str) -> None:
    source = write(tmp_path / "a.ds", DOCUMENTS)
    for end, content in damage.items():
        Path(source + end).write_bytes(content)
    with pytest.raises(feedline.DataError, match=text) as raised:
        feedline.open(source)
    assert str(raised.value.shard).startswith(source)
    assert [finding.code for finding in feedline.inspect(source).findings] == ["damaged_index"]


def test_a_missing_index(tmp_path: Path) -> None:
    source = write(tmp_path / "a.ds", DOCUMENTS)
    Path(f"{source}.index").unlink()
    with pytest.raises(feedline.StorageError, match=r"a\.ds\.index"):
        feedline.open(source)


def whole(source: Any, **options: Any) -> feedline.Dataset:
    return feedline.tokens(source, separator=SEPARATOR, documents="whole", **options)


def test_whole_documents_of_files_with_separators(tmp_path: Path) -> None:
    documents = [[5, 6, SEPARATOR], [SEPARATOR], [7, 8, 9, SEPARATOR], [4]]
    raw = tmp_path / "part-0.npy"  # without NumPy's header, as OLMo-core writes it
    raw.write_bytes(np.concatenate(documents).astype("<u4").tobytes())
    other = tmp_path / "part-1.npy"
    np.save(other, np.array([1, SEPARATOR], "u4"))
    dataset = whole([raw, other], dtype="uint32")
    assert tokens_of(dataset) == [*documents, [1, SEPARATOR]]
    with dataset.pack_sequences(8).loader(1, output="numpy") as loader:
        found = sorted(int(token) for batch in loader for token in batch.input_ids[batch.document_ids >= 0])
    assert found == sorted([5, 6, 2, 2, 7, 8, 9, 2, 4, 1, 2])


def test_refusals_of_whole_documents(tmp_path: Path) -> None:
    raw = tmp_path / "a.bin"
    raw.write_bytes(np.array([5, 6, 7], "<u2").tobytes())
    with pytest.raises(feedline.ConfigError, match="separator"):
        whole(raw, dtype="uint16")
    with pytest.raises(feedline.ConfigError, match='documents="whole" does not support window'):
        whole(raw, dtype="uint16", window=4)
    with pytest.raises(feedline.ConfigError, match="pass window"):
        feedline.tokens(raw, dtype="uint16")
    with pytest.raises(feedline.ConfigError, match="min_length require"):
        whole(raw, dtype="uint16", min_length=3)
    with pytest.raises(feedline.ConfigError, match="int64"):
        whole(raw, dtype="uint16", output_dtype="int32")
    with pytest.raises(feedline.DataError, match="vocabulary"):
        whole(raw, dtype="uint16", vocabulary=6, check=True)
