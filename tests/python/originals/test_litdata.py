# SPDX-License-Identifier: Apache-2.0
"""LitData datasets written by LitData have the same samples as in LitData."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feedline

Original = Callable[..., Any]

ARRAYS = {"tensor": "meta/tensor", "flat": "flat", "other": "other", "numpy": "numpy", "line": "line", "pil": "pil"}


def test_datasets_of_litdata_read_as_it_reads_them(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    written = original("litdata", "write_litdata.py", tmp_path / "out")
    blocks = {name: written.pop(name) for name in list(written) if name.startswith("blocks")}
    assert list(written) == ["plain", "chunk", "batch", "frames", "sample"]
    for name, rows in written.items():
        specs = ["whole", "real", "yes", "text", "raw", "n=meta/n", "name=meta/name"]
        specs += [f"{field}={column}:array" for field, column in ARRAYS.items()]
        dataset = feedline.open(tmp_path / "out" / name, fields=specs).collate("list", fields=list(ARRAYS))
        assert (dataset.format, len(dataset), len(rows)) == ("litdata", 40, 40)
        also = feedline.open(tmp_path / "out" / f"read-{name}", fields="whole")
        assert [int(also[i].whole) for i in range(40)] == [row["whole"] for row in rows], "what LitData left of it"
        for i, row in enumerate(rows):
            one = dataset[i]
            assert [int(one.whole), np.asarray(one.real).item(), bool(one.yes), one.text, one.raw.hex()] == [
                row[column] for column in ("whole", "real", "yes", "text", "raw")
            ]
            assert [int(one.n), one.name] == [row["n"], row["name"]]
            for field in ARRAYS:
                value = getattr(one, field)
                assert [value.dtype.name, list(value.shape), value.tobytes().hex()] == row[field], (name, i, field)
    tokens = feedline.open(tmp_path / "out" / "tokens").collate("list", fields="tokens")
    assert [tokens[i].tokens.tolist() for i in range(10)] == [[7 * k for k in range(i + 3)] for i in range(10)]
    assert len(blocks) == 3
    for name, wanted in blocks.items():
        windows = feedline.open(tmp_path / "out" / name).windows(16, stride=17)
        assert len(wanted) > 20
        assert [[*one.x.tolist(), int(one.y[-1])] for one in windows] == wanted, name
