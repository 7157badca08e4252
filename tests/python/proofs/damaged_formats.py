# SPDX-License-Identifier: Apache-2.0
"""Small datasets of every format, and ways to damage their files, for test_corruptions.py."""

from __future__ import annotations

import dataclasses
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_annotations
import made_arrow
import made_data
import made_litdata
import made_lmdb
import made_mds
import made_parquet
import made_tfrecords
import numpy as np

import feedline

COUNT = 12


@dataclasses.dataclass(frozen=True)
class Case:
    """A dataset of one format.

    Attributes:
        open: opens it.
        files: that are damaged.
        protects: whether the checksums that a file has stand for its values: what is read then is what was written,
            or an error. Given the file as it was and as it is.
    """

    open: Callable[[], feedline.Dataset]
    files: list[Path]
    protects: Callable[[bytes, bytes], bool] = lambda before, after: False


def values_of(dataset: feedline.Dataset, index: int) -> list[Any]:
    """Returns a sample in a form that can be compared."""
    fields = dataset[index]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in fields]


def _rows() -> list[dict[str, Any]]:
    return [{"n": 1000 * i, "raw": bytes([i]) * 40, "text": f"sample {i}"} for i in range(COUNT)]


def _protected(before: bytes, after: bytes) -> bool:
    return True


# -- each format by its name


def _tar(root: Path) -> Case:
    samples = [(f"{i:03d}.txt", f"sample {i}".encode()) for i in range(COUNT)]
    samples += [(f"{i:03d}.cls", str(i).encode()) for i in range(COUNT)]
    path = made_data.write_tar(root / "0.tar", sorted(samples))
    return Case(lambda: feedline.open(path, fields=("txt", "cls"), format="tar"), [path])


def _tfrecord(root: Path) -> Case:
    rows = [{**row, "x": [i / 4] * 3} for i, row in enumerate(_rows())]
    path = made_tfrecords.write(root / "x.tfrecord", map(made_tfrecords.example, rows))
    fields = ("n", "raw", "text", "x:array")
    return Case(lambda: feedline.open(path, fields=fields, format="tfrecord"), [path], _protected)


def _mds(root: Path, compression: str | None = None) -> Case:
    columns = {"n": "int", "raw": "bytes", "text": "str"}
    hashes = ("sha256",) if compression else ()
    made_mds.write(root, columns, _rows(), compression=compression, hashes=hashes)
    files = sorted(root.iterdir()) if compression is None else [p for p in root.iterdir() if p.name != "index.json"]
    return Case(
        lambda: feedline.open(root, fields=tuple(columns), format="mds"),
        files,
        _protected if compression else lambda before, after: False,
    )


def _lines(root: Path, form: str) -> Case:
    columns = {"n": "int", "text": "str"}
    made_mds.write(root, columns, _rows(), form=form)
    return Case(lambda: feedline.open(root, fields=tuple(columns), format="mds"), sorted(root.iterdir()))


def _litdata(root: Path) -> Case:
    columns = {"n": "int", "raw": "bytes", "text": "str"}
    made_litdata.write(root, columns, _rows(), chunks=2)
    return Case(lambda: feedline.open(root, fields=tuple(columns), format="litdata"), sorted(root.iterdir()))


def _lmdb(root: Path) -> Case:
    entries = {f"{i:03d}.txt".encode(): f"sample {i}".encode() for i in range(COUNT)}
    entries |= {f"{i:03d}.bin".encode(): bytes([i]) * 1500 for i in range(COUNT)}
    path = made_lmdb.write(root / "data.mdb", entries, size=1024, nodes=5)
    return Case(lambda: feedline.open(path, fields=("text={key}.txt", "raw={key}.bin"), format="lmdb"), [path])


def _arrow(root: Path) -> Case:
    features = {"n": {"dtype": "int64", "_type": "Value"}}
    made_arrow.save(root, [{key: row[key] for key in ("n", "text", "raw")} for row in _rows()], features, shards=2)
    files = sorted(root.glob("*.arrow"))
    return Case(lambda: feedline.open(root, fields=("n", "text", "raw"), format="arrow"), files)


def _parquet(root: Path) -> Case:
    path = root / "x.parquet"
    path.write_bytes(made_parquet.file_of(_rows(), per_group=5))

    def protects(before: bytes, after: bytes) -> bool:
        """Pages have checksums, but the metadata after them has none."""
        end = 8 + struct.unpack("<I", before[-8:-4])[0]
        return len(before) == len(after) and before[-end:] == after[-end:]

    return Case(lambda: feedline.open(path, fields=("n", "text", "raw"), format="parquet"), [path], protects)


def _npy(root: Path) -> Case:
    path = root / "x.npy"
    np.save(path, np.arange(3 * COUNT, dtype=np.int32).reshape(COUNT, 3))
    return Case(lambda: feedline.open(path, format="numpy"), [path])


def _npz(root: Path) -> Case:
    path = root / "x.npz"
    np.savez_compressed(path, x=np.arange(3 * COUNT).reshape(COUNT, 3), y=np.arange(COUNT, dtype=np.float32))
    return Case(lambda: feedline.open(path, format="numpy"), [path], _protected)


def _csv(root: Path) -> Case:
    path = root / "x.csv"
    path.write_text("n,text\n" + "".join(f'{i},"sample, {i}"\n' for i in range(COUNT)))
    return Case(lambda: feedline.open(path, fields=("n:value", "text:text"), format="table"), [path])


def _jsonl(root: Path) -> Case:
    path = root / "x.jsonl"
    path.write_text("".join(json.dumps({"n": i, "text": f"sample {i}"}) + "\n" for i in range(COUNT)))
    return Case(lambda: feedline.open(path, fields=("n:value", "text:text"), format="table"), [path])


def _coco(root: Path) -> Case:
    path = made_annotations.coco(root, COUNT)
    return Case(lambda: feedline.open(path, fields=("boxes", "labels", "masks")).collate("list"), [path])


def _voc(root: Path) -> Case:
    made_annotations.voc(root, COUNT)
    files = sorted((root / "Annotations").iterdir())
    return Case(lambda: feedline.open(root, fields=("boxes", "labels"), split="train").collate("list"), files)


def _yolo(root: Path) -> Case:
    path = made_annotations.yolo(root, COUNT)
    files = sorted((root / "labels/train").iterdir())
    return Case(lambda: feedline.open(path, fields=("boxes", "labels"), split="train").collate("list"), files)


def _pixels(root: Path) -> Case:
    path = root / "x.pixels"
    folder = made_data.make_folder(root / "photos", per_class=COUNT // 3)
    feedline.pack_pixels(feedline.open(folder).resize((8, 9)), path)
    return Case(lambda: feedline.open(path).center_crop((8, 9)).to_dtype("uint8"), [path], _protected)


CASES: dict[str, Callable[[Path], Case]] = {
    "tar": _tar,
    "tfrecord": _tfrecord,
    "mds": _mds,
    "mds, compressed": lambda root: _mds(root, "gz"),
    "mds, lines of json": lambda root: _lines(root, "json"),
    "mds, lines of csv": lambda root: _lines(root, "csv"),
    "litdata": _litdata,
    "lmdb": _lmdb,
    "arrow": _arrow,
    "parquet": _parquet,
    "npy": _npy,
    "npz": _npz,
    "csv": _csv,
    "jsonl": _jsonl,
    "coco": _coco,
    "voc": _voc,
    "yolo": _yolo,
    "pixels": _pixels,
}


# -- damage


def _flip(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _drop(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    del data[begin : begin + draw.randint(1, 40)]


def _double(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    data[begin:begin] = data[begin : begin + draw.randint(1, 40)]


def _zero(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    data[begin : begin + 16] = bytes(len(data[begin : begin + 16]))


def _number(data: bytearray, draw: random.Random) -> None:
    """Replaces a possible length or offset by any value."""
    code, numbers = draw.choice([("<I", (0, 2**31, 2**32 - 1)), ("<Q", (0, 2**63, 2**64 - 1, 2**40)), (">I", (2**31,))])
    size = struct.calcsize(code)
    begin = draw.randrange(max(1, len(data) - size)) // 4 * 4
    data[begin : begin + size] = struct.pack(code, draw.choice([*numbers, draw.randrange(len(data))]))[: len(data)]


def _digits(data: bytearray, draw: random.Random) -> None:
    """Replaces a number in text by another."""
    places = [i for i, byte in enumerate(data) if 0x30 <= byte <= 0x39]
    if not places:
        return _flip(data, draw)
    begin = draw.choice(places)
    data[begin : begin + 1] = draw.choice([b"-1", b"9" * 20, b"1e999", b"x", b"", b"0", b"NaN", b'"'])
    return None


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [_flip, _cut, _drop, _double, _zero, _number, _digits]
