# SPDX-License-Identifier: Apache-2.0
"""TFRecord files written by TensorFlow have the same values as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline
from feedline import packing

Original = Callable[..., Any]


def test_files_of_tensorflow_read_as_it_reads_them(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, rows in original("tensorflow", "write_tfrecord.py", tmp_path).items():
        dataset = feedline.open(tmp_path / f"{name}.tfrecord", fields=("n", "many", "x", "raw"))
        dataset = dataset.collate("list", fields=("many", "x"))
        assert len(dataset) == len(rows) == 200
        for i, row in enumerate(rows):
            one = dataset[i]
            assert [int(one.n), one.many.tolist(), one.x.tolist(), one.raw.hex()] == row, (name, i)
    sequences = feedline.open(tmp_path / "sequence.tfrecord", fields=("n", "steps")).collate("list", fields="steps")
    for i in range(len(sequences)):
        np.testing.assert_array_equal(
            sequences[i].steps, np.array([[t, t / 2] for t in range((i + 1) % 5)], np.float32).reshape(-1, 2)
        )


def test_tensorflow_reads_packed_records(original: Original, folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "out", to="tfrecord")
    source = feedline.open(folder)
    wanted = [[source.encoded(i).hex(), int(source[i].label)] for i in range(len(source))]
    assert original("tensorflow", "read_tfrecord.py", tmp_path / "out/000000.tfrecord") == wanted
