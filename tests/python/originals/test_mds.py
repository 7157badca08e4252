# SPDX-License-Identifier: Apache-2.0
"""MDS datasets of MosaicML's own writer read as MosaicML reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

Original = Callable[..., Any]

ARRAYS = ("any", "typed", "fixed", "pil")
REALS = ("float16", "float32", "float64", "sf")
WHOLES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "whole", "si")


def test_datasets_of_streaming_read_as_it_reads_them(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    written = original("streaming", "write_mds.py", tmp_path / "out")
    assert len(written["rows"]) == 11
    for name, rows in written["rows"].items():
        specs = (*WHOLES, "u64:array", *REALS, "text", "raw", "tree", "sd", *ARRAYS[:-1], "pil:array")
        dataset = feedline.open(tmp_path / "out" / name, fields=specs).collate("list", fields=ARRAYS)
        assert (dataset.format, len(dataset)) == ("mds", 40)
        for i, row in enumerate(rows):
            one = dataset[i]._asdict()
            for column in WHOLES:
                assert int(one[column]) == row[column], (name, i, column)
            for column in (*REALS, "u64"):
                assert np.asarray(one[column]).item() == row[column], (name, i, column)
            for column in ARRAYS:
                value = one[column]
                assert [value.dtype.name, list(value.shape), value.tobytes().hex()] == row[column], (name, i, column)
            assert (one["text"], one["raw"].hex(), one["tree"], one["sd"]) == (
                row["text"], row["raw"], row["tree"], row["sd"],
            )  # fmt: skip
        findings = feedline.inspect(tmp_path / "out" / name).findings
        assert {finding.code for finding in findings if finding.severity != "note"} == set(), name
