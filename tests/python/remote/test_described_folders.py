# SPDX-License-Identifier: Apache-2.0
"""Remote folders of images with a metadata file open with the file's columns, like local ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_png
import pytest
from range_server import RangeServer, serving

import feedline
from feedline.pack import listing


def _describe(folder: Path, end: str, captions: dict[str, str]) -> None:
    rows = [{"file_name": name, "caption": caption} for name, caption in captions.items()]
    for row in rows:
        (folder / row["file_name"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / row["file_name"]).write_bytes(made_png.png(made_png.Kind()))
    if end == "csv":
        lines = ["file_name,caption", *(",".join(row.values()) for row in rows)]
    else:
        lines = [json.dumps(row) for row in rows]
    (folder / f"metadata.{end}").write_text("\n".join(lines) + "\n")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    with serving(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("end", ["csv", "jsonl"])
@pytest.mark.parametrize("where", ["flat", "root", "classes"])
def test_the_columns_are_those_of_the_folder_on_this_machine(
    server: RangeServer, tmp_path: Path, where: str, end: str
) -> None:
    root = tmp_path / "data"
    if where == "classes":
        _describe(root / "cats", end, {"0.png": "one", "1.png": "two"})
        _describe(root / "dogs", end, {"0.png": "three"})
    else:
        folder = "" if where == "flat" else "cats/"
        _describe(root, end, {f"{folder}0.png": "one", f"{folder}1.png": "two"})
    listing.write_listing(root)
    for options in ({}, {}, {"fields": ("image=file_name:image", "caption")}, {"format": "table"}):
        local: Any = feedline.open(root, **options)  # type: ignore[arg-type]
        remote: Any = feedline.open(server.url(""), **options)  # type: ignore[arg-type]
        assert remote.fingerprint == local.fingerprint and remote.classes == local.classes
        assert [sample.caption for sample in remote] == [sample.caption for sample in local]
    assert feedline.inspect(server.url("")).fields == feedline.inspect(root).fields
    if where != "flat":
        assert len(feedline.open(server.url(""), format="folder")) == len(feedline.open(root, format="folder"))


def test_a_class_folder_without_the_metadata_of_the_others_is_named(server: RangeServer, tmp_path: Path) -> None:
    _describe(tmp_path / "data" / "cats", "csv", {"0.png": "one"})
    (tmp_path / "data" / "dogs").mkdir()
    (tmp_path / "data" / "dogs" / "0.png").write_bytes(made_png.png(made_png.Kind()))
    listing.write_listing(tmp_path / "data")
    with pytest.raises(feedline.ConfigError, match=r"dogs' contains images but no metadata file.*format=.folder."):
        feedline.open(server.url(""))
    assert len(feedline.open(server.url(""), format="folder")) == 2


def test_metadata_of_a_late_class_alone_changes_nothing(server: RangeServer, tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in "abcdefgh":
        (root / name).mkdir()
        (root / name / "0.png").write_bytes(made_png.png(made_png.Kind()))
    _describe(root / "i", "csv", {"0.png": "one"})
    listing.write_listing(root)
    assert feedline.open(server.url("")).fingerprint == feedline.open(root).fingerprint
