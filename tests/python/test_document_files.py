# SPDX-License-Identifier: Apache-2.0
"""Whole documents of datatrove's token files, and of token files with separators."""

from __future__ import annotations

import gzip
import itertools
import json
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


# ---- OLMo-core's files of boundaries and label masks ----


def olmo(folder: Path, number: int, documents: Sequence[Sequence[int]], end: str = "csv.gz", extra: int = 0) -> str:
    """Writes part-N.npy without NumPy's header, followed by `extra` tokens, and the boundaries of its documents."""
    tokens = [token for one in documents for token in one] + [9] * extra
    (folder / f"part-{number}.npy").write_bytes(np.array(tokens, "<u4").tobytes())
    ends = np.cumsum([0, *map(len, documents)]).tolist()
    if "csv" in end:  # as write_document_indices() does; further columns may follow
        lines = [f"{a},{b}" + f",id-{a},source" * (number % 2) for a, b in itertools.pairwise(ends)]
    else:
        lines = [json.dumps({"start": a, "end": b}) for a, b in itertools.pairwise(ends)]
    content = "".join(line + "\n" for line in lines).encode()
    (folder / f"part-{number}.{end}").write_bytes(gzip.compress(content) if end.endswith("gz") else content)
    return str(folder / f"part-{number}.npy")


@pytest.mark.parametrize("end", ["csv.gz", "csv", "jsonl.gz", "jsonl"])
def test_documents_end_at_given_boundaries(tmp_path: Path, end: str) -> None:
    parts = [[[1, 2, 3], [4], [5, 6]], [[7], [], [8, 9]]]
    for number, documents in enumerate(parts):
        olmo(tmp_path, number, documents, end, extra=2)  # tokens after the last document are not used
    options = {"dtype": "uint32", "documents": "whole"}
    dataset = feedline.tokens(f"{tmp_path}/part-*.npy", boundaries=f"{tmp_path}/part-*.{end}", **options)
    assert tokens_of(dataset) == [one for documents in parts for one in documents]
    listed = [tmp_path / f"part-{number}.npy" for number in (1, 0)]
    swapped = feedline.tokens(listed, boundaries=[tmp_path / f"part-{n}.{end}" for n in (1, 0)], **options)
    assert tokens_of(swapped) == [*parts[1], *parts[0]]
    again = feedline.tokens(f"{tmp_path}/part-*.npy", boundaries=f"{tmp_path}/part-*.{end}", **options)
    assert again.fingerprint == dataset.fingerprint != swapped.fingerprint
    assert tokens_of(pickle.loads(pickle.dumps(dataset))) == tokens_of(dataset)


@pytest.mark.parametrize("ends_by", ["separator", "boundaries"])
def test_label_masks_apply_to_packs(tmp_path: Path, ends_by: str) -> None:
    documents = [[1, 2, 3, 50], [4, 50], [5, 6, 50]]
    path = olmo(tmp_path, 0, documents)
    mask = [[False, True, True, False], [True, True], [False, False, True]]
    np.array([one for row in mask for one in row]).tofile(tmp_path / "mask-0.npy")
    ends: dict[str, Any] = {"separator": 50} if ends_by == "separator" else {"boundaries": tmp_path / "part-0.csv.gz"}
    options: dict[str, Any] = {"dtype": "uint32", "documents": "whole", "loss_masks": f"{tmp_path}/mask-*.npy", **ends}
    dataset = feedline.tokens(path, **options)
    assert tokens_of(dataset) == documents
    assert [dataset[i].loss_mask.tolist() for i in range(3)] == mask
    with dataset.pack_sequences(9).loader(1, output="numpy") as loader:
        (batch,) = loader
    assert batch.input_ids[0].tolist() == [1, 2, 3, 50, 4, 50, 5, 6, 50]
    assert batch.labels[0].tolist() == [-100, 2, 3, -100, -100, 50, -100, -100, 50]
    (tmp_path / "mask-0.npy").write_bytes(b"\1" * 8)
    with pytest.raises(feedline.DataError, match="the file has 8 bytes, but the index describes 9 tokens") as raised:
        feedline.tokens(path, **options)
    assert raised.value.shard == str(tmp_path / "mask-0.npy")
    with pytest.raises(feedline.StorageError, match=r"none\.npy"):
        feedline.tokens(path, **options | {"loss_masks": tmp_path / "none.npy"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"0,3\n4,6\n", r"line 2 of .*csv.gz: the document from token 4 to 6 does not follow .* ends at 3"),
        (b"0,3\n3,2\n", "the document from token 3 to 2 does not follow"),
        (b"0,99999999999999999999\n", "line 1 of .*: a document cannot end at token 99999999999999999999: no file"),
        (b"1,3\n", "the document from token 1 to 3 does not follow the previous one, which ends at 0"),
        (b"0;3\n", "line 1 of .*: expected the start and end of a document"),
        (b"0,7\n", "the last document ends at token 7, but the file has 6 tokens"),
    ],
)
def test_boundaries_that_do_not_match(tmp_path: Path, content: bytes, text: str) -> None:
    path = olmo(tmp_path, 0, [[1, 2, 3], [4, 5, 6]])
    file = tmp_path / "part-0.csv.gz"
    options: dict[str, Any] = {"dtype": "uint32", "documents": "whole", "boundaries": file}
    file.write_bytes(gzip.compress(content))
    with pytest.raises(feedline.DataError, match=text):
        feedline.tokens(path, **options)
    file.write_bytes(gzip.compress(b"0,3\n3,6\n")[:-9])
    with pytest.raises(feedline.DataError, match="is damaged or truncated"):
        feedline.tokens(path, **options)
    file.write_bytes(b"0,3\n")
    with pytest.raises(feedline.DataError, match="is damaged or truncated: Not a gzipped file"):
        feedline.tokens(path, **options)


def test_refusals_of_boundaries_and_masks(tmp_path: Path) -> None:
    path = olmo(tmp_path, 0, [[1, 2, 3], [4, 5, 6]])
    file = tmp_path / "part-0.csv.gz"
    whole: dict[str, Any] = {"dtype": "uint32", "documents": "whole"}
    for options, text in (
        ({**whole, "boundaries": file, "separator": 3}, "separator or boundaries, not both"),
        ({**whole, "boundaries": [file, file]}, "boundaries has 2 files, but there are 1 token files"),
        ({**whole, "boundaries": tmp_path / "part-0.npy"}, "boundaries must be .csv or .jsonl files"),
        ({"dtype": "uint32", "window": 2, "boundaries": file}, 'boundaries require documents="whole"'),
        ({"dtype": "uint32", "window": 2, "loss_masks": file}, 'loss_masks require documents="whole"'),
        ({**whole, "boundaries": file, "pad": 1}, 'pad and min_length require documents="apart"'),
    ):
        with pytest.raises(feedline.ConfigError, match=text):
            feedline.tokens(path, **options)
    with pytest.raises(feedline.StorageError, match=r"cannot read .*none\.csv: No such file"):
        feedline.tokens(path, **whole, boundaries=tmp_path / "none.csv")
    file.write_bytes(gzip.compress(b"0,3\n3,9\n"))
    with pytest.raises(feedline.DataError, match="ends at token 9"):
        feedline.tokens(path, **whole, boundaries=file)
