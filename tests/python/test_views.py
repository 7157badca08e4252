# SPDX-License-Identifier: Apache-2.0
"""Views of an image equal Pillow's pixels for the drawn values, however many are decoded together, and with any number
of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from PIL import Image

import feedline
from feedline.data import view_list

PHOTOS = 24
BIG = feedline.chain().random_resized_crop(48, scale=(0.4, 1)).random_horizontal_flip()
SMALL = feedline.chain().random_resized_crop(20, scale=(0.05, 0.4)).random_horizontal_flip()
TINY = feedline.chain().random_resized_crop(8, scale=(0.001, 0.002))
Chain = Callable[[feedline.Dataset], feedline.Dataset]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs, PNGs and WebPs of different sizes, some of them grey, in two classes."""
    root = tmp_path_factory.mktemp("views")
    formats = (("JPEG", "jpg"), ("PNG", "png"), ("WEBP", "webp"))
    for i in range(PHOTOS):
        image = Image.fromarray(made_data.photo(i, 90 + 13 * (i % 7), 80 + 11 * (i % 5)))
        format, extension = formats[0] if i % 3 else formats[i // 3 % 3]
        path = root / ("ab"[i % 2]) / f"{i:02}.{extension}"
        path.parent.mkdir(exist_ok=True)
        (image.convert("L") if i % 8 == 7 and format != "WEBP" else image).save(path, format, quality=90)
    return root


def stored(root: Path) -> list[Image.Image]:
    """In the dataset's order."""
    return [Image.open(path).convert("RGB") for path in sorted(root.rglob("*.*"))]


def replayed(image: Image.Image, drawn: list[feedline.Drawn], view: str, size: int) -> np.ndarray:
    """Returns Pillow's result for an image, for the values drawn for all views and for this one. (3, size, size)."""
    for one in drawn:
        if one.view not in ("", view):
            continue
        values = [int(value) for value in one.values]
        if one.name == "size":
            image = image.resize((values[1], values[0]), Image.Resampling.BILINEAR)
        elif one.name == "crop":
            left, top, width, height = values
            image = image.crop((left, top, left + width, top + height))
            if one.operation == "random_resized_crop":
                shape = (size, size) if one.view else (64, 70)  # of the part that all views share
                image = image.resize(shape, Image.Resampling.BILINEAR)
        elif one.name == "flip" and values[0]:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(image).transpose(2, 0, 1)


def views_of(dataset: feedline.Dataset) -> feedline.Dataset:
    return dataset.views(global_a=BIG, global_b=BIG, local=(SMALL, 6))


def all_batches(dataset: feedline.Dataset, **options: Any) -> list[tuple[Any, ...]]:
    options = {"batch_size": 5, "shuffle": True, "seed": 3, "output": "numpy", **options}
    with dataset.loader(**options) as loader:
        return [tuple(np.array(field) for field in batch) for batch in loader]


def equal(a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> bool:
    return len(a) == len(b) and all(
        len(x) == len(y) and all(np.array_equal(p, q) for p, q in zip(x, y, strict=True))
        for x, y in zip(a, b, strict=True)
    )


# ---- pixels ----

SHARED: dict[str, Chain] = {
    "nothing": lambda d: d,
    "decode": lambda d: d.decode("RGB"),
    "resize": lambda d: d.resize(70),
    "crop": lambda d: d.center_crop((60, 72)),
    "drawn": lambda d: d.random_crop((64, 76)).random_horizontal_flip(),
    "drawn resize": lambda d: d.random_resized_crop((70, 64)),
}


@pytest.mark.parametrize("shared", SHARED)
def test_every_view_is_what_pillow_makes_by_what_was_drawn_for_it(photos: Path, shared: str):
    dataset = views_of(SHARED[shared](feedline.open(photos)))
    for index, image in enumerate(stored(photos)):
        sample, drawn = dataset.sample(index, seed=5, epoch=2), dataset.draw(index, seed=5, epoch=2)
        assert sample._fields == ("global_a", "global_b", "local", "label")
        assert sample.local.shape == (6, 3, 20, 20)
        for name in ("global_a", "global_b"):
            assert np.array_equal(getattr(sample, name), replayed(image, drawn, name, 48)), (index, name)
        for i in range(6):
            assert np.array_equal(sample.local[i], replayed(image, drawn, f"local[{i}]", 20)), (index, i)


def test_views_that_are_decoded_by_themselves_are_the_same_pixels(tmp_path: Path):
    (tmp_path / "a").mkdir()
    image = Image.fromarray(made_data.photo(1, 900, 700))
    image.save(tmp_path / "a" / "0.jpg", quality=95)
    with Image.open(tmp_path / "a" / "0.jpg") as file:
        image = file.convert("RGB")
    dataset = feedline.open(tmp_path).views([TINY, TINY])
    assert "each view separately, which is cheaper there, for 0" not in dataset.explain()
    for epoch in range(60):
        sample, drawn = dataset.sample(0, epoch=epoch), dataset.draw(0, epoch=epoch)
        for i in range(2):
            assert np.array_equal(sample[i], replayed(image, drawn, f"image_{i}", 8)), (epoch, i)


def test_later_operations_are_for_every_view_and_draws_are_each_views_own(photos: Path):
    plain = views_of(feedline.open(photos))
    normal = plain.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    mean, std = (np.float32(numbers).reshape(3, 1, 1) for numbers in (feedline.IMAGENET_MEAN, feedline.IMAGENET_STD))
    for pixels, values in zip(plain.sample(3)[:3], normal.sample(3)[:3], strict=True):
        assert values.dtype == np.float32
        assert np.allclose(values, (pixels / np.float32(255) - mean) / std, atol=1e-5)
    flipped = plain.random_horizontal_flip(fields=["global_b", "local"])
    flips = [[one.view for one in flipped.draw(i) if one.name == "flip"] for i in range(PHOTOS)]
    assert flips[0] == ["global_a", "global_b", "global_b", *(f"local[{i // 2}]" for i in range(12))]
    coins = np.array([[one.values[0] for one in flipped.draw(i) if one.name == "flip"] for i in range(PHOTOS)])
    assert len({tuple(column) for column in coins.T}) == coins.shape[1]  # no two draw alike


def test_views_of_one_chain_differ_and_what_is_before_them_does_not(photos: Path):
    dataset = feedline.open(photos).random_crop(60).views(a=BIG, b=BIG, c=(BIG, 3))
    crops: dict[str, list[tuple[float, ...]]] = {}
    for index in range(PHOTOS):
        drawn = dataset.draw(index)
        assert [one.view for one in drawn if one.operation == "random_crop"] == [""]
        for one in drawn:
            if one.operation == "random_resized_crop":
                crops.setdefault(one.view, []).append(one.values)
    assert list(crops) == ["a", "b", "c[0]", "c[1]", "c[2]"]
    for one in crops:
        for other in crops:
            assert one == other or sum(x == y for x, y in zip(crops[one], crops[other], strict=True)) <= 3
    alone = feedline.open(photos).random_crop(60)
    assert [dataset.draw(i)[0] for i in range(PHOTOS)] == [alone.draw(i)[0] for i in range(PHOTOS)]


def test_crops_of_the_corners_are_torchvisions(photos: Path):
    functional = pytest.importorskip("torchvision.transforms.functional")
    images = stored(photos)
    base = feedline.open(photos)
    for size in (40, (32, 51)):
        for dataset, crops in (
            (base.five_crop(size), lambda image, s=size: functional.five_crop(image, s)),
            (base.ten_crop(size), lambda image, s=size: functional.ten_crop(image, s)),
            (base.ten_crop(size, vertical_flip=True), lambda image, s=size: functional.ten_crop(image, s, True)),
        ):
            for index, image in enumerate(images):
                expected = np.stack([np.asarray(crop).transpose(2, 0, 1) for crop in crops(image)])
                assert np.array_equal(dataset[index].image, expected), (size, index)
    resized = base.resize(64).five_crop(48).normalize((0.5,), (0.5,))
    assert resized.schema["image"] == ((5, 3, 48, 48), "float32")
    assert resized.sample(0).image.shape == (5, 3, 48, 48)


def test_a_small_image_is_one_bad_sample_of_five_crop(photos: Path):
    dataset = feedline.open(photos).five_crop(100)
    with pytest.raises(feedline.DataError, match="larger than the image"):
        all_batches(dataset)
    with dataset.loader(4, on_error="skip", output="numpy") as loader:
        given = sum(len(batch.label) for batch in loader)
        assert len(loader.errors) == PHOTOS - given > 0


def test_fast_views_are_close_and_the_same_for_all_threads(tmp_path: Path):
    (tmp_path / "a").mkdir()
    for i in range(4):
        Image.fromarray(made_data.photo(i, 640, 480)).save(tmp_path / "a" / f"{i}.jpg", quality=90)
    coarse = feedline.chain().random_resized_crop(32, scale=(0.6, 1))
    fine = feedline.chain().random_resized_crop(128, scale=(0.1, 0.2))
    for views in ({"a": coarse, "b": coarse}, {"a": coarse, "b": fine}):
        exact = all_batches(feedline.open(tmp_path).decode("RGB").views(**views), batch_size=2)
        fast = feedline.open(tmp_path).decode("RGB", fidelity="fast").views(**views)
        once = all_batches(fast, batch_size=2, num_workers=1)
        assert equal(once, all_batches(fast, batch_size=2, num_workers=3))
        for one, other in zip(exact, once, strict=True):
            for pixels, nearly in zip(one[:2], other[:2], strict=True):
                assert np.abs(pixels.astype(int) - nearly).mean() < 2
        assert equal(exact, once) == ("fine" in repr(views) or fine in views.values())  # pixels, if one needs them


# ---- the loader ----


def test_the_same_batches_whatever_the_threads(photos: Path):
    dataset = views_of(feedline.open(photos)).normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    expected = all_batches(dataset, num_workers=1)
    assert [field.shape for field in expected[0]] == [(5, 3, 48, 48), (5, 3, 48, 48), (5, 6, 3, 20, 20), (5,)]
    for threads in (2, 3, 8):
        assert equal(all_batches(dataset, num_workers=threads), expected), threads
    nhwc = all_batches(dataset, layout="NHWC", dtype="float16")
    assert nhwc[0][2].shape == (5, 6, 20, 20, 3) and nhwc[0][2].dtype == np.float16
    assert np.allclose(nhwc[0][2].transpose(0, 1, 4, 2, 3), expected[0][2], atol=5e-3)


def test_a_state_resumes_with_the_same_views(photos: Path):
    dataset = views_of(feedline.open(photos))
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 9, "output": "numpy"}
    expected = all_batches(dataset, **options)
    with dataset.loader(**options) as loader:
        batches = iter(loader)
        first = [tuple(np.array(field) for field in next(batches)) for _ in range(2)]
        state = loader.state_dict()
    with dataset.loader(**options, num_workers=3) as loader:
        loader.load_state_dict(state)
        rest = [tuple(np.array(field) for field in batch) for batch in loader]
    assert equal(first + rest, expected)


def test_ranks_share_the_samples(photos: Path):
    dataset = views_of(feedline.open(photos))
    whole = all_batches(dataset, batch_size=8)
    parts = [all_batches(dataset, batch_size=4, rank=rank, world_size=2) for rank in range(2)]
    for i, batch in enumerate(whole):
        rows = {np.asarray(row).tobytes() for row in batch[2]}
        assert rows == {np.asarray(row).tobytes() for part in parts for row in part[i][2]}


def test_a_bad_image_is_one_bad_sample(tmp_path: Path):
    (tmp_path / "a").mkdir()
    for i in range(12):
        data = made_data.encoded(made_data.photo(i, 100, 90))
        (tmp_path / "a" / f"{i:02}.jpg").write_bytes(data[: len(data) // 2] if i in (3, 7) else data)
    dataset = views_of(feedline.open(tmp_path))
    with pytest.raises(feedline.DataError, match=r"03\.jpg"):
        all_batches(dataset, shuffle=False, batch_size=12)
    for policy, rows in (("skip", 10), ("replace", 12)):
        with dataset.loader(4, on_error=policy, output="numpy") as loader:
            assert sum(len(batch.global_a) for batch in loader) == rows
            assert sorted(error.key for error in loader.errors) == ["a/03.jpg", "a/07.jpg"]


def test_a_budget_counts_all_views(photos: Path):
    dataset = views_of(feedline.open(photos))
    one = 5 * (2 * 3 * 48 * 48 + 6 * 3 * 20 * 20)
    with pytest.raises(feedline.ConfigError, match="memory budget"):
        dataset.loader(5, memory_budget=one - 1).close()
    with dataset.loader(5, memory_budget=one + 4096, output="numpy") as loader:
        assert len(list(loader)) == 5


# ---- with cache, map, masks, lists ----


def test_a_cache_before_views_changes_nothing(photos: Path, tmp_path: Path):
    def made(dataset: feedline.Dataset) -> feedline.Dataset:
        return views_of(dataset.random_horizontal_flip()).normalize((0.5,) * 3, (0.5,) * 3)

    expected = all_batches(made(feedline.open(photos).resize(72)))
    for where in ("memory", tmp_path / "kept.pixels"):
        cached = made(feedline.open(photos).resize(72).cache(where))
        assert [operation.split("(")[0] for operation in cached.operations] == [
            "resize", "cache", "random_horizontal_flip", "views", "normalize",
        ]  # fmt: skip
        assert equal(all_batches(cached), expected)
        assert equal(all_batches(cached), expected)  # from the cache


def test_a_map_takes_views_as_fields(photos: Path):
    dataset = feedline.open(photos).views(a=BIG, b=(SMALL, 2))
    mapped = dataset.map(lambda image: image[:, ::2, ::2], "a").map(lambda b, label: (b.sum(), -label), ("b", "label"))
    assert {name: spec.shape for name, spec in mapped.schema.items()} == {"a": (3, 24, 24), "b": (), "label": ()}
    for plain, after in zip(all_batches(dataset), all_batches(mapped, num_workers=2), strict=True):
        assert np.array_equal(after[0], plain[0][:, :, ::2, ::2])
        assert np.array_equal(after[1], plain[1].sum(axis=(1, 2, 3, 4)))
        assert np.array_equal(after[2], -plain[2])
    with pytest.raises(feedline.ConfigError, match="is an argument of an earlier map"):
        dataset.map(lambda image: image, "a").normalize((0.5,), (0.5,))
    with pytest.raises(feedline.ConfigError, match="place views before map"):
        feedline.open(photos).map(lambda image: image, "image").views([BIG])


def test_masks_and_second_images_are_next_to_views(tmp_path: Path):
    members = []
    for i in range(6):
        pixels = made_data.photo(i, 80, 70)
        labels = np.arange(70 * 80, dtype=np.uint16).reshape(70, 80).astype(np.uint8)
        members += [
            (f"{i}.left.png", made_data.encoded(pixels, "PNG")),
            (f"{i}.right.png", made_data.encoded(255 - pixels, "PNG")),
            (f"{i}.mask.png", made_data.encoded(labels, "PNG")),
        ]
    path = made_data.write_tar(tmp_path / "pairs.tar", members)
    pairs = feedline.open(path, fields=("left.png", "right.png", "mask.png")).random_crop(64)
    with pytest.raises(feedline.ConfigError, match="several images"):
        pairs.views([BIG])
    for viewed, other in (("left.png", "right.png"), ("right.png", "left.png")):
        dataset = pairs.views(a=BIG, b=(SMALL, 2), field=viewed)
        assert list(dataset.schema) == [
            name for field in ("left.png", "right.png", "mask.png")
            for name in (("a", "b") if field == viewed else (field,))
        ]  # fmt: skip
        for index in range(6):
            plain, sample = pairs.sample(index), dataset.sample(index)
            names = dict(zip(pairs.schema, plain, strict=True))
            fields = dict(zip(dataset.schema, sample, strict=True))
            assert np.array_equal(fields[other], names[other])
            assert np.array_equal(fields["mask.png"], names["mask.png"])
            image = Image.fromarray(names[viewed].transpose(1, 2, 0))
            drawn = [one for one in dataset.draw(index) if one.view]
            assert np.array_equal(fields["a"], replayed(image, drawn, "a", 48))
    brighter = pairs.views(a=BIG, field="left.png").random_invert(1, fields="a")
    assert np.array_equal(brighter.sample(1)[0], 255 - pairs.views(a=BIG, field="left.png").sample(1)[0])
    with pytest.raises(
        feedline.ConfigError, match=r"there is no field 'left\.png'; the fields are a, right\.png, mask"
    ):
        pairs.views(a=BIG, field="left.png").random_invert(fields="left.png")


def test_views_without_a_fixed_size_are_lists(photos: Path):
    chain = feedline.chain().resize(40).random_horizontal_flip(1)
    with pytest.raises(feedline.ConfigError, match="'a': the chain has no fixed output size"):
        feedline.open(photos).views(a=chain, b=SMALL).loader(4)
    dataset = feedline.open(photos).views(a=chain, b=SMALL).collate("list", fields="a")
    with dataset.loader(4, output="numpy") as loader:
        rows = [row for batch in loader for row in batch.a]
    for row, image in zip(rows, stored(photos), strict=True):
        width, height = image.size
        short = (40, int(40 * width / height)) if height <= width else (int(40 * height / width), 40)
        assert row.shape == (3, *short)
        expected = image.resize(short[::-1], Image.Resampling.BILINEAR).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        assert np.array_equal(row, np.asarray(expected).transpose(2, 0, 1))
    stacked = feedline.open(photos).views(b=(SMALL, 3)).collate("list")
    with stacked.loader(4, output="numpy") as loader:
        assert next(iter(loader)).b[0].shape == (3, 3, 20, 20)


# ---- arguments ----


def test_views_are_written_as_names_as_a_list_or_as_an_object(photos: Path):
    base = feedline.open(photos)
    assert list(base.views([BIG, (SMALL, 2), BIG]).schema) == ["image_0", "image_1", "image_2", "label"]
    recipe = feedline.views(a=BIG, b=(SMALL, 2))
    assert base.views(recipe).schema == base.views(a=BIG, b=(SMALL, 2)).schema
    assert repr(recipe).startswith("feedline.views(a=feedline.chain().random_resized_crop(48, 48")
    assert all(map(np.array_equal, base.views(recipe).sample(0), base.views(a=BIG, b=(SMALL, 2)).sample(0)))
    described = base.decode("RGB").views(recipe).normalize((0.5,), (0.5,)).operations
    assert described[1].startswith("views(a=chain().random_resized_crop(48, 48") and described[1].endswith(", 2))")
    assert base.five_crop(8).operations == ["five_crop(8, 8)"]
    text = base.views(recipe).explain()
    assert "3 views of an image from one read" in text and "b[0] to b[1]: random_resized_crop(20, 20" in text


def test_a_dataset_with_random_views_is_random(photos: Path):
    dataset = feedline.open(photos).views([BIG, BIG])
    with pytest.warns(UserWarning, match="more often than the dataset has samples"):
        for _ in range(2):
            for index in range(PHOTOS):
                dataset[index]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: d.views(), "pass at least one view"),
        (lambda d: d.views([]), "pass at least one view"),
        (lambda d: d.views(a=BIG, b=8), "must be a chain"),
        (lambda d: d.views(a=(BIG, 0)), "the number of a"),
        (lambda d: d.views(a=(BIG, 300)), "at most 254"),
        (lambda d: d.views(a=(BIG, 200), b=(BIG, 55)), "at most 254"),
        (lambda d: d.views([BIG], a=BIG), "one list of chains"),
        (lambda d: d.views(BIG), "must be a list of chains"),
        (lambda d: d.views(label=BIG), "'label' is the name of another field"),
        (lambda d: d.views(image_1=BIG, field="label"), "there is no image 'label'"),
        (lambda d: d.views(a=feedline.chain().decode("L")), "place decode before views"),
        (lambda d: d.views(a=feedline.chain().random_invert(fields="image")), "omit fields="),
        (lambda d: d.views(a=BIG).views(b=BIG), "this dataset already has views"),
        (lambda d: d.views(a=BIG).five_crop(8), "this dataset already has views"),
        (lambda d: d.views(a=BIG).cache(), "place cache before views"),
        (lambda d: d.normalize((0.5,), (0.5,)).views(a=BIG), "place it after views"),
        (lambda d: d.views(a=BIG, b=BIG.normalize((0.5,), (0.5,))).random_invert(), "'b': random_invert"),
        (lambda d: d.resize((30, 30)).five_crop(40), "corner_crop: the crop of 40 x 40 is larger"),
        (lambda d: feedline.mix([d.views(a=BIG), d.views(a=BIG)]), "views; make views of the mixture"),
        (lambda d: feedline.arrays(x=np.zeros((3, 2))).views(a=BIG), "have no image"),
    ],
)
def test_wrong_views_are_refused_where_they_are_written(photos: Path, wrong: Chain, words: str):
    with pytest.raises(feedline.ConfigError, match=words):
        wrong(feedline.open(photos))


def test_how_fast_what_views_need_is_decoded(photos: Path, tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(made_data.encoded(made_data.photo(1, 300, 200)))
    assert feedline.open(tmp_path).views([TINY, TINY]).measure_decode(1).images == 1
    assert views_of(feedline.open(photos)).measure_decode(8, threads=2).images == 8


# ---- views with the draws of other views, which the drop-in uses for several results of one random crop ----


def test_views_are_drawn_alike_operation_by_operation(photos: Path) -> None:
    start, other = BIG, feedline.chain().random_resized_crop(48, scale=(0.4, 1)).random_horizontal_flip()
    inverting = other.random_invert(0.5)
    views = {"a": start, "b": inverting, "c": inverting.random_vertical_flip(), "d": other}
    made = view_list.drawn_alike(views, [(), (0, 0), (0, 0, 1), (0,)])
    dataset = feedline.open(photos).views(made)
    kinds = set()
    for i in range(PHOTOS):
        a, b, c, d = (dataset.sample(i, seed=3)[at] for at in range(4))
        drawn = {(one.view, one.name): one.values for one in dataset.draw(i, seed=3)}
        assert drawn["a", "crop"] == drawn["b", "crop"] == drawn["c", "crop"] == drawn["d", "crop"]
        assert drawn["a", "flip"] == drawn["b", "flip"]
        inverted = ("b", "invert") in drawn
        assert (("c", "invert") in drawn) == inverted
        assert np.array_equal(b, 255 - a if inverted else a)
        upside_down = not np.array_equal(c, b)
        assert np.array_equal(c, b[:, ::-1] if upside_down else b)
        mirrored = not np.array_equal(d, a)  # it draws its flip separately
        assert np.array_equal(d, a[:, :, ::-1] if mirrored else a)
        kinds.add((inverted, upside_down, mirrored))
    assert len(kinds) > 5
    alone = feedline.open(photos).views(a=start)
    assert np.array_equal(alone[5].a, dataset[5].a)


@pytest.mark.parametrize(
    ("drawn_as", "says"),
    [
        ([(0,), ()], "'a': drawn_as names view 0, which is not an earlier view"),
        ([(), (1,)], "'b': drawn_as names view 1, which is not an earlier view with the same random_resized_crop"),
        ([(), (-1,)], "'b': drawn_as names view -1, which is not an earlier view with the same random_resized_crop"),
        ([(), (0, 0)], "'b': drawn_as names view 0, which is not an earlier view with the same random_vertical_flip"),
        ([(), (0, 0, 0)], "'b': the view has fewer operations than drawn_as"),
    ],
)
def test_what_cannot_be_drawn_alike_is_refused(photos: Path, drawn_as: list[tuple[int, ...]], says: str) -> None:
    other = feedline.chain().random_resized_crop(48, scale=(0.4, 1)).random_vertical_flip()
    with pytest.raises(feedline.ConfigError, match=says):
        feedline.open(photos).views(view_list.drawn_alike({"a": BIG, "b": other}, drawn_as))
