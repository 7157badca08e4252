# SPDX-License-Identifier: Apache-2.0
"""Names that are not UTF-8 are read as with os.fsdecode(); text that must be UTF-8 is an error that names its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import feedline

Image = pytest.importorskip("PIL.Image")

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def write_photo(path: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(file, "PNG")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    write_photo(os.fsencode(root) + b"/dog/1.png")
    try:
        write_photo(os.fsencode(root) + b"/caf\xe9/\xc4.png")
    except OSError:
        pytest.skip("the file system accepts only UTF-8")
    return root


def test_folders(folder: Path) -> None:
    dataset = feedline.open(str(folder))
    assert dataset.classes == sorted(os.listdir(folder)) == ["caf\udce9", "dog"]
    assert dataset.key(0) == "caf\udce9/\udcc4.png"
    assert [np.asarray(image).shape for image, _ in dataset] == [(3, 6, 8)] * 2
    inspection = dataset.inspect()
    assert inspection.classes == {"caf\udce9": 1, "dog": 1}


def test_a_source_by_such_a_name(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xe9"
    write_photo(name + b"/a/1.png")
    dataset = feedline.open(os.fsdecode(name))
    assert dataset.source == os.fsdecode(name) and len(dataset) == 1
    dataset.explain().encode("utf-8", "surrogateescape")
    assert len(feedline.open(Path(os.fsdecode(name)))) == 1


def test_an_error_names_the_file_in_text_that_prints(folder: Path) -> None:
    (folder / "caf\udce9" / "\udcc4.png").write_bytes(b"no image")
    with pytest.raises(feedline.DataError) as caught:
        feedline.open(str(folder))[0]
    str(caught.value).encode()
    assert "\\xe9" in str(caught.value)


@pytest.mark.parametrize("arguments", [["inspect"], ["inspect", "--json"], ["verify"], ["verify", "--decode"]])
def test_the_command_line(folder: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}
    command = [*COMMAND, *arguments, str(folder)]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    if "--json" in arguments:
        json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.csv", b"path,label\na.png,caf\xe9\n"), ("t.jsonl", b'{"path": "a.png", "label": "caf\xe9"}\n')],
)
def test_tables_must_be_utf_8(tmp_path: Path, name: str, text: bytes) -> None:
    write_photo(os.fsencode(tmp_path) + b"/a.png")
    (tmp_path / name).write_bytes(text)
    with pytest.raises(feedline.DataError, match=r"label.*\\xe9.*UTF-8") as caught:
        feedline.open(str(tmp_path / name))
    assert caught.value.shard is not None and caught.value.shard.endswith(name)


def write_voc(root: Path, declaration: str, name: bytes) -> str:
    write_photo(os.fsencode(root) + b"/VOC2012/JPEGImages/a.png")
    (root / "VOC2012" / "Annotations").mkdir()
    box = b"<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox>"
    xml = declaration.encode() + b"<annotation><object><name>" + name + b"</name>" + box + b"</object></annotation>"
    (root / "VOC2012" / "Annotations" / "a.xml").write_bytes(xml)
    return str(root / "VOC2012")


@pytest.mark.parametrize(
    ("encoding", "name", "expected"),
    [
        ("ISO-8859-1", b"caf\xe9", "café"),
        ("iso-8859-1", b"\xc3\xa8", "Ã¨"),
        ("windows-1252", b"\x80\xe9", "€é"),
        ("windows-1251", "кот".encode("cp1251"), "кот"),
        ("UTF-8", "猫".encode(), "猫"),
    ],
)
def test_the_encoding_that_xml_names(tmp_path: Path, encoding: str, name: bytes, expected: str) -> None:
    source = write_voc(tmp_path, f'<?xml version="1.0" encoding="{encoding}"?>', name)
    assert feedline.open(source).classes == [expected]


def test_xml_in_utf_16(tmp_path: Path) -> None:
    source = Path(write_voc(tmp_path, '<?xml version="1.0" encoding="UTF-16"?>', "猫".encode()))
    annotation = source / "Annotations" / "a.xml"
    annotation.write_bytes(annotation.read_text(encoding="utf-8").encode("utf-16"))
    assert feedline.open(str(source)).classes == ["猫"]


@pytest.mark.parametrize(
    ("declaration", "name", "words"),
    [
        ('<?xml version="1.0" encoding="GBK"?>', b"\xc3\xa8", "encoding 'GBK' of the XML is not supported"),
        ("", b"caf\xe9", "not UTF-8"),
        ('<?xml version="1.0" encoding="windows-1252"?>', b"\x81", "not valid in the declared encoding 'windows-1252'"),
    ],
)
def test_other_encodings_are_named(tmp_path: Path, declaration: str, name: bytes, words: str) -> None:
    with pytest.raises(feedline.DataError, match=words) as caught:
        feedline.open(write_voc(tmp_path, declaration, name))
    assert caught.value.shard is not None and caught.value.shard.endswith("a.xml")
