# SPDX-License-Identifier: Apache-2.0
"""User functions on samples: their arguments and results, which are the same for any threads, processes and resumes."""

from __future__ import annotations

import gc
import json
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mapped
import numpy as np
import pytest
from made_fields import EXTENSIONS, image_of, make_tar, mask_of, sample
from running_processes import until

import feedline

COUNT = 23
WAYS = {"threads": {}, "processes": {"processes": 2}}


@pytest.fixture(scope="module")
def files() -> list[dict[str, bytes]]:
    return [sample(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def tar(files: list[dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tar(tmp_path_factory.mktemp("map") / "x.tar", files)


@pytest.fixture
def fields(tar: Path) -> feedline.Dataset:
    return feedline.open(tar, fields=EXTENSIONS).center_crop(40)


@pytest.fixture
def pairs(tar: Path) -> feedline.Dataset:
    return feedline.open(tar, fields=("left.jpg", "cls")).center_crop(40)


@pytest.fixture
def labels(tar: Path) -> feedline.Dataset:
    """The labels are 0, 1, 2, 3, 4, repeated, which tests rely on; key "0003" is the first sample with 3."""
    return feedline.open(tar, fields=("cls",))


def plain(value: Any) -> Any:
    """Returns samples with arrays as bytes, so that two can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def batches(data: feedline.Dataset, size: int = 4, **options: Any) -> list[Any]:
    with data.loader(size, output="numpy", **options) as loader:
        return [plain(batch) for batch in loader]


# ---- arguments and results ----


def test_one_field_in_its_place(pairs: feedline.Dataset, files: list[dict[str, bytes]]) -> None:
    data = pairs.map(mapped.flipped, "left.jpg")
    assert list(data.schema) == ["left.jpg", "cls"]
    assert data.schema["left.jpg"] == ((3, 40, 40), "uint8")
    with data.loader(4, output="numpy") as loader:
        rows = [(image, label) for batch in loader for image, label in zip(*batch, strict=True)]
    assert len(rows) == COUNT
    for (image, label), stored in zip(rows, files, strict=True):
        expected = image_of(stored["left.jpg"]).transpose(2, 0, 1)[:, 4:44, 10:50][:, :, ::-1]
        assert np.array_equal(image, expected)
        assert label == int(stored["cls"])


def test_several_fields(pairs: feedline.Dataset, files: list[dict[str, bytes]]) -> None:
    data = pairs.map(lambda label, image: (label * 10, image[0, 0, :label]), ("cls", "left.jpg"))
    data = data.collate("list", fields="left.jpg")
    for i, stored in enumerate(files):
        image, label = data[i]
        assert label == 10 * int(stored["cls"])
        assert np.array_equal(image, image_of(stored["left.jpg"])[4, 10 : 10 + int(stored["cls"]), 0])


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_sample(fields: feedline.Dataset, files: list[dict[str, bytes]], way: str) -> None:
    data = fields.map(mapped.rebuilt, **WAYS[way]).collate("list", fields=["boxes"])
    names = ["picture", "sum", "mean", "big", "boxes", "about", "text", "raw", "half"]
    assert list(data.schema) == names
    dtypes = [data.schema[name].dtype for name in names]
    assert dtypes == ["uint8", "int64", "float64", "bool", "float32", "uint8", "uint8", "uint8", "float16"]
    assert [data.schema[name].kind for name in names[5:8]] == ["json", "text", "bytes"]
    with data.loader(4, output="numpy", num_workers=2) as loader:
        rows = [row for batch in loader for row in zip(*batch, strict=True)]
    for row, stored in zip(rows, files, strict=True):
        picture, total, mean, big, boxes, about, text, raw, half = row
        caption, label = stored["txt"].decode(), int(stored["cls"])
        assert np.array_equal(picture, image_of(stored["left.jpg"]).transpose(2, 0, 1)[:, 4:44:2, 10:50:2])
        assert total == mask_of(stored)[4:44, 10:50].sum()
        assert mean == image_of(stored["right.jpg"])[4:44, 10:50].mean()
        assert big == (label > 2) and half == label
        assert about == {"name": "grüß dich", "words": caption.split(), "n": len(boxes)}
        assert (text, raw) == (caption.upper(), stored["txt"])


def test_values_come_as_those_of_one_sample(fields: feedline.Dataset) -> None:
    expected = {
        "left.jpg": "uint8(3, 40, 40) writable",
        "right.jpg": "uint8(3, 40, 40) writable",
        "mask.png": "uint8(40, 40) writable",
        "boxes.npy": "float32(0, 4) writable",
        "json": "dict",
        "txt": "str",
        "cls": "int",
    }
    data = fields.map(mapped.kinds)
    assert data[0]._asdict() == {name.replace(".", "_"): kind for name, kind in expected.items()}
    with fields.map(mapped.kinds, processes=1).loader(1, output="numpy") as loader:
        assert [value for (value,) in next(iter(loader))] == list(expected.values())


def test_images_of_any_size_and_the_loaders_dtype_and_layout(tar: Path) -> None:
    data = feedline.open(tar, fields=("left.jpg", "cls")).map(
        lambda image: str(image.shape + (image.dtype,)), "left.jpg"
    )
    assert data[0].left_jpg == "(3, 48, 60, dtype('uint8'))"
    with data.loader(1, dtype="float16", layout="NHWC", output="numpy") as loader:
        assert next(iter(loader)).left_jpg == ["(48, 60, 3, dtype('float16'))"]


def test_maps_run_one_after_the_other_and_hand_on_what_they_like(pairs: feedline.Dataset) -> None:
    seen = []
    data = pairs.map(lambda label: {label}, "cls").map(lambda found: seen.append(found) or max(found) + 1, "cls")
    data = data.map(lambda sample: {"n": sample["cls"], "mean": sample["left.jpg"].mean()}).map(lambda n: -n, "n")
    assert [data[i].n for i in range(6)] == [-1, -2, -3, -4, -5, -1]
    assert seen[0] == {0}


def test_operations_on_other_fields_continue_after_it(fields: feedline.Dataset) -> None:
    """Operations draw the same values as without the map."""
    bare = feedline.open(fields.source, fields=EXTENSIONS).collate("list", fields="boxes.npy")
    with_map = bare.map(str.upper, "txt").random_crop(24).random_horizontal_flip()
    without = bare.random_crop(24).random_horizontal_flip()
    for i in range(5):
        one, other = with_map.sample(i, seed=4, epoch=2), without.sample(i, seed=4, epoch=2)
        assert plain(one[:3]) == plain(other[:3])
        assert one.txt == other.txt.upper()


def test_arrays_too() -> None:
    x = np.arange(60, dtype=np.float32).reshape(20, 3)
    data = feedline.arrays(x=x, y=np.arange(20)).map(lambda row, y: (row[:2] * y, y), ("x", "y"))
    with data.loader(6, num_workers=2, output="numpy") as loader:
        got = np.concatenate([batch.x for batch in loader])
    assert np.array_equal(got, x[:, :2] * np.arange(20)[:, None])


def test_what_torch_and_pillow_give(pairs: feedline.Dataset) -> None:
    torch = pytest.importorskip("torch")
    from PIL import Image

    data = pairs.map(lambda image: torch.from_numpy(image).float().mean((1, 2)), "left.jpg")
    assert data[0].left_jpg.dtype == np.float32 and data[0].left_jpg.shape == (3,)
    data = pairs.map(lambda image: Image.fromarray(image.transpose(1, 2, 0)).resize((5, 6)), "left.jpg")
    assert data.schema["left.jpg"] == ((6, 5, 3), "uint8")


def test_none_is_for_lists(labels: feedline.Dataset) -> None:
    data = labels.map(lambda label: str(label) if label != 3 else None, "cls")
    assert [row for batch in batches(data) for row in batch[0]][:5] == ["0", "1", "2", None, "4"]
    with pytest.raises(feedline.DataError, match="None, which only a list"):
        batches(labels.map(lambda label: label if label != 3 else None, "cls"))


def test_collate_is_for_what_the_function_gives(pairs: feedline.Dataset) -> None:
    data = pairs.map(lambda image, label: (image[:, 0, 0], np.arange(label)), ("left.jpg", "cls"))
    with pytest.raises(feedline.DataError, match="collate"):
        batches(data)
    padded = data.collate("pad", fields="cls")
    assert list(padded.schema) == ["left.jpg", "cls"] and padded.schema["cls"].form == "pad"
    with padded.loader(5, output="numpy") as loader:
        batch = next(iter(loader))
    assert batch.cls_length.tolist() == [0, 1, 2, 3, 4] and batch.cls[4].tolist() == [0, 1, 2, 3]
    listed = data.collate("list")
    with listed.loader(5, output="numpy") as loader:
        assert [row.tolist() for row in next(iter(loader)).cls] == [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    with pytest.raises(feedline.ConfigError, match="no field 'nothing'"):
        batches(data.collate("list", fields="nothing"))
    with pytest.raises(feedline.ConfigError, match="do not support this form"):
        batches(pairs.map(str, "cls").collate("stack", fields="cls"))


def test_what_was_handed_out_stays_as_it_is(pairs: feedline.Dataset) -> None:
    """The engine reuses memory, but not memory that a function has kept."""
    images: list[tuple[np.ndarray, bytes]] = []

    def keep(image: np.ndarray) -> np.ndarray:
        images.append((image, image.tobytes()))
        return image

    data = pairs.map(keep, "left.jpg")
    got = batches(data, num_workers=2)
    assert all(image.tobytes() == then for image, then in images)
    assert plain(batches(pairs)) == plain(got)


# ---- exactness ----


def seeded(data: feedline.Dataset, **options: Any) -> feedline.Dataset:
    return data.random_crop(32).map(mapped.noisy, ("left.jpg", "cls"), seeded=True, **options)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_batches_on_any_threads(pairs: feedline.Dataset, way: str) -> None:
    options = {"shuffle": True, "seed": 5}
    expected = batches(seeded(pairs), num_workers=1, **options)
    assert expected != batches(seeded(pairs), num_workers=1, shuffle=True, seed=6)
    for threads in (2, 3, 8):
        assert batches(seeded(pairs, **WAYS[way]), num_workers=threads, **options) == expected


def test_random_numbers_follow_from_epoch_and_place(pairs: feedline.Dataset) -> None:
    """Random numbers differ between epochs and between maps, and are otherwise the same; ds.sample() has the
    loader's.
    """
    draw: Callable[..., float] = lambda label, *, rng: rng.random()  # noqa: E731
    data = pairs.map(lambda sample: {"a": 0, "b": 0}).map(draw, "a", seeded=True).map(draw, "b", seeded=True)
    with data.loader(COUNT, output="numpy", seed=3) as loader:
        first, second = next(iter(loader)), next(iter(loader))
    everything = np.concatenate([*first, *second])
    assert len(set(everything.tolist())) == 4 * COUNT
    for i in range(3):
        assert tuple(data.sample(i, seed=3, epoch=1)) == (second.a[i], second.b[i])


@pytest.mark.parametrize("way", WAYS)
def test_resume_at_every_step(pairs: feedline.Dataset, way: str) -> None:
    data = seeded(pairs, **WAYS[way])
    options = {"output": "numpy", "shuffle": True, "seed": 2, "num_workers": 2}
    with data.loader(4, **options) as loader:
        states, expected = [loader.state_dict()], []
        for _ in range(2):
            for batch in loader:
                expected.append(plain(batch))
                states.append(loader.state_dict())
    for step in range(0, len(expected), 4 if way == "processes" else 1):
        with data.loader(4, **options) as loader:
            loader.load_state_dict(json.loads(json.dumps(states[step])))
            rest = [plain(batch) for batch in loader]
        assert rest and rest == expected[step : step + len(rest)]


def test_ranks_share_the_same_samples(pairs: feedline.Dataset) -> None:
    options = {"shuffle": True, "seed": 1, "num_workers": 2, "drop_last": True}
    whole = batches(seeded(pairs), 6, **options)
    parts = [batches(seeded(pairs), 2, rank=rank, world_size=3, **options) for rank in range(3)]
    assert len(whole) == len(parts[0]) == 3
    for batch, *of_ranks in zip(whole, *parts, strict=True):
        assert b"".join(part[0][2] for part in of_ranks) == batch[0][2]


# ---- errors ----


@pytest.mark.parametrize("way", WAYS)
def test_what_it_raises_is_that_samples_error(labels: feedline.Dataset, way: str) -> None:
    data = labels.map(mapped.wrong_where_three, "cls", **WAYS[way])
    with data.loader(4, output="numpy", num_workers=2) as loader:
        iterator = iter(loader)
        with pytest.raises(feedline.DataError) as caught:
            next(iterator)
        assert next(iterator).cls.tolist() == [4, 0, 1, 2]
    error = caught.value
    assert error.dataset == labels.source and error.key == "0003" and error.record == 3 and error.stage == "map"
    assert (
        "'cls'" in str(error) and "wrong_where_three" in str(error) and "LookupError: three is no label" in str(error)
    )
    assert type(error.__cause__) is LookupError
    import traceback

    assert 'raise LookupError("three is no label")' in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_are_skipped_or_replaced(labels: feedline.Dataset, policy: str, way: str) -> None:
    data = labels.map(mapped.wrong_where_three, "cls", **WAYS[way])

    def run(threads: int) -> tuple[list[Any], list[Any]]:
        with data.loader(4, output="numpy", num_workers=threads, on_error=policy, shuffle=True) as loader:
            return [plain(batch) for batch in loader], loader.errors

    (expected, errors), again = run(1), run(3)
    assert expected == again[0]
    assert {error.record for error in errors} == set(range(3, COUNT, 5))
    assert all(error.stage == "map" and error.action == policy for error in errors)


def test_errors_keep_nothing_that_the_function_had(labels: feedline.Dataset) -> None:
    class Large:
        pass

    alive: list[weakref.ref[Large]] = []

    def fails(label: int) -> int:
        large = Large()
        alive.append(weakref.ref(large))
        if label:
            raise ValueError("no")
        return label

    with labels.map(fails, "cls").loader(4, output="numpy", on_error="skip", num_workers=1) as loader:
        assert sum(len(batch.cls) for batch in loader) == 5
        assert len(loader.errors) == 18
        gc.collect()
        assert [one() for one in alive if one() is not None] == []


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda label: label if label < 3 else float(label), "float64.* of the first sample is int64"),
        (lambda label: np.zeros(2 + (label > 2)), r"float64\(3,\), but all must be float64\(2,\); collate"),
        (lambda label: label if label < 3 else "three", "a different type"),
        (lambda label: label if label < 3 else object(), "an object is not an array"),
        (lambda label: label if label < 3 else {1: object()}, "must be valid JSON"),
        (lambda label: label if label < 3 else 2**63, "64 bits"),
        (lambda label: label if label < 3 else np.array(["x"], object), "dtype object"),
    ],
)
def test_what_does_not_fit_the_first_sample(labels: feedline.Dataset, function: Any, words: str) -> None:
    with pytest.raises(feedline.DataError, match=words) as caught:
        batches(labels.map(function, "cls"), num_workers=1)
    assert caught.value.key == "0003" and caught.value.stage == "map"


@pytest.mark.parametrize(
    ("function", "fields", "words"),
    [
        (lambda sample: [1], None, "dict of fields"),
        (lambda sample: {1: 2}, None, "dict of fields"),
        (lambda image, label: 1, ("left.jpg", "cls"), "2 values"),
        (lambda image, label: (1, 2, 3), ("left.jpg", "cls"), "2 values.* not 3 of them"),
        (lambda: 1, "cls", "TypeError"),
    ],
)
def test_what_never_fits_is_reported_before_the_first_batch(
    pairs: feedline.Dataset, function: Any, fields: Any, words: str
) -> None:
    with pytest.raises(feedline.DataError, match=words):
        pairs.map(function, fields).loader(2)


def test_other_fields_than_the_first_samples(labels: feedline.Dataset) -> None:
    for extra, words in (({"b": 1}, "a field 'b', which"), ({}, "did not return the field 'a'")):
        function = lambda sample, extra=extra: {"a": 1} if sample["cls"] < 3 else extra  # noqa: E731
        with pytest.raises(feedline.DataError, match=words):
            batches(labels.map(function))
    swapped = labels.map(lambda sample: dict(sorted({"a": 1, "b": 2}.items(), reverse=sample["cls"] > 2)))
    assert batches(swapped, COUNT)[0] == plain([np.full(COUNT, 1), np.full(COUNT, 2)])


def test_the_first_sound_sample_sets_the_type(labels: feedline.Dataset) -> None:
    def late(label: int) -> int:
        if label < 3:
            raise ValueError("early")
        return label

    with labels.map(late, "cls").loader(4, output="numpy", on_error="skip") as loader:
        assert {label for batch in loader for label in batch.cls.tolist()} == {3, 4}


# ---- arguments, messages, related functions ----


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: d.map(3), "fn must be a function"),
        (lambda d: d.map(str, "nothing"), "no field 'nothing'; the fields are left.jpg, cls"),
        (lambda d: d.map(str, ("cls", "cls")), "twice"),
        (lambda d: d.map(str, 7), "list of field names"),
        (lambda d: d.map(str, "cls", processes=-1), "processes must be from 0"),
        (lambda d: d.map(str, "cls", seeded=1), "seeded must be True or False"),
        (lambda d: d.map(lambda label: label, "cls", processes=2), "is not.*def at module level"),
        (
            lambda d: d.map(mapped.flipped, "left.jpg").random_horizontal_flip(),
            "'left.jpg' is an argument of an earlier map",
        ),
        (lambda d: d.map(mapped.flipped, "left.jpg").normalize((0.5,), (0.5,), fields="left.jpg"), "before map"),
        (lambda d: d.map(dict).center_crop(3), "'left.jpg' is an argument of an earlier map"),
        (lambda d: d.map(str, "cls").cache(), "place cache before map"),
        (lambda d: feedline.mix([d.map(str, "cls"), d]), "a map; map the mixture"),
    ],
)
def test_what_cannot_be_is_refused_at_the_call(pairs: feedline.Dataset, make: Any, words: str) -> None:
    with pytest.raises(feedline.ConfigError, match=words):
        make(pairs)


def test_a_field_that_the_map_before_does_not_give(pairs: feedline.Dataset) -> None:
    with pytest.raises(feedline.ConfigError, match="field 'cls' does not exist; the fields are a"):
        _ = pairs.map(lambda sample: {"a": 1}).map(str, "cls").schema


def test_samples_of_different_lengths_are_refused() -> None:
    data = feedline.arrays(x=feedline.ragged(np.arange(6), [1, 2, 3]))
    with pytest.raises(feedline.ConfigError, match="different lengths"):
        data.map(str, "x")


def test_a_cache_before_it_keeps_what_precedes_it(tar: Path) -> None:
    data = feedline.open(tar, fields=("left.jpg", "cls"))
    cached = data.resize((20, 20)).cache().random_horizontal_flip().map(mapped.flipped, "left.jpg")
    without = data.resize((20, 20)).random_horizontal_flip().map(mapped.flipped, "left.jpg")
    with (
        cached.loader(4, output="numpy", shuffle=True) as one,
        without.loader(4, output="numpy", shuffle=True) as other,
    ):
        for _ in range(2):
            assert [plain(batch) for batch in one] == [plain(batch) for batch in other]
        assert one.stats()["cache"]["present"] == COUNT


def test_a_mixture_may_be_mapped(pairs: feedline.Dataset) -> None:
    mixed = feedline.mix([pairs, pairs], weights=[2, 1]).map(mapped.noisy, ("left.jpg", "cls"), seeded=True)
    assert batches(mixed, num_workers=1, shuffle=True) == batches(mixed, num_workers=3, shuffle=True)


def test_it_reports_what_runs_and_where(pairs: feedline.Dataset) -> None:
    data = pairs.map(mapped.flipped, "left.jpg").map(mapped.plain, "cls", processes=2)
    assert data.operations[-2:] == ["map(flipped, fields='left.jpg')", "map(plain, fields='cls', processes=2)"]
    assert "map(flipped" in repr(data)
    text = data.explain()
    assert f"map(flipped, fields='left.jpg'): {mapped.__file__}:" in text and "GIL" in text
    assert "2 worker processes of the loader" in text
    with data.loader(4, output="numpy") as loader:
        assert len(list(loader)) == 6
        found = loader.stats()["map"]
        assert found["calls"] >= COUNT and found["run_s"] > 0 and found["waited_s"] >= 0
        assert f"{found['calls']} calls so far" in loader.explain()
    assert pairs.loader(4, output="numpy").stats()["map"] is None
    order = pairs.map(str, "cls").random_horizontal_flip(fields="left.jpg").operations
    assert [line.split("(")[0] for line in order] == ["center_crop", "map", "random_horizontal_flip"]


def test_the_drop_in_runs_it_in_the_engine(pairs: feedline.Dataset) -> None:
    pytest.importorskip("torch")
    threads = set()

    def note(image: np.ndarray) -> np.ndarray:
        threads.add(threading.get_ident())
        return image[:, ::-1]

    data = pairs.map(note, "left.jpg")
    expected = [plain(batch) for batch in data.loader(4, output="numpy")]
    threads.clear()
    loader = feedline.DataLoader(data, batch_size=4, num_workers=2)
    assert [plain([column.numpy() for column in batch]) for batch in loader] == expected
    assert threads and threading.get_ident() not in threads
    stages = loader.explain()
    assert "map(" in str(stages) and "Python, by the engine's" in str(stages)


def test_a_thread_keeps_its_own(labels: feedline.Dataset) -> None:
    """threading.local lives as long as the thread, across calls."""
    local = threading.local()
    made = []

    def count(label: int) -> int:
        if not hasattr(local, "calls"):
            local.calls = 0
            made.append(threading.get_ident())
        local.calls += 1
        return local.calls

    with labels.map(count, "cls").loader(1, output="numpy", num_workers=2, epochs=3) as loader:
        most = max(int(batch.cls[0]) for batch in loader)
    assert len(made) <= 3 and most > COUNT  # two threads, and the one for the first sample


def test_a_function_goes_with_the_last_that_has_it(labels: feedline.Dataset) -> None:
    class Function:
        def __call__(self, label: int) -> int:
            return label + 1

    function = Function()
    gone = weakref.ref(function)
    data = labels.map(function, "cls")
    del function
    loader = data.loader(4, output="numpy", num_workers=2)
    assert len(list(loader)) == 6
    loader.close()
    del loader, data
    gc.collect()
    until(lambda: gone() is None, "the function is let go of", seconds=30)


def test_other_threads_run_while_the_engine_works(labels: feedline.Dataset) -> None:
    """An engine thread that waits for the GIL, or sleeps in a function, does not block other threads."""
    data = labels.map(mapped.slow, "cls")
    before = time.thread_time()
    with data.loader(4, output="numpy", num_workers=4) as loader:
        assert len(list(loader)) == 6
    assert time.thread_time() - before < 60


def test_a_loader_within_a_function(labels: feedline.Dataset, pairs: feedline.Dataset) -> None:
    def total(label: int) -> int:
        with labels.loader(8, output="numpy", num_workers=2) as loader:
            return label + sum(int(batch.cls.sum()) for batch in loader)

    everything = sum(number % 5 for number in range(COUNT))
    rows = [label for batch in batches_of(labels.map(total, "cls")) for label in batch.cls.tolist()]
    assert rows == [number % 5 + everything for number in range(COUNT)]


def batches_of(data: feedline.Dataset) -> list[Any]:
    with data.loader(4, output="numpy", num_workers=2) as loader:
        return list(loader)


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda image: image[:2, :2], True),
        (lambda image: image / 255, True),
        (lambda image: image.shape, True),
        (lambda image: image[0], True),
        (lambda sample: sample["nothing"], False),
        (lambda sample: sample["x"].nothing, False),
    ],
    ids=["slice", "operator", "attribute", "index", "missing field", "own mistake"],
)
def test_a_function_of_one_field_that_gets_all_is_told_how_to_get_one(function: Callable[..., Any], hint: bool) -> None:
    function.__qualname__ = "crop"
    with pytest.raises(feedline.DataError, match=r"map\(crop\) raised") as caught:
        feedline.arrays(x=np.zeros((2, 4, 4))).map(function)[0]
    assert ("receives a dict of all fields: map(crop, 'NAME') passes one field" in str(caught.value)) == hint
