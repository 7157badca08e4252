# SPDX-License-Identifier: Apache-2.0
"""Split and subset for every kind of source: exact, disjoint, complete, and resumable."""

from __future__ import annotations

import json
from collections import Counter
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
from conftest import training
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline

PHOTOS = ("folder", "tar", "tfrecord", "lmdb", "arrow", "parquet", "mds", "litdata")
OTHERS = ("coco", "arrays", "image arrays", "ragged", "tokens", "documents")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, feedline.Dataset]:
    root = tmp_path_factory.mktemp("split")
    folder = made_data.make_folder(root / "folder", per_class=11)
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 40, 60)
    ragged = feedline.ragged(rng.normal(size=(int(lengths.sum()), 2)).astype(np.float32), lengths=lengths)
    text = rng.integers(1, 500, 1500, dtype=np.uint16)
    text[rng.integers(0, 1500, 80)] = 0
    text.tofile(root / "text.bin")
    images = rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    return {
        "folder": training(feedline.open(folder), 8),
        "tar": training(feedline.open(made_data.make_tars(folder, root / "tars", shards=4)), 8),
        "tfrecord": training(feedline.open(made_tfrecords.of_folder(folder, root / "records", shards=4)), 8),
        "lmdb": training(feedline.open(made_lmdb.of_folder(folder, root / "lmdb")), 8),
        "arrow": training(feedline.open(made_arrow.of_folder(folder, root / "arrow", shards=4)), 8),
        "parquet": training(feedline.open(made_parquet.of_folder(folder, root / "parquet", shards=4)), 8),
        "mds": training(feedline.open(made_mds.of_folder(folder, root / "mds", shards=4)), 8),
        "litdata": training(feedline.open(made_litdata.of_folder(folder, root / "litdata", chunks=4)), 8),
        "coco": feedline.open(made_annotations.coco(root / "coco", 33)).resize((8, 8)),
        "arrays": feedline.arrays(x=rng.normal(size=(101, 5)), y=np.arange(101) % 3),
        "image arrays": feedline.arrays(image=images, label=np.arange(40) % 4, fields=["image:image"]).resize((8, 8)),
        "ragged": feedline.arrays(x=ragged, y=np.arange(60)),
        "tokens": feedline.tokens(root / "text.bin", window=16, dtype="uint16"),
        "documents": feedline.tokens(root / "text.bin", window=16, dtype="uint16", separator=0, documents="apart"),
    }


def content(dataset: feedline.Dataset, index: int) -> bytes:
    """Returns the stored data of a sample: for photos, the file, which no random operation changes."""
    if any("crop" in operation for operation in dataset.operations):
        return dataset.encoded(index)
    return b"".join(
        np.asarray(value, object if isinstance(value, str | list | dict) else None).tobytes()
        if not isinstance(value, str | list | dict)
        else repr(value).encode()
        for value in dataset[index]
    )


def contents(dataset: feedline.Dataset) -> list[bytes]:
    return [content(dataset, i) for i in range(len(dataset))]


def labels_of(dataset: feedline.Dataset) -> list[int]:
    with dataset.loader(8, epochs=1, output="numpy") as loader:
        return [int(label) for batch in loader for label in batch[1]]


def rows(loader: feedline.Loader) -> list[bytes]:
    """Returns all fields, batch by batch."""
    return [
        repr([np.asarray(v).tobytes() if not isinstance(v, list) else v for v in batch]).encode() for batch in loader
    ]


@pytest.mark.parametrize("name", [*PHOTOS, *OTHERS])
def test_every_sample_is_in_one_part(sources: dict[str, feedline.Dataset], name: str) -> None:
    whole = sources[name]
    parts = whole.split(0.5, 0.3, 0.2, seed=4)
    assert [len(part) for part in parts] == np.diff(np.rint(np.cumsum([0, 0.5, 0.3, 0.2]) * len(whole))).tolist()
    held = [contents(part) for part in parts]
    assert Counter(data for part in held for data in part) == Counter(contents(whole))
    assert parts[0].operations == whole.operations and parts[0].classes == whole.classes
    assert (parts[0].format, parts[0].schema) == (whole.format, whole.schema)
    order = {data: i for i, data in enumerate(contents(whole))}
    if len(order) == len(whole):  # in the order of the whole dataset
        assert all(list(map(order.__getitem__, part)) == sorted(map(order.__getitem__, part)) for part in held)


@pytest.mark.parametrize("name", [*PHOTOS, *OTHERS])
def test_a_part_loads_and_continues_where_it_was(sources: dict[str, feedline.Dataset], name: str) -> None:
    train, _ = sources[name].split(0.7, seed=2)
    options: dict[str, Any] = {"shuffle": True, "seed": 5, "output": "numpy", "epochs": 1}
    with train.loader(4, num_workers=2, **options) as loader:
        seen = Counter[int]()
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
            seen.update(loader.last_samples)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = []
        for batch in iterator:
            rest.append(repr([np.asarray(v).tobytes() if not isinstance(v, list) else v for v in batch]).encode())
            seen.update(loader.last_samples)
    assert seen == Counter(range(len(train)))
    again, valid = sources[name].split(0.7, seed=2)
    assert again.fingerprint == train.fingerprint != valid.fingerprint
    with again.loader(4, num_workers=1, **options) as loader:
        loader.load_state_dict(state)
        assert rows(loader) == rest
    for other in (sources[name], sources[name].split(0.7, seed=3)[0]):
        with other.loader(4, **options) as loader, pytest.raises(feedline.ConfigError, match="another dataset"):
            loader.load_state_dict(state)


@pytest.mark.parametrize("name", [*PHOTOS, "arrays", "image arrays"])
def test_classes_keep_their_share(sources: dict[str, feedline.Dataset], name: str) -> None:
    whole = sources[name]
    labels = labels_of(whole)
    for classes in (True, whole[0]._fields[1], labels, np.array(labels)):
        train, valid = whole.split(0.75, seed=1, by_class=classes)
        assert len(train) == round(0.75 * len(whole)) and len(train) + len(valid) == len(whole)
        for label, size in Counter(labels).items():
            assert abs(labels_of(valid).count(label) - size / 4) <= 1


def test_shards_of_a_part(sources: dict[str, feedline.Dataset]) -> None:
    """With shuffling by shards, a part reads the shards that contain its samples, one after the other."""
    part = sources["tar"].subset([0, 1, 2, 3, 30, 31])
    with part.loader(1, shuffle="shards", shuffle_window=1, epochs=1, output="numpy") as loader:
        order = [loader.last_samples[0] for _ in loader]
        assert "2 shards" in loader.explain()
    assert sorted(order) == list(range(6))
    assert {tuple(sorted(order[:2])), tuple(sorted(order[-2:]))} & {(4, 5)}, "the samples of a shard come together"
    assert "a subset of 33 samples" in part.explain()


def test_subsets(sources: dict[str, feedline.Dataset]) -> None:
    whole = sources["arrays"]
    assert [list(s.x) for s in whole.subset([5, -1, 5])] == [list(whole[i].x) for i in (5, 100, 5)]
    mask = np.arange(101) % 10 == 0
    assert contents(whole.subset(mask)) == [content(whole, i) for i in range(0, 101, 10)]
    again = whole.subset(range(50, 101)).subset(np.arange(3))
    assert contents(again) == [content(whole, i) for i in (50, 51, 52)]
    photos = sources["folder"].subset([12, 4])
    assert [photos.key(i) for i in range(2)] == [sources["folder"].key(i) for i in (12, 4)]
    assert photos.subset([0]).fingerprint != photos.subset([1]).fingerprint


@pytest.mark.parametrize("batch_size", [63, 64, 65, 500])
def test_rows_of_large_batches_are_each_where_they_belong(batch_size: int) -> None:
    """Many rows at a time are copied to the batch."""
    whole = feedline.arrays(x=np.arange(3000).reshape(1000, 3), y=np.arange(1000, dtype=np.int32))
    part = whole.subset(range(999, -1, -2))
    with part.loader(batch_size, epochs=1, num_workers=2, output="numpy") as loader:
        x, y = (np.concatenate(field) for field in zip(*loader, strict=True))
    assert y.tolist() == list(range(999, -1, -2)) and (x == y[:, None] * 3 + np.arange(3)).all()


def test_parts_go_into_a_mixture_a_cache_and_views(sources: dict[str, feedline.Dataset]) -> None:
    train, valid = sources["folder"].split(20, 13)
    mixed = feedline.mix([train, valid], [1, 1])
    assert sorted(mixed.key(i) for i in range(33)) == sorted(sources["folder"].key(i) for i in range(33))
    plain = feedline.open(sources["folder"].source).resize((8, 8))
    part = plain.split(0.5)[1]
    assert [image.tobytes() for image, _ in part.cache()] == [image.tobytes() for image, _ in part]
    viewed = plain.five_crop(4).split(0.5)[1]
    assert viewed[0].image.shape == (5, 3, 4, 4)
    mapped = plain.map(lambda image: image[:1], "image").split(0.5)[1]
    assert mapped[0].image.shape == (1, 8, 8)


def test_a_bad_sample_of_a_part_is_named(tmp_path: Path) -> None:
    root = made_data.make_folder(tmp_path / "bad")
    (root / "birch" / "003.jpg").write_bytes(b"not an image")
    parts = training(feedline.open(root), 8).split(0.5, seed=1)
    bad = []
    for part in parts:
        with part.loader(4, on_error="skip", epochs=1, output="numpy") as loader:
            assert sum(len(batch.label) for batch in loader) == len(part) - len(loader.errors)
            bad += loader.errors
    assert [(error.key, error.record) for error in bad] == [("birch/003.jpg", 10)], "its index in the whole dataset"


def test_a_record_counts_in_what_was_opened(tmp_path: Path) -> None:
    """Also in subsets of subsets and in mixtures of them; the error of a loader says how to continue."""
    root = made_data.make_folder(tmp_path / "bad")
    (root / "birch" / "003.jpg").write_bytes(b"not an image")
    whole = feedline.open(root)
    part = training(whole.subset([2, 10, 5, 1]).subset([3, 1]), 8)
    with part.loader(2, output="numpy") as loader:
        with pytest.raises(feedline.DataError, match=r'on_error="skip" skips such samples') as caught:
            next(iter(loader))
        assert caught.value.record == 10 and loader.errors[0].record == 10
    with pytest.raises(feedline.DataError) as caught:
        part[1]
    assert caught.value.record == 10 and "on_error" not in str(caught.value)
    mixed = training(feedline.mix([whole.subset([0, 1]), whole.subset([10])]), 8)
    with mixed.loader(1, epochs=1, on_error="skip", output="numpy") as loader:
        for _ in loader:
            pass
        assert {error.record for error in loader.errors} == {2}, "in the mixture"


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=5), st.integers(10, 400), st.integers(0, 2**64 - 1))
@settings(max_examples=40, deadline=None)
def test_fractions_of_any_dataset(weights: list[float], size: int, seed: int) -> None:
    shares = [weight / sum(weights) for weight in weights]
    dataset = feedline.arrays(x=np.arange(size))
    if len(shares) == 1 or min(shares) * size < 1:
        return
    parts = dataset.split(*shares, seed=seed)
    assert sorted(int(sample[0]) for part in parts for sample in part) == list(range(size))
    assert all(abs(len(part) - share * size) <= 1 for part, share in zip(parts, shares, strict=True))


WRITTEN_DOWN = [2, 5, 6, 11, 19, 22]


def test_the_same_seed_gives_the_same_parts_for_ever() -> None:
    """The results are stored here, because a later split must find the same samples."""
    valid = feedline.arrays(x=np.arange(30)).split(0.8, seed=0)[1]
    assert [int(sample.x) for sample in valid] == WRITTEN_DOWN


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: d.split(), "pass the sizes"),
        (lambda d: d.split(1.5), "between 0 and 1"),
        (lambda d: d.split(0.0), "between 0 and 1"),
        (lambda d: d.split(0.5, 0.4), "sum to 0.9"),
        (lambda d: d.split(5, 0.4), "pass only one of the two forms"),
        (lambda d: d.split(5, 5), "10 samples in total, but the dataset has 20"),
        (lambda d: d.split(20), "a part cannot have 0 samples"),
        (lambda d: d.split(21), "from 1 to 20"),
        (lambda d: d.split(0.001), "of 20 samples is an empty part"),
        (lambda d: d.split("0.9"), "finite number"),
        (lambda d: d.split(0.9, seed=-1), "seed"),
        (lambda d: d.split(0.9, by_class="z"), "no field 'z'"),
        (lambda d: d.split(0.9, by_class=[1, 2]), "2 classes were given for 20"),
        (lambda d: d.split(0.9, by_class=[]), "by_class is empty"),
        (lambda d: d.split(0.9, by_class=3), "by_class must be"),
        (lambda d: d.split(0.9, by_class=[0.5] * 20), "must be an integer"),
        (lambda d: feedline.arrays(a=np.zeros(9)).split(0.5, by_class=True), "the fields are a; pass by_class=NAME"),
        (lambda d: feedline.arrays(y=np.zeros(9)).split(0.5, by_class=True), "has no integer in sample 0"),
        (lambda d: feedline.mix([d, d]).split(0.5), "mixture"),
        (lambda d: feedline.mix([d, d]).subset([0]), "mixture"),
        (lambda d: d.subset([]), "no sample"),
        (lambda d: d.subset([20]), "sample 20 is out of range"),
        (lambda d: d.subset([-21]), "out of range"),
        (lambda d: d.subset([1.5]), "must be an integer"),
        (lambda d: d.subset("12"), "must be integers"),
        (lambda d: d.subset([True, False]), "2 booleans"),
    ],
)
def test_wrong_parts(call: Any, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        call(feedline.arrays(x=np.arange(20), y=np.arange(20)))


def test_a_cache_is_of_the_whole(sources: dict[str, feedline.Dataset]) -> None:
    cached = feedline.open(sources["folder"].source).resize((8, 8)).cache()
    for call in (lambda: cached.split(0.5), lambda: cached.subset([0])):
        with pytest.raises(feedline.ConfigError, match="cache"):
            call()
