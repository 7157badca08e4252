# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix of batches, and repeated augmentation: torchvision's and timm's arithmetic for the same draws, the
same bytes for any threads, exact resume, and errors before anything is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from conftest import Options, training

import feedline

BOTH: dict[str, Any] = {"mixup": 0.8, "cutmix": 1.0}
MODES: dict[str, dict[str, Any]] = {
    "batch, roll": {},
    "batch, flip": {"partner": "flip"},
    "elem": {"mix_mode": "elem"},
    "pair": {"mix_mode": "pair"},
    "half": {"mix_mode": "half"},
}


def batches(dataset: feedline.Dataset, epochs: int = 1, **options: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    options = {"batch_size": 6, "shuffle": True, "seed": 3, "output": "numpy", "num_workers": 2, **options}
    with dataset.loader(**options) as loader:
        return [(batch[0].copy(), batch[1].copy()) for _ in range(epochs) for batch in loader]


def pairs(plain: list[Any], mixed: list[Any]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Returns the images and labels of batches without mixing, and the images and targets of the same batches with
    it.
    """
    assert len(plain) == len(mixed) > 0
    for (images, labels), (others, targets) in zip(plain, mixed, strict=True):
        assert images.dtype == others.dtype and targets.dtype == np.float32
        yield images, labels, others, targets


def partner_of(row: int, rows: int, mode: str) -> int:
    return (row - 1) % rows if mode == "batch, roll" else rows - 1 - row


def own_share(labels: np.ndarray, targets: np.ndarray, row: int, partner: int) -> float:
    assert labels[row] != labels[partner]
    assert np.count_nonzero(targets[row]) <= 2
    return float(targets[row, labels[row]])


def box_between(own: np.ndarray, other: np.ndarray, mixed: np.ndarray) -> tuple[slice, slice]:
    """Returns where (channels, height, width) `mixed` equals the other image; the rest must be its own."""
    changed = np.argwhere((mixed != own).any(axis=0))
    if len(changed) == 0:
        return slice(0, 0), slice(0, 0)
    (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0) + 1
    box = slice(top, bottom), slice(left, right)
    np.testing.assert_array_equal(mixed[:, *box], other[:, *box])
    return box


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_are_mixed_as_torch_mixes_them(train: feedline.Dataset, mode: str, dtype: str) -> None:
    """The share is read from the target; with this share, the pixels must equal torch's to the bit."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    options = {"epochs": 12, "drop_last": True, "dtype": dtype}
    mixed = batches(train, **options, **BOTH, **MODES[mode])
    shares: list[float] = []
    boxes = 0
    for images, labels, others, targets in pairs(batches(train, **options), mixed):
        assert len(others) == (3 if mode == "half" else 6)
        for row in range(len(others)):
            partner = partner_of(row, 6, mode)
            assert targets[row].sum() == pytest.approx(1)
            if labels[row] == labels[partner]:
                np.testing.assert_array_equal(targets[row], np.eye(3, dtype=np.float32)[labels[row]])
                continue
            share = own_share(labels, targets, row, partner)
            shares.append(share)
            own, other = torch.from_numpy(images[row]), torch.from_numpy(images[partner])
            blended = other.mul(1.0 - share).add_(own.mul(share)).numpy()
            if np.array_equal(blended, others[row]):
                continue
            # not a mixture, so a box, with the target's share
            height, width = (axis.stop - axis.start for axis in box_between(images[row], images[partner], others[row]))
            assert share == pytest.approx(1 - height * width / (32 * 32), abs=2.5 / 32), "colours may agree at an edge"
            boxes += 1
    assert boxes > 0.2 * len(shares) and boxes < 0.8 * len(shares)
    in_batch = mode in ("batch, roll", "batch, flip")
    assert len(set(shares)) > (8 if in_batch else len(shares) / 4), "each draw is another"


def test_the_arithmetic_is_torchvisions(train: feedline.Dataset) -> None:
    """Compares whole batches with torchvision's own transforms, given the drawn share or box."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    v2 = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed")
    plain = batches(train, epochs=6)

    def expected(transform: Any, value: np.ndarray, labels: Any, **params: Any) -> np.ndarray:
        given = labels if value is labels else torch.from_numpy(value)
        return transform.transform(given, {"labels": labels, "batch_size": len(value), **params}).numpy()

    for images, labels, others, targets in pairs(plain, batches(train, epochs=6, mixup=0.8)):
        row = next((i for i in range(len(labels)) if labels[i] != labels[i - 1]), None)
        if row is None:
            continue
        lam = own_share(labels, targets, row, row - 1)
        tensor, mixup = torch.from_numpy(labels), v2.MixUp(alpha=0.8, num_classes=3)
        np.testing.assert_array_equal(others, expected(mixup, images, tensor, lam=lam))
        np.testing.assert_array_equal(targets, expected(mixup, tensor, tensor, lam=lam))
    for images, labels, others, targets in pairs(plain, batches(train, epochs=6, cutmix=1.0)):
        # the box of all rows together, because two rows may be equal at an edge
        rolled = np.roll(images, 1, axis=0)
        stack = [array.reshape(-1, *array.shape[2:]) for array in (images, rolled, others)]
        (rows, columns), lam = box_between(*stack), 0.0
        lam = 1.0 - (rows.stop - rows.start) * (columns.stop - columns.start) / (32 * 32)
        tensor, cutmix = torch.from_numpy(labels), v2.CutMix(alpha=1.0, num_classes=3)
        params = {"box": (columns.start, rows.start, columns.stop, rows.stop), "lam_adjusted": lam}
        np.testing.assert_array_equal(others, expected(cutmix, images, tensor, **params))
        np.testing.assert_array_equal(targets, expected(cutmix, tensor, tensor, **params))


def test_labels_are_smoothed_as_timm_does(train: feedline.Dataset) -> None:
    for mode in MODES.values():
        sharp = batches(train, num_classes=10, **BOTH, **mode)
        for (images, targets), (others, smooth) in zip(
            sharp, batches(train, num_classes=10, label_smoothing=0.1, **BOTH, **mode), strict=True
        ):
            np.testing.assert_array_equal(images, others)
            np.testing.assert_allclose(smooth, targets * 0.9 + 0.01, atol=2e-7)


def test_channels_last_is_the_same(train: feedline.Dataset) -> None:
    for mode in MODES.values():
        first = batches(train, epochs=3, **BOTH, **mode)
        last = batches(train, epochs=3, layout="NHWC", **BOTH, **mode)
        for (images, targets), (others, same) in zip(first, last, strict=True):
            np.testing.assert_array_equal(images, others.transpose(0, 3, 1, 2))
            np.testing.assert_array_equal(targets, same)


@pytest.mark.parametrize("mode", MODES)
def test_any_number_of_threads(train: feedline.Dataset, mode: str, config: Options) -> None:
    def drawn(**options: Any) -> list[bytes]:
        mixed = batches(train, epochs=2, **{**BOTH, **MODES[mode], **options})
        return [field.tobytes() for batch in mixed for field in batch]

    reference = drawn(num_workers=1)
    assert len(set(reference)) > len(reference) / 2
    for threads in (2, 3, 8):
        assert drawn(num_workers=threads) == reference
    more = {"memory_budget": "80 KB"} if "memory_budget" in config(train, 6) else config(train, 6)
    assert drawn(**more) == reference


def test_out_of_order_each_batch_is_what_it_is_in_order(train: feedline.Dataset) -> None:
    wanted = {field[0].tobytes() for field in batches(train, **BOTH)}
    assert {field[0].tobytes() for field in batches(train, in_order=False, num_workers=8, **BOTH)} == wanted


@pytest.mark.parametrize("mode", ["batch, roll", "elem"])
def test_a_resumed_epoch_is_mixed_as_the_whole_one(train: feedline.Dataset, mode: str) -> None:
    options = {"batch_size": 2, "shuffle": True, "output": "numpy", **BOTH, **MODES[mode]}
    whole = [(image.copy(), target.copy()) for image, target in train.loader(**options)]
    for stop in (1, 4, 10):
        loader = train.loader(num_workers=3, **options)
        iterator = iter(loader)
        for _ in range(stop):
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        resumed = train.loader(num_workers=1, **options)
        resumed.load_state_dict(state)
        rest = list(resumed)
        assert len(rest) == len(whole) - stop
        for (image, target), (wanted, shares) in zip(rest, whole[stop:], strict=True):
            np.testing.assert_array_equal(image, wanted)
            np.testing.assert_array_equal(target, shares)


def test_ranks_mix_among_themselves_with_draws_of_their_own(train: feedline.Dataset) -> None:
    ranks = [
        (
            batches(train, world_size=2, rank=rank, batch_size=4),
            batches(train, world_size=2, rank=rank, batch_size=4, mixup=1.0),
        )
        for rank in range(2)
    ]
    drawn = []
    for plain, mixed in ranks:
        shares = []
        for images, labels, others, targets in pairs(plain, mixed):
            row = next((i for i in range(len(labels)) if labels[i] != labels[i - 1]), None)
            if row is None:
                continue
            shares.append(own_share(labels, targets, row, row - 1))
            wanted = images[row] * np.float32(shares[-1]) + images[row - 1] * np.float32(1 - shares[-1])
            np.testing.assert_array_equal(others[row], wanted)
        drawn.append(shares)
    assert not set(drawn[0]) & set(drawn[1])


def test_a_single_row_stays_as_it_is(train: feedline.Dataset) -> None:
    options = {"batch_size": 20, "drop_last": False}
    for mode in ({}, {"partner": "flip"}, {"mix_mode": "elem"}, {"mix_mode": "half"}):
        images, labels, others, targets = list(
            pairs(batches(train, **options), batches(train, **options, **BOTH, **mode))
        )[1]
        assert len(images) == 1
        np.testing.assert_array_equal(others, images)
        np.testing.assert_array_equal(targets, np.eye(3, dtype=np.float32)[labels])
    for images, labels, others, targets in pairs(batches(train, batch_size=1), batches(train, batch_size=1, **BOTH)):
        np.testing.assert_array_equal(others, images)
        np.testing.assert_array_equal(targets, np.eye(3, dtype=np.float32)[labels])


def test_the_middle_of_an_odd_last_batch_stays_when_it_is_flipped(train: feedline.Dataset) -> None:
    options = {"batch_size": 18, "drop_last": False}  # and 3
    plain, mixed = batches(train, **options), batches(train, **options, mixup=1.0, partner="flip")
    images, labels, others, targets = list(pairs(plain, mixed))[1]
    np.testing.assert_array_equal(others[1], images[1])
    np.testing.assert_array_equal(targets[1], np.eye(3, dtype=np.float32)[labels[1]])
    assert not np.array_equal(others[0], images[0])


def test_probability_is_of_the_whole_batch(train: feedline.Dataset) -> None:
    options = {"epochs": 30, "batch_size": 7, "drop_last": True}
    mixed = batches(train, **options, mixup=1.0, mix_probability=0.5)
    same = [np.array_equal(others, images) for images, _, others, _ in pairs(batches(train, **options), mixed)]
    assert 45 - 20 <= sum(same) <= 45 + 20
    assert all(
        np.array_equal(others, images)
        for images, _, others, _ in pairs(
            batches(train, **options), batches(train, **options, mixup=1.0, mix_probability=0)
        )
    )


# ---- several fields ----


@pytest.fixture
def fields(tmp_path: Path) -> Path:
    """Two images, a mask, a class, another number and text, of 12 samples."""
    members = []
    for i in range(12):
        mask = made_data.photo(50 + i, 40, 30)[:, :, 0] // 64
        members += [
            (f"{i:02d}.jpg", made_data.encoded(made_data.photo(i, 40, 30))),
            (f"{i:02d}.right.jpg", made_data.encoded(made_data.photo(100 + i, 40, 30))),
            (f"{i:02d}.mask.png", made_data.encoded(mask, "PNG")),
            (f"{i:02d}.cls", str(i % 4).encode()),
            (f"{i:02d}.index", str(i).encode()),
            (f"{i:02d}.txt", f"text {i}".encode()),
        ]
    made_data.write_tar(tmp_path / "fields.tar", members)
    return tmp_path / "fields.tar"


@pytest.mark.parametrize("mode", MODES)
def test_every_image_of_a_sample_is_mixed_alike_and_the_rest_stays(fields: Path, mode: str) -> None:
    dataset = (
        feedline.open(fields, fields=["jpg", "right.jpg", "cls", "index", "txt"]).resize((16, 16)).to_dtype("float32")
    )
    options = {"batch_size": 4, "output": "numpy", "shuffle": True, "num_classes": 4}
    rows = 2 if mode == "half" else 4
    for plain, mixed in zip(dataset.loader(**options), dataset.loader(**options, **BOTH, **MODES[mode]), strict=True):
        assert mixed[2].shape == (rows, 4) and mixed[2].dtype == np.float32
        np.testing.assert_array_equal(mixed[3], plain[3][:rows])
        assert list(mixed[4]) == list(plain[4])[:rows]
        for row in range(rows):
            partner = partner_of(row, 4, mode)
            if plain[2][row] == plain[2][partner]:
                continue
            share = np.float32(own_share(plain[2], mixed[2], row, partner))
            blends, boxes = [], []
            for image in (0, 1):
                own, other = plain[image][row], plain[image][partner]
                blends.append(np.array_equal(own * share + other * (np.float32(1) - share), mixed[image][row]))
                if not blends[-1]:
                    boxes.append(box_between(own, other, mixed[image][row]))
            assert len(set(blends)) == 1
            assert all(abs(a.start - b.start) < 3 for a, b in zip(*boxes, strict=True)) if boxes else True


def test_a_map_may_make_image_and_class(train: feedline.Dataset) -> None:
    def halve(image: np.ndarray, label: int) -> tuple[np.ndarray, int]:
        return image[:, ::2, ::2].copy(), label + 1

    mapped = train.map(halve, ("image", "label"))
    with pytest.raises(feedline.ConfigError, match="num_classes"):
        mapped.loader(4, mixup=0.2)
    images, targets = batches(mapped, batch_size=4, num_classes=4, **BOTH)[0]
    assert images.shape == (4, 3, 16, 16) and targets.shape == (4, 4)
    assert not targets[:, 0].any()


# ---- bad samples ----


def test_classes_are_checked_sample_by_sample(tars: list[Path]) -> None:
    dataset = training(feedline.open(tars))
    with dataset.loader(7, mixup=0.2, num_classes=2, num_workers=2) as loader:
        with pytest.raises(feedline.DataError, match=r"class 2 is out of range for num_classes=2") as error:
            list(loader)
        assert error.value.key and error.value.key.startswith("crow")
    with dataset.loader(7, mixup=0.2, num_classes=2, on_error="skip", output="numpy") as loader:
        rows = [targets for _, targets in loader]
        assert sum(map(len, rows)) == 14
        assert len(loader.errors) == 7
    with dataset.loader(7, mixup=0.2, num_classes=2, on_error="replace", output="numpy") as loader:
        assert [targets.shape for _, targets in loader] == [(7, 2)] * 3


def test_skipped_samples_are_refilled_before_a_batch_is_mixed(tmp_path: Path) -> None:
    root = made_data.make_folder(tmp_path / "train")
    for name in ("apple/002.jpg", "crow/001.jpg"):
        (root / name).write_bytes(b"no image")
    dataset = training(feedline.open(root))
    options: dict[str, Any] = {"on_error": "skip", "batch_size": 4, "drop_last": False}
    plain = batches(dataset, **options)
    for threads in (1, 3, 8):
        mixed = batches(dataset, **options, mixup=1.0, num_workers=threads)
        assert [len(images) for images, _ in mixed] == [4, 4, 4, 4, 3]
        for images, labels, others, targets in pairs(plain, mixed):
            for row in range(len(images)):
                if labels[row] == labels[row - 1]:
                    continue
                share = np.float32(own_share(labels, targets, row, row - 1))
                wanted = images[row] * share + images[row - 1] * (np.float32(1) - share)
                np.testing.assert_array_equal(others[row], wanted)


# ---- errors ----


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mixup": -0.1}, "mixup is the alpha"),
        ({"cutmix": float("nan")}, "cutmix must be a finite number"),
        ({"mixup": "yes"}, "mixup must be a finite number"),
        ({"mixup": 0.2, "mix_probability": 1.5}, "mix_probability must be between 0 and 1"),
        ({"mixup": 0.2, "switch_probability": -1}, "switch_probability must be between 0 and 1"),
        ({"mixup": 0.2, "label_smoothing": 2}, "label_smoothing must be between 0 and 1"),
        ({"label_smoothing": 0.1}, "label_smoothing needs mixup or cutmix"),
        ({"mixup": 0.2, "mix_mode": "row"}, "mix_mode must be one of 'batch', 'elem', 'half', 'pair'"),
        ({"mixup": 0.2, "partner": "next"}, "partner must be one of 'roll', 'flip'"),
        ({"mixup": 0.2, "mix_mode": "elem", "partner": "roll"}, "row i with n - 1 - i"),
        ({"mixup": 0.2, "mix_mode": "pair", "batch_size": 5}, "batch_size must be even, got 5"),
        ({"mixup": 0.2, "partner": "flip", "batch_size": 5}, "batch_size must be even, got 5"),
        ({"mixup": 0.2, "num_classes": 2}, "num_classes=2 is less than the 3 classes"),
        ({"mixup": 0.2, "num_classes": 0}, "num_classes must be"),
        ({"mixup": 0.2, "dtype": "uint8"}, "'image' is uint8, in which mixed values would be rounded"),
        ({"repeat": 0}, "repeat must be"),
        ({"repeat": 256}, "repeat must be between 1 and 255"),
    ],
)
def test_wrong_options(folder: Path, options: dict[str, Any], words: str) -> None:
    dataset = feedline.open(folder).random_resized_crop(16)
    if options.get("dtype") is None:
        options = {**options, "dtype": "float32"}
    with pytest.raises(feedline.ConfigError, match=words):
        dataset.loader(**{"batch_size": 4, **options})


def test_samples_that_cannot_be_mixed(folder: Path, tars: list[Path], fields: Path) -> None:
    def refused(dataset: feedline.Dataset, words: str, **options: Any) -> None:
        with pytest.raises(feedline.ConfigError, match=words):
            dataset.loader(4, **{"mixup": 0.2, "num_classes": 4, **options})

    refused(training(feedline.open(tars)), "pass num_classes", num_classes=None)
    refused(training(feedline.open(tars, fields=["jpg"])), "but the samples have none; their fields are jpg")
    refused(training(feedline.open(fields, fields=["jpg", "mask.png", "cls"])), "'mask.png' is of kind mask")
    refused(training(feedline.open(fields, fields=["jpg", "txt"])), "their fields are jpg, txt")
    refused(feedline.open(folder).to_dtype("float32").collate("list"), "rows of different sizes")
    refused(feedline.arrays(x=np.zeros((8, 3)), y=np.zeros(8, np.int64)), "need images")
    two = (
        feedline.open(fields, fields=["jpg", "right.jpg", "cls"])
        .resize((16, 16), fields=["jpg"])
        .resize((8, 8), fields=["right.jpg"])
        .to_dtype("float32")
    )
    refused(two, "differs in size from 'jpg'", cutmix=1.0)
    assert two.loader(4, mixup=0.2, num_classes=4, output="numpy") is not None
    views = feedline.chain().random_resized_crop(16).to_dtype("float32")
    refused(feedline.open(folder).views(one=views, two=views), "these samples have views")
    refused(
        feedline.mix([training(feedline.open(folder))] * 2, weights=[1, 1]),
        "repeat does not support mixtures",
        repeat=2,
    )


def test_explain_and_statistics_report_what_is_mixed(train: feedline.Dataset) -> None:
    with train.loader(6, mixup=0.2, cutmix=1.0, label_smoothing=0.1, repeat=3, shuffle=True) as loader:
        text = loader.explain()
        assert "mix        mixup with alpha 0.2 or, with probability 0.5, cutmix with alpha 1" in text
        assert "with the previous row; label holds the shares of 3 classes, smoothed by 0.1" in text
        assert "field      label: float32 (3,)" in text or "field      label: float32 (3)" in text
        assert "each sample 3 times, 7 samples per epoch" in text
        list(loader)
        mix = loader.stats()["mix"]
        assert mix["batches"] >= 4 and mix["rows"] >= 21 and mix["run_s"] > 0
    assert train.loader(6).stats()["mix"] is None


# ---- repeated augmentation ----


def samples_of(dataset: feedline.Dataset, **options: Any) -> list[tuple[list[int], list[bytes]]]:
    """Returns the samples and images of every batch of an epoch."""
    options = {"batch_size": 4, "shuffle": True, "output": "numpy", "seed": 5, **options}
    with dataset.loader(**options) as loader:
        return [(list(loader.last_samples), [row.tobytes() for row in batch[0]]) for batch in loader]


def test_a_sample_is_repeated_with_other_draws(train: feedline.Dataset) -> None:
    epoch = samples_of(train, repeat=3)
    samples = [sample for batch, _ in epoch for sample in batch]
    assert len(samples) == 21
    assert samples == [sample for sample in samples[::3] for _ in range(3)]
    assert set(Counter(samples).values()) == {3}
    images = [image for _, rows in epoch for image in rows]
    assert len(set(images)) == 21
    once = {sample: image for batch, rows in samples_of(train) for sample, image in zip(batch, rows, strict=True)}
    for sample, image in list(zip(samples, images, strict=True))[::3]:
        assert once[sample] == image, "the first time as it would come without repeat"


def test_repetitions_go_to_different_ranks(train: feedline.Dataset) -> None:
    """As in torchvision's RASampler: rank r of w has positions r, r + w, ... of the repeated order."""
    order = [sample for batch, _ in samples_of(train, repeat=3) for sample in batch]
    for world_size in (2, 3):
        for rank in range(world_size):
            mine = samples_of(train, repeat=3, world_size=world_size, rank=rank, batch_size=2, uneven="exact")
            assert [sample for batch, _ in mine for sample in batch] == order[rank::world_size]


def test_a_resumed_epoch_repeats_as_the_whole_one_on_any_number_of_ranks(train: feedline.Dataset) -> None:
    options: dict[str, Any] = {"shuffle": True, "repeat": 2, "output": "numpy", "seed": 5}
    whole = samples_of(train, repeat=2, batch_size=6)
    loader = train.loader(6, **options)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    rest: Counter[tuple[int, bytes]] = Counter()
    for rank in range(3):
        resumed = train.loader(2, **options, rank=rank, world_size=3, uneven="exact")
        resumed.load_state_dict(state)
        for batch in resumed:
            rest.update(zip(resumed.last_samples, (row.tobytes() for row in batch[0]), strict=True))
    assert rest == Counter(pair for batch, rows in whole[1:] for pair in zip(batch, rows, strict=True))
    other = train.loader(6, **{**options, "repeat": 3})
    with pytest.raises(feedline.ConfigError, match="saved with repeat=2, but the loader has repeat=3"):
        other.load_state_dict(state)
    del state["plan"]["repeat"]  # like states of earlier versions
    train.loader(6, **{**options, "repeat": 1}).load_state_dict(state)


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
@pytest.mark.parametrize("alpha", [1e300, 1e10, 1e-300, -1.0])
def test_an_alpha_that_nothing_is_drawn_of_is_refused(name, alpha):
    data = feedline.arrays(x=np.zeros((4, 3, 2, 2), np.float32), label=np.zeros(4, np.int64))
    with pytest.raises(feedline.ConfigError, match=f"{name} is the alpha"):
        data.loader(2, output="numpy", num_classes=2, **{name: alpha})


def test_the_advice_for_deep_images_can_be_followed(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        pillow.fromarray(np.full((8, 8), 40_000, np.uint16)).save(tmp_path / label / "0.png")
    deep = feedline.open(tmp_path).decode(dtype="uint16").resize((8, 8))
    with pytest.raises(feedline.ConfigError, match=r'uint16, .* use normalize, to_dtype or decode\(dtype="float32"\)'):
        deep.loader(2, mixup=0.2)
    for dataset in (deep.to_dtype("float32"), feedline.open(tmp_path).decode(dtype="float32").resize((8, 8))):
        (batch,) = dataset.loader(2, mixup=0.2, output="numpy")
        assert batch.image.dtype == np.float32
