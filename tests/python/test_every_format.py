# SPDX-License-Identifier: Apache-2.0
"""What every format promises, by its name: order, threads, ranks, resume, and bad samples named with their place."""

from __future__ import annotations

import csv
import json
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
import pytest

import feedline

PER_CLASS, BAD = 6, 10  # BAD is the fifth photo of the second class
COUNT = 3 * PER_CLASS


def _csv(folder: Path, root: Path) -> Path:
    root.mkdir()
    with (root / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "label"])
        writer.writerows((photo, photo.parent.name) for photo in sorted(folder.glob("*/*.jpg")))
    return root / "train.csv"


def _jsonl(folder: Path, root: Path) -> Path:
    root.mkdir()
    lines = [json.dumps({"image": str(p), "label": p.parent.name}) for p in sorted(folder.glob("*/*.jpg"))]
    (root / "train.jsonl").write_text("\n".join(lines) + "\n")
    return root / "train.jsonl"


def _patterns(folder: Path, root: Path) -> Path:
    """The photos in one folder and their labels in another."""
    photos = sorted(folder.glob("*/*.jpg"))
    for i, photo in enumerate(photos):
        for pattern, content in (("images/{}.jpg", photo.read_bytes()), ("labels/{}.cls", b"%d" % (i // PER_CLASS))):
            path = root / pattern.format(f"{i:03d}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return root


def _metadata(folder: Path, root: Path) -> Path:
    """As Hugging Face's ImageFolder has them."""
    root.mkdir()
    lines = ["file_name,label"]
    for i, photo in enumerate(sorted(folder.glob("*/*.jpg"))):
        (root / f"{i:03d}.jpg").write_bytes(photo.read_bytes())
        lines.append(f"{i:03d}.jpg,{photo.parent.name}")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


def _annotated(make: Callable[[Path, int], Path], images: str) -> Callable[[Path, Path], Path]:
    """Of made photos; that with the number BAD has the bytes of the folder's."""

    def of_folder(folder: Path, root: Path) -> Path:
        made = make(root, COUNT + 3 if make is made_annotations.voc else COUNT)
        sorted(root.glob(f"{images}/*.jpg"))[BAD].write_bytes(sorted(folder.glob("*/*.jpg"))[BAD].read_bytes())
        return made

    return of_folder


PHOTOS: dict[str, Callable[[Path, Path], Any]] = {
    "folder": lambda folder, root: folder,
    "folder, with patterns": _patterns,
    "tar": lambda folder, root: made_data.make_tars(folder, root, shards=3),
    "tfrecord": lambda folder, root: made_tfrecords.of_folder(folder, root, shards=3),
    "mds": lambda folder, root: made_mds.of_folder(folder, root, shards=3),
    "mds, compressed": lambda folder, root: made_mds.of_folder(folder, root, shards=3, compression="gz"),
    "litdata": lambda folder, root: made_litdata.of_folder(folder, root, chunks=3),
    "lmdb": made_lmdb.of_folder,
    "arrow": lambda folder, root: made_arrow.of_folder(folder, root, shards=3),
    "parquet": lambda folder, root: made_parquet.of_folder(folder, root, shards=3),
    "csv": _csv,
    "jsonl": _jsonl,
    "metadata.csv": _metadata,
    "coco": _annotated(made_annotations.coco, "train2017"),
    "voc": _annotated(made_annotations.voc, "JPEGImages"),
    "yolo": _annotated(made_annotations.yolo, "images/train"),
}
LINES = ("mds, lines of json", "mds, lines of csv, compressed")
OTHERS = (*LINES, "npy", "npz", "tokens of litdata", "windows of litdata", "tokens", "pixels")  # without photos
ANNOTATED = ("coco", "voc", "yolo")


def opened(name: str, source: Any) -> feedline.Dataset:
    options: dict[str, Any] = {"split": "train"} if name in ("voc", "yolo") else {}
    if name == "folder, with patterns":
        options["fields"] = ("image=images/{key}.jpg", "label=labels/{key}.cls")
    dataset = feedline.open([str(one) for one in source] if isinstance(source, list) else source, **options)
    dataset = dataset.random_resized_crop(8).random_horizontal_flip()
    return dataset.collate("list") if name in ANNOTATED else dataset


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, feedline.Dataset]:
    root = tmp_path_factory.mktemp("formats")
    folder = made_data.make_folder(root / "photos", PER_CLASS)
    made = {name: opened(name, make(folder, root / name)) for name, make in PHOTOS.items()}
    rows = np.arange(COUNT * 4, dtype=np.float32).reshape(COUNT, 4)
    np.save(root / "x.npy", rows)
    np.savez(root / "x.npz", x=rows, y=np.arange(COUNT))
    samples = [{"n": i, "t": f"sample {i}"} for i in range(COUNT)]
    for name, form, compression in zip(LINES, ("json", "csv"), (None, "gz"), strict=True):
        source = made_mds.write(root / name, {"n": "int", "t": "str"}, samples, 3, compression, form=form)
        made[name] = feedline.open(source)
    documents = [np.arange(10 * i, 10 * i + 7, dtype=np.int64) for i in range(COUNT)]
    made["npy"], made["npz"] = feedline.open(root / "x.npy"), feedline.open(root / "x.npz")
    made["tokens of litdata"] = feedline.open(made_litdata.tokens(root / "tokens", documents))
    made["windows of litdata"] = made["tokens of litdata"].windows(5, stride=7)
    np.concatenate(documents).tofile(root / "train.bin")
    made["tokens"] = feedline.tokens(root / "train.bin", window=6, stride=7, dtype="int64")
    feedline.pack_pixels(feedline.open(folder).resize((12, 14)), root / "x.pixels")
    made["pixels"] = opened("pixels", root / "x.pixels")
    return made


def content(field: Any) -> bytes:
    if isinstance(field, np.ndarray):
        return bytes(field.tobytes())
    return b"".join(np.asarray(one).tobytes() for one in field)


def run(dataset: feedline.Dataset, batch_size: int, state: Any = None, **options: Any) -> list[tuple[list[int], bytes]]:
    """(samples, bytes) of each batch."""
    options = {"shuffle": True, "seed": 5, "epochs": 2, "output": "numpy", "num_workers": 2, **options}
    with dataset.loader(batch_size, **options) as loader:
        if state is not None:
            loader.load_state_dict(state)
        return [(loader.last_samples, b"".join(map(content, batch))) for batch in loader]


def images(dataset: feedline.Dataset) -> bytes:
    with dataset.loader(COUNT, output="numpy") as loader:
        return bytes(next(iter(loader)).image.tobytes())


@pytest.mark.parametrize("name", [*PHOTOS, *OTHERS])
def test_order_threads_ranks_and_resume(sources: dict[str, feedline.Dataset], name: str) -> None:
    dataset = sources[name]
    assert len(dataset) == COUNT
    plain = run(dataset, 5, shuffle=False, epochs=1)
    assert [sample for samples, _ in plain for sample in samples] == list(range(COUNT))
    if name in PHOTOS and name not in ANNOTATED:
        assert images(dataset) == images(sources["folder"]), "the same photos in the same order"
    whole = run(dataset, 6)
    orders = [[sample for samples, _ in batches for sample in samples] for batches in (whole[:3], whole[3:])]
    assert orders[0] != orders[1]
    assert all(sorted(order) == list(range(COUNT)) for order in orders)
    assert run(dataset, 6, num_workers=1) == run(dataset, 6, num_workers=3) == whole
    assert orders[0] == [sample for samples, _ in run(sources["npy"], 6)[:3] for sample in samples], "one plan for all"
    ranks = [run(dataset, 2, rank=rank, world_size=3) for rank in range(3)]
    joined = [[sample for one in step for sample in one[0]] for step in zip(*ranks, strict=True)]
    assert joined == [samples for samples, _ in whole]
    with dataset.loader(6, shuffle=True, seed=5, epochs=2, output="numpy", num_workers=1) as loader:
        states = [loader.state_dict() for _ in loader]
    for step, state in enumerate(states):
        assert run(dataset, 6, state)[: len(whole) - step - 1] == whole[step + 1 :], step


@pytest.mark.parametrize("name", PHOTOS)
def test_a_bad_sample_is_named_left_out_or_replaced(tmp_path: Path, name: str) -> None:
    folder = made_data.make_folder(tmp_path / "photos", PER_CLASS)
    sorted(folder.glob("*/*.jpg"))[BAD].write_bytes(b"\xff\xd8 no image")
    dataset = opened(name, PHOTOS[name](folder, tmp_path / "set"))
    with pytest.raises(feedline.DataError) as caught:
        run(dataset, 4)
    assert caught.value.record == BAD
    assert str(tmp_path) in str(caught.value)
    assert caught.value.shard and caught.value.key
    with dataset.loader(4, shuffle=True, epochs=1, output="numpy", on_error="skip") as loader:
        found = [sample for _ in loader for sample in loader.last_samples]
    assert sorted(found) == [sample for sample in range(COUNT) if sample != BAD]
    assert [error.record for error in loader.errors] == [BAD]
    with dataset.loader(4, shuffle=True, epochs=1, output="numpy", on_error="replace") as loader:
        assert sum(len(loader.last_samples) for _ in loader) == COUNT
