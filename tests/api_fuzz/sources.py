# SPDX-License-Identifier: Apache-2.0
"""Datasets of every format whose samples contain their index, so that a lost, repeated or mixed-up row is detected."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_arrow
import made_data
import made_litdata
import made_lmdb
import made_mds
import made_parquet
import made_tfrecords
import numpy as np
from PIL import Image

import feedline

from . import annotated, http_server

ROWS = 23  # prime: no batch size, rank count or shard count divides it
STEP = 8  # between the grey levels of two images: more than JPEG changes them
DAMAGED = 10


@dataclass(frozen=True)
class Source:
    open: Callable[[Path], feedline.Dataset]
    identify: Callable[[Any], list[int]]  # of a batch
    images: bool = False
    in_shards: bool = False
    every: bool = True  # an epoch has every sample once
    number: Callable[[feedline.Dataset], list[int]] = lambda dataset: list(range(len(dataset)))  # the id of each sample
    variable: str | None = None  # the field whose rows differ in length
    lengths: bool = False  # samples are sequences, which buckets need
    damaged: bool = False
    boxes: str | None = None  # the field of an annotated image's boxes
    per_box: tuple[str, ...] = ()  # other fields with a row per box


def array(value: Any) -> np.ndarray:
    """A batch's field of any form as a NumPy array."""
    if isinstance(value, list):
        return np.asarray([np.asarray(one) for one in value])
    if isinstance(value, np.ndarray):
        return value
    import torch

    tensor = value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def field(name: str) -> Callable[[Any], list[int]]:
    def identify(batch: Any) -> list[int]:
        return [int(one) for one in array(getattr(batch, name))]

    return identify


def rows_of(value: Any) -> Any:
    """A batch's field row by row."""
    return value if isinstance(value, list) else array(value)


def first_number(name: str, per_row: int) -> Callable[[Any], list[int]]:
    def identify(batch: Any) -> list[int]:
        return [int(array(row).ravel()[0]) // per_row for row in rows_of(getattr(batch, name))]

    return identify


def image_bytes(index: int) -> bytes:
    """A single grey level, which no resize, crop or flip changes."""
    pixels = np.full((16 + index % 5, 20 + index % 3, 3), STEP * index, np.uint8)
    return made_data.encoded(pixels, "PNG" if index % 2 else "JPEG")


def make(root: Path) -> None:
    """Writes the files of all sources."""
    folder = root / "folder"
    for i in range(ROWS):
        (folder / f"c{i:02d}").mkdir(parents=True)
        (folder / f"c{i:02d}" / "x.jpg").write_bytes(image_bytes(i))
        bmp = root / "bmp" / f"c{i:02d}"
        bmp.mkdir(parents=True)
        Image.new("RGB", (16 + i % 5, 20), (STEP * i,) * 3).save(bmp / "x.bmp")
    for shards, name in ((1, "one"), (3, "tar")):
        (root / name).mkdir()
        for shard in range(shards):
            part = range(shard * ROWS // shards, (shard + 1) * ROWS // shards)
            members = [
                (f"{i:03d}.{kind}", data) for i in part for kind, data in (("cls", b"%d" % i), ("jpg", image_bytes(i)))
            ]
            made_data.write_tar(root / name / f"{shard:03d}.tar", members)
    members = [
        (f"{i:03d}.{kind}", data)
        for i in range(ROWS)
        for kind, data in (("cls", b"%d" % i), ("jpg", image_bytes(i)[: 40 if i == DAMAGED else None]))
    ]
    made_data.write_tar(root / "damaged.tar", members)
    _make_fields(root)
    made_tfrecords.of_folder(folder, root / "tfrecord", shards=3)
    made_arrow.of_folder(folder, root / "arrow", shards=3)
    made_parquet.of_folder(folder, root / "parquet", shards=3)
    made_mds.of_folder(folder, root / "mds", shards=3)
    made_litdata.of_folder(folder, root / "litdata", chunks=3)
    made_lmdb.of_folder(folder, root / "lmdb")
    rows = [{"n": i, "t": f"sample {i}"} for i in range(ROWS)]
    made_mds.write(root / "mds_lines", {"n": "int", "t": "str"}, rows, 3, form="json")
    lines = [{"image": str(folder / f"c{i:02d}" / "x.jpg"), "text": f"text {i}", "label": i} for i in range(ROWS)]
    (root / "table.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    header = ",".join(lines[0]) + "\n"
    (root / "table.csv").write_text(header + "".join(",".join(map(str, line.values())) + "\n" for line in lines))
    np.save(root / "x.npy", rows_of_numbers())
    np.savez(root / "x.npz", x=rows_of_numbers(), y=np.arange(ROWS))
    np.arange(ROWS * 6 + 1, dtype="<u2").tofile(root / "tokens.bin")
    feedline.pack_pixels(feedline.open(folder).resize((12, 14)), root / "x.pixels")
    annotated.make(root, ROWS, STEP)


def _make_fields(root: Path) -> None:
    """Samples with text, JSON and arrays of different lengths, of which some have no elements."""
    from fields.made_fields import npy

    members = []
    for i in range(ROWS):
        boxes = np.full((i % 4, 4), i, np.float32)
        about = json.dumps({"id": i, "words": ["a"] * (i % 3)}).encode()
        parts = {"cls": b"%d" % i, "json": about, "txt": b"text" * (i % 5), "boxes.npy": npy(boxes)}
        members += [(f"{i:03d}.{name}", data) for name, data in parts.items()]
    made_data.write_tar(root / "fields.tar", members)


def rows_of_numbers() -> np.ndarray:
    return np.arange(ROWS * 4, dtype=np.float32).reshape(ROWS, 4)


def _arrays(root: Path) -> feedline.Dataset:
    return feedline.arrays(x=rows_of_numbers(), label=np.arange(ROWS))


def _tensors(root: Path) -> feedline.Dataset:
    import torch

    return feedline.arrays(x=torch.from_numpy(rows_of_numbers()), label=torch.arange(ROWS))


def _ragged(root: Path) -> feedline.Dataset:
    lengths = [1 + i % 7 for i in range(ROWS)]
    values = np.concatenate([np.full(length, i, np.int64) for i, length in enumerate(lengths)])
    return feedline.arrays(x=feedline.ragged(values, lengths=lengths), label=np.arange(ROWS))


@functools.cache
def _opener(name: str, **options: Any) -> Callable[[Path], feedline.Dataset]:
    return lambda root: feedline.open(root / name, **options)


def _shards(root: Path) -> feedline.Dataset:
    return feedline.open([str(path) for path in sorted((root / "tar").glob("*.tar"))])


def _of_two(dataset: feedline.Dataset) -> list[int]:
    return [i % ROWS for i in range(2 * ROWS)]


def _labels(dataset: feedline.Dataset) -> list[int]:
    return [int(sample.label) for sample in dataset]


def first_label(batch: Any) -> list[int]:
    return [int(array(row).ravel()[0]) for row in batch.labels]


def remote(name: str, **options: Any) -> Callable[[Path], feedline.Dataset]:
    return lambda root: feedline.open(http_server.url(root, name), **options)


def _annotated(name: str, identify: Callable[[Any], list[int]], per_box: tuple[str, ...], **options: Any) -> Source:
    return Source(annotated.OPENERS[name], identify, images=True, boxes="boxes", per_box=per_box, **options)


LABEL = field("label")
SOURCES: dict[str, Source] = {
    "folder": Source(_opener("folder"), LABEL, images=True),
    "bmp": Source(_opener("bmp"), LABEL, images=True),
    "one tar": Source(_opener("one/000.tar"), LABEL, images=True, in_shards=True),
    "tars": Source(_shards, LABEL, images=True, in_shards=True),
    "damaged tar": Source(_opener("damaged.tar"), LABEL, images=True, in_shards=True, damaged=True),
    "fields": Source(
        _opener("fields.tar", fields=("cls", "json", "txt", "boxes.npy")), field("cls"), variable="boxes.npy"
    ),
    "lists without elements": Source(
        _opener("fields.tar", fields=("boxes.npy", "cls")), field("cls"), variable="boxes.npy"
    ),
    "tfrecord": Source(
        lambda root: feedline.open(sorted((root / "tfrecord").glob("train-*-of-00003"))),
        LABEL,
        images=True,
        in_shards=True,
    ),
    "arrow": Source(_opener("arrow"), LABEL, images=True, in_shards=True),
    "parquet": Source(_opener("parquet"), LABEL, images=True, in_shards=True),
    "mds": Source(_opener("mds"), LABEL, images=True, in_shards=True),
    "mds of lines": Source(_opener("mds_lines"), field("n"), in_shards=True),
    "litdata": Source(_opener("litdata"), LABEL, images=True, in_shards=True),
    "lmdb": Source(_opener("lmdb"), LABEL, images=True),
    "jsonl": Source(_opener("table.jsonl", fields=("image", "label:value")), LABEL, images=True),
    "csv": Source(_opener("table.csv", fields=("image", "label:value")), LABEL, images=True),
    "jsonl of text": Source(_opener("table.jsonl", fields=("text:text", "label:value")), LABEL),
    "csv of text": Source(_opener("table.csv", fields=("text:text", "label:value")), LABEL),
    "npy": Source(_opener("x.npy"), first_number("x", 4)),
    "npz": Source(_opener("x.npz"), field("y")),
    "tokens": Source(lambda root: feedline.tokens(root / "tokens.bin", window=6, dtype="uint16"), first_number("x", 6)),
    "pixels": Source(_opener("x.pixels"), LABEL, images=True),
    "arrays": Source(_arrays, LABEL),
    "tensors": Source(_tensors, LABEL),
    "ragged": Source(_ragged, LABEL, lengths=True),
    "mix": Source(lambda root: feedline.mix([_shards(root)] * 2), LABEL, images=True, every=False, number=_of_two),
    "mix of arrays": Source(lambda root: feedline.mix([_arrays(root)] * 2, [1, 2]), LABEL, every=False, number=_of_two),
    "subset": Source(lambda root: _shards(root).subset(range(ROWS)), LABEL, images=True),
    "part": Source(lambda root: _arrays(root).split(0.5)[0], LABEL, number=_labels),
    "coco": _annotated("coco", field("image_id"), ("labels", "keypoints", "masks")),
    "coco with one mask": _annotated("coco with one mask", field("image_id"), ("labels",)),
    "voc": _annotated("voc", first_label, ("labels",)),
    "yolo": _annotated("yolo", first_label, ("labels", "masks")),
    "annotated tar": _annotated("annotated tar", field("cls"), ("labels", "points"), in_shards=True),
    "remote tar": Source(remote("one/000.tar"), LABEL, images=True, in_shards=True),
    "remote parquet": Source(
        remote("parquet/data/train-{00000..00002}-of-00003.parquet"),
        LABEL,
        images=True,
        in_shards=True,
    ),
    "remote coco": Source(
        remote("coco/instances_val.json", fields=("image", "boxes", "labels", "masks", "image_id")),
        field("image_id"),
        images=True,
        boxes="boxes",
        per_box=("labels", "masks"),
    ),
    "remote csv of text": Source(remote("table.csv", fields=("text:text", "label:value")), LABEL),
    "remote npy": Source(remote("x.npy"), first_number("x", 4)),
}
