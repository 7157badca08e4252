# SPDX-License-Identifier: Apache-2.0
"""Megatron's own reader reads the files of `feedline tokenize`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_tokenizers import END, Bytes

from feedline.tokenizing import tokenize

pytest.importorskip("torch")
indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset")


@pytest.mark.parametrize("extra", [0, 70_000])
def test_megatron_reads_the_same_tokens(tmp_path: Path, extra: int) -> None:
    texts = ["first", "é世界", "", "x" * 5000]
    source = tmp_path / "t.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    tokenize(
        source, tmp_path / "out", tokenizer=Bytes(extra), append_eod=True, eod=END, add_special_tokens=False, jobs=1
    )
    read = indexed_dataset.IndexedDataset(str(tmp_path / "out"))
    assert read.index.dtype == (np.int32 if extra else np.uint16)
    assert [read[number].tolist() for number in range(len(read))] == [[*text.encode(), END] for text in texts if text]
    assert read.document_indices.tolist() == [0, 1, 2, 3]
    assert read.get(2, offset=4998, length=3).tolist() == [ord("x"), ord("x"), END]
