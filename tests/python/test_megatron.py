# SPDX-License-Identifier: Apache-2.0
"""Megatron's token files are read as NumPy reads them, and damaged indexes are refused."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path

import made_megatron
import numpy as np
import pytest

import feedline

SEQUENCES = [[5, 6, 7], [], [8], [9, 10, 11, 12]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "int64"])
def test_sequences_of_every_dtype(tmp_path: Path, dtype: str) -> None:
    dataset = feedline.open(made_megatron.write(tmp_path / "a", SEQUENCES, dtype))
    assert dataset.format == "megatron"
    assert [sample.tokens.tolist() for sample in map(dataset.__getitem__, range(4))] == SEQUENCES
    assert dataset[0].tokens.dtype == np.int64
    assert [dataset[i].tokens_length for i in range(4)] == [3, 0, 1, 4]


def test_documents_join_their_sequences(tmp_path: Path) -> None:
    index = made_megatron.write(tmp_path / "a", SEQUENCES, documents=[0, 2, 2, 4])
    documents = feedline.open(index, documents=True)
    assert [sample.tokens.tolist() for sample in map(documents.__getitem__, range(3))] == [
        [5, 6, 7],
        [],
        [8, 9, 10, 11, 12],
    ]
    assert documents.fingerprint != feedline.open(index).fingerprint
    assert pickle.loads(pickle.dumps(documents))[2].tokens.tolist() == [8, 9, 10, 11, 12]


def test_modes(tmp_path: Path) -> None:
    dataset = feedline.open(made_megatron.write(tmp_path / "a", SEQUENCES, modes=[0, 1, -2, 0]))
    assert [int(dataset[i].mode) for i in range(4)] == [0, 1, -2, 0]


def test_a_loader_pads_to_the_longest_of_the_batch(tmp_path: Path) -> None:
    dataset = feedline.open(made_megatron.write(tmp_path / "a", SEQUENCES))
    with dataset.loader(2, output="numpy") as loader:
        first, second = list(loader)
    assert first.tokens.tolist() == [[5, 6, 7], [0, 0, 0]]
    assert second.tokens.tolist() == [[8, 0, 0, 0], [9, 10, 11, 12]]
    assert second.tokens_length.tolist() == [1, 4]


def test_several_files_and_a_subset(tmp_path: Path) -> None:
    made_megatron.write(tmp_path / "a", SEQUENCES, "uint16")
    made_megatron.write(tmp_path / "b", [[1, 2]], "int64")
    dataset = feedline.open(str(tmp_path / "*.idx"))
    assert len(dataset) == 5
    assert dataset[4].tokens.tolist() == [1, 2]
    assert dataset.subset([4, 0])[1].tokens.tolist() == [5, 6, 7]


def test_inspection_counts_empty_sequences(tmp_path: Path) -> None:
    report = feedline.inspect(made_megatron.write(tmp_path / "a", SEQUENCES))
    assert (report.format, report.samples, report.bytes) == ("megatron", 4, 32)
    assert [finding.code for finding in report.findings] == ["empty_document"]


def test_inspection_reports_a_damaged_index(tmp_path: Path) -> None:
    index = Path(made_megatron.write(tmp_path / "a", SEQUENCES))
    index.write_bytes(index.read_bytes()[:-1])
    assert [finding.code for finding in feedline.inspect(index).findings] == ["damaged_index"]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda data: data[:-3], "do not match its header"),
        (lambda data: data[:17] + b"\x09" + data[18:], "dtype code 9"),
        (lambda data: data[:34] + b"\xff" * 4 + data[38:], "sequence 0 has the length -1"),
        (lambda data: data[:34] + b"\x04\x00\x00\x00" + data[38:-8] + b"\x03" + data[-7:], "the last document ends at"),
    ],
)
def test_an_index_that_contradicts_itself(tmp_path: Path, damage, text: str) -> None:
    index = Path(made_megatron.write(tmp_path / "a", SEQUENCES))
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(feedline.DataError, match=text) as raised:
        feedline.open(index)
    assert raised.value.shard == str(index)


def test_a_bin_file_of_another_size(tmp_path: Path) -> None:
    index = made_megatron.write(tmp_path / "a", SEQUENCES)
    (tmp_path / "a.bin").write_bytes(bytes(4 * 7))
    with pytest.raises(feedline.DataError, match=r"describes 8 tokens, but the \.bin file has 7"):
        feedline.open(index)


def test_floats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(feedline.ConfigError, match="float32"):
        feedline.open(made_megatron.write(tmp_path / "a", SEQUENCES, "float32"))


def test_documents_is_only_for_megatron(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    (tmp_path / "notes.txt").write_text("a member")
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(tmp_path / "notes.txt", "0.txt")
    for name in ("x.npy", "x.tar"):
        with pytest.raises(feedline.ConfigError, match="documents= is for Megatron"):
            feedline.open(tmp_path / name, documents=True)
