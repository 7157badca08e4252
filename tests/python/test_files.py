# SPDX-License-Identifier: Apache-2.0
"""feedline.files: datasets of lists of paths and labels."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy
import pytest
from range_server import serving

import feedline
from feedline.errors import ConfigError, DataError, StorageError


@pytest.fixture
def paths(folder: Path) -> list[str]:
    return [str(path) for path in sorted(folder.rglob("*.jpg"))]


@pytest.fixture
def names(paths: list[str]) -> list[str]:
    return [Path(path).parent.name for path in paths]


def batches_of(dataset: feedline.Dataset, **options: object) -> list[tuple[numpy.ndarray, ...]]:
    loader = dataset.resize((16, 16)).loader(batch_size=4, output="numpy", num_workers=2, **options)
    return [tuple(batch) for batch in loader]


def test_samples_are_those_of_the_class_folder(folder, paths, names):
    given, opened = feedline.files(paths, label=names), feedline.open(folder)
    assert given.classes == opened.classes == ["apple", "birch", "crow"]
    assert given.labels.tolist() == opened.labels.tolist()
    for one, other in zip(
        batches_of(given, shuffle=True, seed=3), batches_of(opened, shuffle=True, seed=3), strict=True
    ):
        for field, expected in zip(one, other, strict=True):
            numpy.testing.assert_array_equal(field, expected)


@pytest.mark.parametrize(
    "form",
    [
        lambda values: values,
        tuple,
        numpy.array,
        lambda values: numpy.array(values, object),
        lambda values: [Path(value) for value in values],
        lambda values: [value.encode() for value in values],
    ],
    ids=["list", "tuple", "numpy text", "numpy objects", "Path", "bytes"],
)
def test_paths_have_the_same_fingerprint_in_every_form(paths, form):
    given = feedline.files(form(paths), label=range(len(paths)))
    assert given.fingerprint == feedline.files(paths, label=list(range(len(paths)))).fingerprint
    assert given[5].label == 5


def test_every_other_row_of_a_numpy_array_is_read_in_place(paths):
    rows = numpy.array([paths, paths]).T
    labels = numpy.arange(2 * len(paths), dtype=numpy.int16)[::2]
    given = feedline.files(rows[:, 0], label=labels)
    assert given.labels.tolist() == list(range(0, 2 * len(paths), 2))
    numpy.testing.assert_array_equal(given[3].image, feedline.files(paths)[3].image)


def test_tensors_of_labels(paths):
    torch = pytest.importorskip("torch")
    count = len(paths)
    for label in ([torch.tensor(i) for i in range(count)], torch.arange(count).bfloat16(), torch.arange(count).half()):
        assert feedline.files(paths, label=label).labels.tolist() == list(range(count))


def test_further_columns_are_fields(paths):
    count = len(paths)
    boxes = [[[0, 0, 10, 10 + i]] * (i % 3) for i in range(count)]
    given = feedline.files(
        paths,
        label=[0.5] * count,
        boxes=boxes,
        age=numpy.arange(count, dtype=numpy.uint8),
        vector=numpy.ones((count, 3), numpy.float32),
        note=[f"é{i}" for i in range(count)],
    )
    sample = given[2]
    assert sample._fields == ("image", "label", "boxes", "age", "vector", "note")
    assert sample.label == 0.5
    assert sample.age == 2
    assert sample.note == "é2"
    assert sample.boxes.tolist() == [[0, 0, 10, 12]] * 2
    assert given.targets("vector").shape == (count, 3)
    assert given.targets("note")[1] == "é1"
    batch = next(iter(given.resize((8, 8)).loader(batch_size=4, output="numpy")))
    assert [len(one) for one in batch.boxes] == [0, 1, 2, 0]
    assert batch.vector.dtype == numpy.float32


def test_fields_choose_names_and_kinds(paths):
    given = feedline.files(
        paths, label=["1"] * len(paths), depth=paths, fields=("label:text", "d=depth:image", "image")
    )
    assert given[0]._fields == ("label", "d", "image")
    assert given[0].label == "1"
    with pytest.raises(ConfigError, match="there is no column 'depht'"):
        feedline.files(paths, depth=paths, fields="depht")


def test_a_mask_follows_its_image(paths, tmp_path):
    from PIL import Image

    masks = []
    for i in range(3):
        masks.append(tmp_path / f"{i}.png")
        Image.fromarray(numpy.full(Image.open(paths[i]).size[::-1], i, numpy.uint8)).save(masks[i])
    given = feedline.files(paths[:3], mask=masks).resize((9, 8))
    assert given[2].mask.shape == (9, 8)
    assert given[2].mask.max() == 2


def test_several_images_of_a_sample_are_fields(paths):
    given = feedline.files([[paths[0], paths[1]], [paths[2], paths[3]]], label=["a", "b"])
    assert given[1]._fields == ("image_0", "image_1", "label")
    numpy.testing.assert_array_equal(given[1].image_1, feedline.files(paths)[3].image)
    uneven = feedline.files([[paths[0]], [paths[2], paths[3]]]).resize((8, 8)).collate("list")
    batch = next(iter(uneven.loader(batch_size=2, output="numpy")))
    assert batch.image_1[0] is None
    assert batch.image_1[1].shape == (3, 8, 8)


def test_lists_of_different_lengths_in_two_columns(paths):
    fields = ("image", "depth=more:image")
    given = feedline.files([paths[:2], paths[2:3]], more=[paths[3:4], paths[4:6]], fields=fields)
    expected = feedline.files(paths)
    assert given[0]._fields == ("image_0", "image_1", "depth_0", "depth_1")
    numpy.testing.assert_array_equal(given[0].depth_0, expected[3].image)
    assert given[0].depth_1 is None
    numpy.testing.assert_array_equal(given[1].depth_0, expected[4].image)
    numpy.testing.assert_array_equal(given[1].depth_1, expected[5].image)


def test_pickles_and_copies_repeat_the_call(paths, names):
    labels = list(names)
    given = feedline.files(paths, label=labels, age=numpy.arange(len(paths))).resize((8, 8))
    labels[0] = "crow"
    again = pickle.loads(pickle.dumps(given))
    assert again.fingerprint == given.fingerprint
    assert again.labels.tolist() == given.labels.tolist()
    assert copy.deepcopy(given) is given
    part = pickle.loads(pickle.dumps(given.subset([4, 2])))
    numpy.testing.assert_array_equal(part[0].image, given[4].image)


def test_a_loader_resumes_and_ranks_share_the_samples(paths):
    given = feedline.files(paths, label=range(len(paths))).resize((8, 8))
    loader = given.loader(batch_size=4, shuffle=True, output="numpy")
    whole = [batch.label.tolist() for batch in loader]
    loader = given.loader(batch_size=4, shuffle=True, output="numpy")
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    loader = given.loader(batch_size=4, shuffle=True, output="numpy")
    loader.load_state_dict(state)
    assert [batch.label.tolist() for batch in loader] == whole[1:]
    seen = [
        label
        for rank in range(2)
        for batch in given.loader(batch_size=4, output="numpy", rank=rank, world_size=2, uneven="exact")
        for label in batch.label.tolist()
    ]
    assert sorted(seen) == list(range(len(paths)))


def test_cache_keeps_pixels(paths):
    cached = feedline.files(paths).resize((8, 8)).cache("memory")
    for _ in range(2):
        numpy.testing.assert_array_equal(cached[3].image, feedline.files(paths).resize((8, 8))[3].image)


def test_files_are_cached_whole_on_the_node(paths, tmp_path):
    given = feedline.files(paths, cache=tmp_path / "cache", cache_limit="1 GiB")
    numpy.testing.assert_array_equal(given[3].image, feedline.files(paths)[3].image)


def test_relative_paths_begin_at_the_root(folder, paths, monkeypatch):
    relative = [str(Path(path).relative_to(folder)) for path in paths]
    numpy.testing.assert_array_equal(feedline.files(relative, root=folder)[0].image, feedline.files(paths)[0].image)
    monkeypatch.chdir(folder)
    numpy.testing.assert_array_equal(feedline.files(relative)[0].image, feedline.files(paths)[0].image)


def test_local_paths_and_urls_may_be_mixed(paths):
    mixed = [paths[0], "file://" + paths[1], *paths[2:4]]
    given = feedline.files(mixed).resize((8, 8))
    for batch in given.loader(batch_size=4, output="numpy", num_workers=2):
        for i in range(4):
            numpy.testing.assert_array_equal(batch.image[i], feedline.files(paths).resize((8, 8))[i].image)
    assert feedline.files(mixed).inspect().findings == []


@pytest.mark.parametrize("kinds", [("http",), ("http", "local", "file")], ids=["only http", "mixed"])
def test_urls_are_read_like_files(folder, paths, tmp_path, kinds):
    with serving(folder) as server:
        forms = {
            "http": lambda path: server.url(Path(path).relative_to(folder)),
            "file": lambda path: "file://" + path,
            "local": lambda path: path,
        }
        mixed = [forms[kinds[i % len(kinds)]](path) for i, path in enumerate(paths)]
        expected = batches_of(feedline.files(paths))
        for options in ({}, {"cache": tmp_path / "cache"}):
            given = batches_of(feedline.files(mixed, **options))
            for one, other in zip(given, expected, strict=True):
                numpy.testing.assert_array_equal(one[0], other[0])
        gone = feedline.files([*mixed[:2], server.url("gone.jpg")])
        with pytest.raises(StorageError, match=r"row 2, column 'image': .*gone\.jpg"):
            gone[2]
        assert [finding.code for finding in gone.inspect().findings] == ["missing_file"]


def test_packed_samples_are_the_same(paths, names, tmp_path):
    given = feedline.files(paths, label=names, age=numpy.arange(len(paths)) / 2, note=names)
    report = given.pack(tmp_path / "packed", samples_per_shard=10)
    assert report.samples == len(paths)
    packed = feedline.open(report.pattern)
    assert packed.classes == given.classes
    assert packed.labels.tolist() == given.labels.tolist()
    numpy.testing.assert_array_equal(packed[20].image, given[20].image)
    whole = feedline.open(report.pattern, fields=("jpg", "age.npy", "note.txt"))
    assert whole[5][1:] == (2.5, "apple")


def test_a_packed_subset_has_only_its_samples(paths, tmp_path):
    report = feedline.files(paths).subset([3, 1]).pack(tmp_path / "packed")
    assert report.samples == 2
    with pytest.raises(ConfigError, match="before operations"):
        feedline.files(paths).resize(8).pack(tmp_path / "other")


def test_verify_and_inspect_find_missing_and_empty_files(paths, names, tmp_path):
    (tmp_path / "empty.jpg").write_bytes(b"")
    broken = [*paths[:3], str(tmp_path / "gone.jpg"), str(tmp_path / "empty.jpg")]
    given = feedline.files(broken, label=names[:5])
    found = {finding.code: finding for finding in given.inspect().findings}
    assert set(found) == {"missing_file", "empty_file"}
    assert "row 3, column 'image'" in found["missing_file"].text
    assert not given.verify().sound
    assert feedline.files(paths, label=names).verify(decode=True).sound


def test_duplicates_with_other_labels_are_reported(paths):
    given = feedline.files([*paths[:2], paths[0], paths[1]], label=["a", "b", "a", "c"])
    (finding,) = given.inspect().findings
    assert finding.code == "other_label"
    assert "row 3" in finding.text
    assert "row 1" in finding.text
    assert given.inspect().classes == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("row", [0, 10, 20])
def test_a_missing_file_names_row_and_path(paths, tmp_path, row):
    gone = str(tmp_path / "gone.jpg")
    given = feedline.files([*paths[:row], gone, *paths[row + 1 :]]).resize((8, 8))
    with pytest.raises(StorageError, match=rf"row {row}, column 'image': .*{gone}"):
        batches_of(given)
    assert len(batches_of(given, on_error="skip")) == 5
    with pytest.raises(StorageError, match=f"row {row}"):
        given[row]


def test_a_damaged_file_names_row_and_path(paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff text")
    with pytest.raises(DataError) as raised:
        feedline.files([paths[0], tmp_path / "bad.jpg"])[1]
    assert raised.value.record == 1
    assert raised.value.shard == str(tmp_path / "bad.jpg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": [0, 1, None]}, "row 2 of the column 'label' has no value"),
        ({"label": [0.0, float("nan"), 1.0]}, "row 1 of the column 'label' has no value"),
        ({"label": ["a", float("nan"), "b"]}, "row 1 of the column 'label' has no value"),
        ({"label": [0.0, float("inf"), 1.0]}, "row 1 of the column 'label' is inf"),
        ({"label": [3, 4, "cat"]}, r"row 2 of the column 'label' is 'cat' \(str\), but row 0 is 3 \(int\)"),
        ({"label": [1, 2]}, "'label' has 2 rows, but 'image' has 3"),
        ({"label": [2**63, 1, 2]}, "row 0 of the column 'label' is 9223372036854775808, which needs more than 64"),
        (
            {"label": numpy.array([1, 2**63, 3], numpy.uint64)},
            "row 1 of the column 'label' is 9223372036854775808, which exceeds",
        ),
        ({"age": numpy.array([2**63, 1, 1], numpy.uint64)}, "row 0 of the column 'age' is 9223372036854775808"),
        ({"label": "cat"}, "label must be a list"),
        ({"label": {1, 2, 3}}, "label is a set; pass a list, as a set has no order"),
        ({"label": {"a.jpg": 1, "b.jpg": 2, "c.jpg": 3}}, "label is a dict; pass a list of its keys or values"),
        ({"note": ["a", None, "b"]}, "row 1 of the column 'note'"),
        ({"boxes": [[[0, 0, 1, 1]], [[0, 0, 1]], []]}, "row 1 of the column 'boxes'"),
        ({"label": [1, 2, 3], "multi_label": [[], [], []]}, "not both"),
    ],
)
def test_wrong_columns_are_errors_that_name_row_column_and_value(paths, arguments, message):
    with pytest.raises(ConfigError, match=message):
        feedline.files(paths[:3], **arguments)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], "row 0 of the column 'image' is 1, which is not a path"),
        (["cat", "dog"], "row 0 of the column 'image' is 'cat', which is not the path of a file"),
        (["a.jpg", None], "row 1 of the column 'image' has no value"),
        (["a.jpg", ""], "row 1, column 'image': the path is empty; drop the row"),
        (["a.jpg", 7], r"row 1 of the column 'image' is 7 \(int\), but row 0 is 'a.jpg'"),
        ([["a.jpg"], ["b.jpg", 7]], "row 1 of the column 'image' has 7 in its list"),
        ([], "'image' has no rows"),
        ("a.jpg", "image must be a list"),
    ],
)
def test_wrong_paths_are_errors_that_name_row_and_value(given, message):
    with pytest.raises(ConfigError, match=message):
        feedline.files(given)


def test_tags_are_multi_hot(paths):
    given = feedline.files(paths[:4], multi_label=["b a", "", "c", "a  a"], separator=" ")
    assert given.classes == ["a", "b", "c"]
    expected = [[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert given.targets("label").tolist() == expected
    batch = next(iter(given.resize((8, 8)).loader(batch_size=4, output="numpy")))
    assert batch.label.dtype == numpy.float32
    assert batch.label.tolist() == expected
    lists = feedline.files(paths[:3], multi_label=[["x", "y"], [], None])
    assert lists.targets("label").tolist() == [[1, 1], [0, 0], [0, 0]]
    assert given.class_counts() == {"a": 2, "b": 1, "c": 1}
    assert given.schema["image"].shape == (3, -1, -1)
    assert given.schema["label"] == ((3,), "float32")
    assert "label float32 (3,)" in repr(given)
    assert lists.subset([0, 0, 1]).class_counts() == {"x": 2, "y": 2}
    with pytest.raises(ConfigError, match="one integer per sample"):
        lists.labels  # noqa: B018


def test_open_refers_to_files_and_table(paths):
    with pytest.raises(ConfigError, match=r"call feedline.files\(paths"):
        feedline.open(paths)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ConfigError, match=r"feedline.table\(table, image="):
        feedline.open(pandas.DataFrame({"path": paths}))


def test_a_class_that_is_too_small_for_folds_is_named(paths, names):
    with pytest.raises(ConfigError, match=r"class 0 \('apple'\) has 7 samples, too few for k_fold=8"):
        feedline.files(paths, label=names).split(k_fold=8, fold=0, by_class=True)


def test_an_unopened_column_of_a_file_is_offered(paths, tmp_path):
    (tmp_path / "t.csv").write_text("".join(["path,age\n", *(f"{path},{i}\n" for i, path in enumerate(paths))]))
    opened = feedline.open(tmp_path / "t.csv")
    for use in (
        lambda: opened.targets("age"),
        lambda: opened.split(k_fold=2, fold=0, groups="age"),
        lambda: opened.filter(lambda row: row["age"] > 3),
    ):
        with pytest.raises(ConfigError, match=r"the column 'age' \(integers\) exists .*fields=\(..., \"age:value\"\)"):
            use()
    with pytest.raises(KeyError, match="agge"):
        opened.filter(lambda row: row["agge"] > 3)
