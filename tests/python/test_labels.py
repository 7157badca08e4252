# SPDX-License-Identifier: Apache-2.0
"""Labels, targets and class counts of a dataset, without decoding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import made_annotations
import made_arrow
import made_litdata
import made_mds
import made_parquet
import numpy
import pytest

import feedline
from feedline.errors import ConfigError, DataError


def test_labels_of_class_folders_are_in_the_order_of_samples(folder: Path):
    ds = feedline.open(folder)
    assert ds.labels.dtype == numpy.int64
    assert ds.labels.tolist() == [ds[i].label for i in range(len(ds))]
    assert ds.class_counts() == {"apple": 7, "birch": 7, "crow": 7}


def test_labels_of_a_subset_are_those_of_its_samples(folder: Path):
    part = feedline.open(folder).subset([20, 0, 8])
    assert part.labels.tolist() == [2, 0, 1]
    assert part.subset([0]).class_counts() == {"apple": 0, "birch": 0, "crow": 1}


def test_targets_of_a_table_are_its_numbers(tmp_path: Path):
    (tmp_path / "t.csv").write_text("label,age\n3,40\n3,5\n-1,7\n")
    ds = feedline.open(tmp_path / "t.csv")
    assert ds.targets("age").tolist() == [40, 5, 7]
    assert ds.class_counts() == {"-1": 1, "3": 2}


def test_a_dataset_without_a_label_is_an_error_that_names_its_fields(tmp_path: Path):
    (tmp_path / "t.csv").write_text("age,height\n3,40\n")
    ds = feedline.open(tmp_path / "t.csv")
    with pytest.raises(ConfigError, match="the fields are age, height"):
        ds.labels  # noqa: B018
    with pytest.raises(ConfigError, match="no field 'weight'"):
        ds.targets("weight")


FORMATS = {
    "parquet": made_parquet.of_folder,
    "arrow": made_arrow.of_folder,
    "mds": made_mds.of_folder,
    "litdata": made_litdata.of_folder,
}


@pytest.mark.parametrize("form", FORMATS)
def test_labels_are_the_same_in_every_format(folder: Path, tmp_path: Path, form: str):
    expected = feedline.open(folder).labels.tolist()
    ds = feedline.open(FORMATS[form](folder, tmp_path / form))
    assert ds.labels.tolist() == expected
    assert list(ds.class_counts().values()) == [7, 7, 7]
    part = ds.subset([20, 0, 8])
    assert part.labels.tolist() == [expected[20], expected[0], expected[8]]
    assert feedline.mix([ds, part]).targets("label").tolist() == [*expected, 2, 0, 1]


def test_labels_of_tars_and_numbers_of_arrow_are_known_when_the_files_are_gone(folder, tars, tmp_path):
    expected = feedline.open(folder).labels.tolist()
    copies = [tmp_path / tar.name for tar in tars]
    for tar, copy in zip(tars, copies, strict=True):
        copy.write_bytes(tar.read_bytes())
    arrow = made_arrow.of_folder(folder, tmp_path / "arrow")
    opened = [feedline.open([str(copy) for copy in copies]), feedline.open(arrow)]
    for file in (*copies, *arrow.rglob("*.arrow")):
        file.unlink()
    for ds in opened:
        assert ds.labels.tolist() == expected
        assert list(ds.filter(lambda row: row["label"] == 1).labels) == [1] * 7


def test_labels_of_a_stored_index_are_those_of_the_scan(tars, tmp_path):
    for _ in ("scanned", "loaded"):
        ds = feedline.open([str(tar) for tar in tars], index=tmp_path / "index")
        assert ds.labels.tolist() == [0] * 7 + [1] * 7 + [2] * 7


def test_a_wrong_label_in_a_tar_is_an_error_of_its_sample(tmp_path):
    from made_data import write_tar

    tar = write_tar(tmp_path / "x.tar", [("a.jpg", b"x"), ("a.cls", b"1"), ("b.jpg", b"x"), ("b.cls", b"cat")])
    with pytest.raises(DataError, match=r"field 'label'.*'cat'") as raised:
        feedline.open(tar).labels  # noqa: B018
    assert raised.value.key == "b"


def test_other_members_of_a_tar_are_read_alone(tmp_path):
    from made_data import write_tar

    vector = numpy.arange(3, dtype=numpy.float32)
    numpy.save(tmp_path / "v.npy", vector)
    stored = (tmp_path / "v.npy").read_bytes()
    tar = write_tar(tmp_path / "x.tar", [("a.txt", b"one"), ("a.npy", stored), ("b.txt", b"two"), ("b.npy", stored)])
    ds = feedline.open(tar, fields=("txt", "npy"))
    assert ds.targets("txt") == ["one", "two"]
    numpy.testing.assert_array_equal(ds.targets("npy"), numpy.stack([vector, vector]))


@pytest.mark.parametrize("form", ["coco", "voc", "yolo"])
def test_labels_of_annotations_need_no_images(tmp_path: Path, form: str):
    source = getattr(made_annotations, form)(tmp_path)
    ds = feedline.open(source)
    boxes = [ds[i].boxes.tolist() for i in range(len(ds))]
    expected = [ds[i].labels.tolist() for i in range(len(ds))]
    for image in tmp_path.rglob("*.jpg"):
        image.unlink()
    labels = ds.labels
    assert [one.tolist() for one in labels] == expected
    assert all(one.dtype == numpy.int64 for one in labels)
    names = Counter(ds.classes[label] for one in expected for label in one)
    assert names.total() == sum(map(len, boxes)) > 10
    assert ds.class_counts() == {name: names[name] for name in ds.classes}
    if form != "yolo":  # whose boxes are fractions of the image's size
        assert [one.tolist() for one in ds.targets("boxes")] == boxes


def test_arrays_of_other_shapes_are_a_list(folder: Path):
    paths = sorted(str(path) for path in folder.rglob("*.jpg"))[:3]
    boxes = [[[0, 0, 1, 1]], [], [[1, 1, 2, 2], [0, 0, 3, 3]]]
    ds = feedline.files(paths, boxes=boxes, point=numpy.arange(6.0).reshape(3, 2))
    assert [one.tolist() for one in ds.targets("boxes")] == boxes
    assert ds.targets("point").tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ConfigError, match="field 'image' is of kind 'image'"):
        ds.targets("image")


def test_a_label_without_a_class_name_names_its_sample(tmp_path: Path):
    from made_data import write_tar

    members = [("__classes__", b"cat\ndog"), ("a.jpg", b"x"), ("a.cls", b"1"), ("b.jpg", b"x"), ("b.cls", b"2")]
    ds = feedline.open(write_tar(tmp_path / "x.tar", members))
    assert ds.classes == ["cat", "dog"]
    with pytest.raises(ConfigError, match="sample 1 has the label 2, but the dataset has 2 classes"):
        ds.class_counts()


def test_arrays_in_memory_have_targets():
    x, y = numpy.arange(6, dtype=numpy.float32).reshape(3, 2), numpy.arange(3, dtype=numpy.int32)
    ragged = feedline.ragged(numpy.arange(6), lengths=[1, 2, 3])
    even, uneven = feedline.arrays(x=x, y=y), feedline.arrays(x=ragged, label=y)
    numpy.testing.assert_array_equal(even.targets("x"), x)
    assert even.targets("y").dtype == numpy.int64
    assert [one.tolist() for one in uneven.targets("x")] == [[0], [1, 2], [3, 4, 5]]
    assert uneven.class_counts() == {"0": 1, "1": 1, "2": 1}
