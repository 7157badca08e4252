# SPDX-License-Identifier: Apache-2.0
"""Erasing, blur, AugMix, timm's policies and nested chains: their draws, and their effects."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import photographs
import pytest
from drawn_changes import augmented, augmented_by_timm
from PIL import Image

import feedline

PHOTOS = 16
DRAWS = 20_000
Chain = Callable[[feedline.Dataset], feedline.Dataset]
chain = feedline.chain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs of photos of any size; every fourth is grey, some are narrow."""
    root = tmp_path_factory.mktemp("photos")
    (root / "class").mkdir()
    parts = photographs.crops(PHOTOS, largest=140)
    parts[3], parts[5], parts[9] = parts[3][:1], parts[5][:, :1], parts[9][:3, :5]
    for i, part in enumerate(parts):
        image = Image.fromarray(part)
        (image.convert("L") if i % 4 == 1 else image).save(root / "class" / f"{i:03}.png")
    return root


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> feedline.Dataset:
    """An image of 224 x 160 pixels, for draws."""
    root = tmp_path_factory.mktemp("one")
    (root / "class").mkdir()
    Image.new("RGB", (224, 160)).save(root / "class" / "a.png")
    return feedline.open(root).collate("list", fields="image")


@pytest.fixture(scope="module")
def stats() -> ModuleType:
    return pytest.importorskip("scipy.stats")


def _images(root: Path, mode: str = "RGB") -> list[Image.Image]:
    return [Image.open(path).convert(mode) for path in sorted((root / "class").iterdir())]


def _opened(root: Path) -> feedline.Dataset:
    """For images of any size."""
    return feedline.open(root).collate("list", fields="image")


def _delivered(dataset: feedline.Dataset, seed: int, **loader: object) -> list[np.ndarray]:
    """Returns every sample of epoch 0 as height x width x channels."""
    with dataset.loader(5, seed=seed, layout="NHWC", output="numpy", **loader) as batches:
        return [image for batch in batches for image in batch.image]


def _named(dataset: feedline.Dataset, index: int, seed: int) -> dict[str, tuple[float, ...]]:
    return {name: values for _operation, name, values in dataset.draw(index, seed=seed)}


# ---- erasing ----


def _fits_rules(width: int, height: int, scale: tuple[float, float], ratio: tuple[float, float]) -> list[int] | None:
    """torchvision's get_params, with Python's generator."""
    for _ in range(10):
        area = width * height * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if h < height and w < width:
            top, left = random.randint(0, height - h), random.randint(0, width - w)
            return [left, top, w, h]
    return None


@pytest.mark.parametrize("ranges", [((0.02, 0.33), (0.3, 3.3)), ((0.5, 1.0), (0.2, 9.0))])
def test_erased_rectangles_are_distributed_as_torchvisions(
    stats: ModuleType, one: feedline.Dataset, ranges: tuple[tuple[float, float], tuple[float, float]]
) -> None:
    random.seed(1)
    dataset = one.random_erasing(0.75, *ranges)
    drawn = [_named(dataset, 0, seed).get("box") for seed in range(DRAWS)]
    wanted = [_fits_rules(224, 160, *ranges) for _ in range(DRAWS)]
    ours = np.array([box for box in drawn if box is not None])
    theirs = np.array([box for box in wanted if box is not None])
    share = 0.75 * len(theirs) / DRAWS
    assert len(ours) / DRAWS == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) * 2 / DRAWS))
    measures = (*range(4), lambda b: b[:, 2] * b[:, 3], lambda b: b[:, 3] / b[:, 2])
    for measure in measures:
        a, b = (m[:, measure] if isinstance(measure, int) else measure(m) for m in (ours, theirs))
        assert stats.ks_2samp(a, b).pvalue > 1e-4, measure


def test_no_rectangle_has_a_whole_side_of_the_image(one: feedline.Dataset) -> None:
    """torchvision accepts only rectangles that are smaller in both directions."""
    for height, width, done in ((160, 224, False), (159, 224, False), (160, 223, False), (159, 223, True)):
        share, ratio = height * width / (224 * 160), height / width
        dataset = one.random_erasing(1, scale=(share, share), ratio=(ratio, ratio))
        assert [bool(dataset.draw(0, seed=seed)) for seed in range(8)] == [done] * 8, (height, width)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_erasing_writes_its_value_and_nothing_else(folder: Path, mode: str) -> None:
    """On pixels before other operations, and after normalize in rows of every type and layout."""
    plain = _opened(folder).decode(mode).random_horizontal_flip(0.5)
    grey = mode == "L"
    pixels = plain.random_erasing(1, value=200 if grey else (200, 3, 77)).random_vertical_flip(1)
    mean, std = ([0.4], [0.2]) if grey else ((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))
    floats = plain.normalize(mean, std).random_erasing(1, value=-1.5, scale=(0.1, 0.9))
    seen = 0
    for seed in range(4):
        for i, (before, ours) in enumerate(zip(_delivered(plain, seed), _delivered(pixels, seed), strict=True)):
            box = _named(pixels, i, seed).get("box")
            wanted = before.copy()
            if box is not None:
                left, top, width, height = map(int, box)
                wanted[top : top + height, left : left + width] = 200 if grey else (200, 3, 77)
                seen += 1
            np.testing.assert_array_equal(ours, wanted[::-1])
        for dtype in ("float32", "float16"):
            normalized = _delivered(plain.normalize(mean, std), seed, dtype=dtype)
            for i, (before, ours) in enumerate(zip(normalized, _delivered(floats, seed, dtype=dtype), strict=True)):
                box = _named(floats, i, seed).get("box")
                wanted = before.copy()
                if box is not None:
                    left, top, width, height = map(int, box)
                    wanted[top : top + height, left : left + width] = -1.5
                np.testing.assert_array_equal(ours, wanted)
    assert seen > 2 * PHOTOS


def test_erasing_noise_is_standard_normal_whatever_the_layout(stats: ModuleType, folder: Path) -> None:
    dataset = feedline.open(folder).resize((64, 48)).to_dtype("float32", scale=True)
    noisy = dataset.random_erasing(1, scale=(0.5, 0.5), value="random")
    values = []
    for seed in range(3):
        rows = _delivered(noisy, seed)
        with noisy.loader(5, seed=seed, output="numpy") as batches:
            planes = [image for batch in batches for image in batch.image]
        for i, (row, plane) in enumerate(zip(rows, planes, strict=True)):
            np.testing.assert_array_equal(row, plane.transpose(1, 2, 0))
            box = _named(noisy, i, seed).get("box")
            if box is not None:
                left, top, width, height = map(int, box)
                values.append(row[top : top + height, left : left + width].ravel())
    together = np.concatenate(values)
    assert len(together) > 100_000
    assert len(np.unique(together)) > 0.9 * len(together)
    assert stats.kstest(together, "norm").pvalue > 1e-4


def test_timms_rectangles_share_the_area(stats: ModuleType, one: feedline.Dataset) -> None:
    random.seed(2)
    dataset = one.timm_random_erasing(1, max_count=3)
    drawn = [[box for _, _, box in dataset.draw(0, seed=seed)] for seed in range(DRAWS)]
    assert stats.chisquare(np.bincount([len(boxes) for boxes in drawn], minlength=4)[1:]).pvalue > 1e-4
    for count in (1, 2, 3):
        theirs = [_fits_rules(224, 160, (0.02 / count, 1 / 3 / count), (0.3, 1 / 0.3)) for _ in range(DRAWS)]
        ours = [boxes[0] for boxes in drawn if len(boxes) == count]
        for side in range(4):
            pairs = ([box[side] for box in boxes if box] for boxes in (ours, theirs))
            assert stats.ks_2samp(*pairs).pvalue > 1e-4, (count, side)


# ---- blur ----


def test_sigmas_are_uniform(stats: ModuleType, one: feedline.Dataset) -> None:
    dataset = one.gaussian_blur(3, (0.5, 1.75))
    sigmas = [dataset.draw(0, seed=seed)[0].values[0] for seed in range(DRAWS)]
    assert stats.kstest(sigmas, "uniform", (0.5, 1.25)).pvalue > 1e-4


@pytest.mark.parametrize("kernel_size", [3, (23, 5)])
def test_a_blur_is_torchvisions_within_one_level(folder: Path, kernel_size: int | tuple[int, int]) -> None:
    transforms = pytest.importorskip("torchvision.transforms.functional")
    dataset = _opened(folder).gaussian_blur(kernel_size).random_horizontal_flip(1)
    different = total = 0
    for i, (image, ours) in enumerate(zip(_images(folder), _delivered(dataset, 5), strict=True)):
        if min(image.size) <= 11:  # torch cannot reflect so few pixels
            continue
        sides = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        wanted = transforms.gaussian_blur(image, sides, [_named(dataset, i, 5)["sigma"][0]] * 2)
        apart = np.abs(np.asarray(wanted, np.int16)[:, ::-1] - ours)
        assert apart.max() <= 1
        different, total = different + np.count_nonzero(apart), total + apart.size
    assert total > 100_000
    assert different < 0.001 * total


# ---- AugMix, and timm ----


def _mixed(image: Image.Image, drawn: list, change: Callable[[Image.Image, str, float], Image.Image]) -> np.ndarray:
    """torchvision's sum in float32 of Pillow's results."""
    weights = next(np.float32(values) for _, name, values in drawn if name == "weights")
    total = weights[0] * np.asarray(image, np.float32)
    chains = _chains(image, drawn, change)
    assert len(chains) == len(weights) - 1
    for weight, one in zip(weights[1:], chains, strict=True):
        total += weight * one
    return total.astype(np.uint8)


def _chains(image: Image.Image, drawn: list, change: Callable) -> list[np.ndarray]:
    chains: list[Image.Image] = []
    for _, name, values in drawn:
        if name == "chain":
            chains.append(image)
        elif chains and name != "interpolation":
            chains[-1] = change(chains[-1], name, values[0])
    return [np.asarray(one, np.float32) for one in chains]


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_aug_mix_adds_up_what_pillow_makes(folder: Path, mode: str) -> None:
    dataset = _opened(folder).decode(mode).random_horizontal_flip(1).aug_mix(5, 4, fill=9)
    seen: Counter[str] = Counter()
    for seed in range(6):
        for i, (image, ours) in enumerate(zip(_images(folder, mode), _delivered(dataset, seed), strict=True)):
            drawn = dataset.draw(i, seed=seed)[1:]
            seen.update(name for _, name, _ in drawn)
            fill = (9, 9, 9) if mode == "RGB" else 9
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            wanted = _mixed(image, drawn, lambda *how, f=fill: augmented(*how, Image.Resampling.BILINEAR, f))
            np.testing.assert_array_equal(ours, wanted.reshape(ours.shape), err_msg=f"{seed} {i} {drawn}")
    assert len(seen) == 2 + 13


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.5])
def test_weights_of_aug_mix_are_dirichlets(stats: ModuleType, one: feedline.Dataset, alpha: float) -> None:
    dataset = one.aug_mix(alpha=alpha, mixture_width=3, chain_depth=1)
    weights = np.array([_named(dataset, 0, seed)["weights"] for seed in range(DRAWS)])
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
    assert stats.kstest(weights[:, 0], stats.beta(alpha, alpha).cdf).pvalue > 1e-4
    mixed_rows = weights[weights[:, 0] < 0.999]
    for i in (1, 2, 3):
        assert stats.kstest(mixed_rows[:, i] / (1 - mixed_rows[:, 0]), stats.beta(alpha, 2 * alpha).cdf).pvalue > 1e-4


def test_chains_of_aug_mix_choose_evenly(stats: ModuleType, one: feedline.Dataset) -> None:
    for all_ops, choices in ((True, 13), (False, 9)):
        dataset = one.aug_mix(all_ops=all_ops)
        depths, names = Counter(), Counter()
        for seed in range(DRAWS):
            drawn = [name for _, name, _ in dataset.draw(0, seed=seed)][1:]
            names.update(name for name in drawn if name != "chain")
            text = " ".join("|" if name == "chain" else "x" for name in drawn)
            depths.update(part.count("x") for part in text.split("|")[1:])
        assert len(names) == choices
        assert stats.chisquare(list(names.values())).pvalue > 1e-4
        assert sorted(depths) == [1, 2, 3]
        assert stats.chisquare(list(depths.values())).pvalue > 1e-4


POLICIES = ("rand-m9-mstd0.5-inc1", "rand-m7-n3-mmax20-p0.8", "rand-m9-mstd101-tweights", "original-mstd0.5", "v0r")
BLURRING = ("3a", "3a-mstd3", "rand-m9-mstd1-t3a", "rand-m7-n3-p0.8-t3aw")


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("policy", [*POLICIES, *BLURRING])
def test_timms_policies_do_what_they_drew(folder: Path, policy: str, mode: str) -> None:
    dataset = _opened(folder).decode(mode).timm_augment(policy)
    fill = (124, 116, 104) if mode == "RGB" else 124
    kinds: Counter[int] = Counter()
    for seed in range(5):
        for i, (image, ours) in enumerate(zip(_images(folder, mode), _delivered(dataset, seed), strict=True)):
            drawn, kind = dataset.draw(i, seed=seed), 0
            for _, name, (amount,) in drawn:
                if name == "interpolation":
                    kind = int(amount)
                    kinds[kind] += 1
                    continue
                image = augmented_by_timm(image, name, amount, Image.Resampling(kind), fill)
            np.testing.assert_array_equal(ours, np.asarray(image).reshape(ours.shape), err_msg=f"{seed} {i} {drawn}")
    assert len(kinds) == (0 if policy.partition("-")[0] == "3a" or policy.endswith("t3a") else 2)


def test_timms_aug_mix_blends_its_sum_with_the_image(folder: Path) -> None:
    dataset = _opened(folder).timm_augment("augmix-m5-w4-d2", interpolation="bicubic")
    for seed in range(5):
        for i, (image, ours) in enumerate(zip(_images(folder), _delivered(dataset, seed), strict=True)):
            drawn = dataset.draw(i, seed=seed)
            names = {name: values for _, name, values in drawn}
            total = np.zeros_like(np.asarray(image), dtype=np.float32)
            how = (Image.Resampling.BICUBIC, (124, 116, 104))
            parts = _chains(image, drawn, lambda *change, how=how: augmented_by_timm(*change, *how))
            for weight, part in zip(names["weights"], parts, strict=True):
                total += np.float32(weight) * part
            mixed = Image.fromarray(np.clip(total, 0, 255).astype(np.uint8))
            wanted = Image.blend(image, mixed, np.float32(names["blended"][0]))
            np.testing.assert_array_equal(ours, np.asarray(wanted), err_msg=f"{seed} {i} {drawn}")


def test_timms_aug_mix_blends_one_chain_after_the_other(folder: Path) -> None:
    """b1: every chain begins with the image, and is blended with the result of the previous ones."""
    dataset = _opened(folder).timm_augment("augmix-m6-w4-b1", interpolation="bilinear")
    for seed in range(5):
        for i, (image, ours) in enumerate(zip(_images(folder), _delivered(dataset, seed), strict=True)):
            drawn = dataset.draw(i, seed=seed)
            (weights,) = (values for _, name, values in drawn if name == "weights")
            assert "blended" not in {name for _, name, _ in drawn}
            how = (Image.Resampling.BILINEAR, (124, 116, 104))
            parts = _chains(image, drawn, lambda *change, how=how: augmented_by_timm(*change, *how))
            wanted = image
            for weight, part in zip(weights, parts, strict=True):
                wanted = Image.blend(wanted, Image.fromarray(part.astype(np.uint8)), np.float32(weight))
            np.testing.assert_array_equal(ours, np.asarray(wanted), err_msg=f"{seed} {i} {drawn}")


@pytest.mark.parametrize("alpha", [1, 0.4])
def test_weights_for_blending_one_after_the_other_are_timms(
    stats: ModuleType, one: feedline.Dataset, alpha: float
) -> None:
    timm = pytest.importorskip("timm.data.auto_augment", exc_type=ImportError)
    transform = timm.augment_and_mix_transform(f"augmix-w3-b1-a{alpha}", {})
    np.random.seed(3)
    theirs = []
    for _ in range(DRAWS):
        shares, all_ = np.float32(np.random.dirichlet([alpha] * 3)), np.float32(np.random.beta(alpha, alpha))
        theirs.append(transform._calc_blended_weights(shares, all_))
    dataset = one.timm_augment(f"augmix-w3-b1-d1-a{alpha}")
    ours = np.array([_named(dataset, 0, seed)["weights"] for seed in range(DRAWS)])
    for mine, wanted in zip(ours.T, np.array(theirs).T, strict=True):
        assert stats.ks_2samp(mine, wanted).pvalue > 1e-5


DRAWN = (*POLICIES, *BLURRING, "rand-m4-n1", "originalr", "v0", "augmix-m5-w2-d2", "augmix-m5-w2-d2-b1")


@pytest.mark.parametrize("policy", DRAWN)
def test_timms_policies_draw_as_timm_does(
    stats: ModuleType, one: feedline.Dataset, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    timm = pytest.importorskip("timm.data.auto_augment", exc_type=ImportError)
    share = 0.3 if policy.startswith("augmix") else 0.45
    hparams = {"translate_pct": share, "img_mean": (124, 116, 104)}
    seen: list[tuple[str, float]] = []
    names = {"auto_contrast": "autocontrast", "translate_x_rel": "translate_x", "translate_y_rel": "translate_y"}
    names |= {"desaturate": "color", "gaussian_blur_rand": "gaussian_blur"}
    for name, function in list(timm.NAME_TO_OP.items()):

        def record(img: Image.Image, *level: float, word: str = function.__name__, **_: object) -> Image.Image:
            side = {"translate_x_rel": img.width, "translate_y_rel": img.height}.get(word, 1)
            amount = level[0] * side if level else 0.0
            if word == "desaturate":
                amount = min(1.0, max(0.0, 1.0 - amount))
            if word == "gaussian_blur_rand":
                amount = random.uniform(0.1, 2.0 * amount)
            seen.append((names.get(word, word), amount))
            return img

        monkeypatch.setitem(timm.NAME_TO_OP, name, record)
    make = timm.augment_and_mix_transform if policy.startswith("augmix") else None
    make = make or (timm.rand_augment_transform if policy.startswith("rand") else timm.auto_augment_transform)
    transform, image = make(policy, hparams), Image.new("RGB", (224, 160))
    random.seed(3)
    np.random.seed(3)
    for _ in range(DRAWS):
        transform(image)
    theirs: dict[str, list[float]] = {}
    for name, amount in seen:
        theirs.setdefault(name, []).append(amount)
    dataset = one.timm_augment(policy)
    ours: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        for _, name, values in dataset.draw(0, seed=seed):
            if name not in ("interpolation", "weights", "blended", "chain"):
                ours.setdefault(name, []).append(values[0])
    assert set(ours) == set(theirs)
    for name, amounts in theirs.items():
        count = len(amounts)
        assert len(ours[name]) == pytest.approx(count, abs=6 * math.sqrt(2 * count)), name
        assert stats.ks_2samp(ours[name], amounts).pvalue > 1e-5, name


# ---- nested chains ----


def test_random_apply_does_all_or_nothing(folder: Path) -> None:
    jitter = chain().color_jitter(0.4, 0.4, 0.2, 0.1)
    nested = _opened(folder).random_apply(jitter.random_grayscale(1), p=0.3)
    done = 0
    for seed in range(5):
        for i, (image, ours) in enumerate(zip(_images(folder), _delivered(nested, seed), strict=True)):
            drawn = nested.draw(i, seed=seed)
            applied = drawn[0].values == (1.0,)
            assert len(drawn) > 1 if applied else drawn[0] == ("random_apply", "applied", (0.0,))
            done += applied
            if applied:
                assert np.ptp(ours, axis=2).max() == 0
                assert {name for name, _, _ in drawn} == {"random_apply", "color_jitter", "random_grayscale"}
            else:
                np.testing.assert_array_equal(ours, np.asarray(image))
    assert 0 < done < 5 * PHOTOS


def test_how_often_chains_are_done(stats: ModuleType, one: feedline.Dataset) -> None:
    applied = one.random_apply(chain().random_invert(1), p=0.3)
    count = sum(applied.draw(0, seed=seed)[0].values[0] for seed in range(DRAWS))
    assert stats.binomtest(int(count), DRAWS, 0.3).pvalue > 1e-4
    chains = [chain().random_invert(1), chain(), chain().random_equalize(1), chain().random_invert(1)]
    for weights in (None, (1, 2, 0, 5)):
        chosen = one.random_choice(chains, weights)
        counts = np.bincount([int(chosen.draw(0, seed=seed)[0].values[0]) for seed in range(DRAWS)], minlength=4)
        expected = np.array(weights or (1, 1, 1, 1)) * DRAWS / sum(weights or (1, 1, 1, 1))
        assert (counts[expected == 0] == 0).all()
        assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-4
    ordered = one.random_order(chain().random_invert(1).random_equalize(1).random_solarize(3, 1).random_autocontrast(1))
    orders = Counter(ordered.draw(0, seed=seed)[0].values for seed in range(DRAWS))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4
    kinds = ["invert", "equalize", "solarize", "autocontrast"]
    drawn = ordered.draw(0, seed=7)
    assert [name for _, name, _ in drawn[1:]] == [kinds[int(i)] for i in drawn[0].values]


def test_dinos_view_is_a_chain(folder: Path) -> None:
    """Nested operations are applied, with Pillow's bytes."""
    dino = (
        feedline.open(folder)
        .random_resized_crop(32, scale=(0.4, 1))
        .random_apply(chain().color_jitter(0.4, 0.4, 0.2, 0.1), p=0.8)
        .random_grayscale(p=0.2)
        .random_choice([chain().random_apply(chain().random_posterize(2, 1), 0.5), chain().random_solarize(128, 1)])
        .random_apply(chain().random_order(chain().random_horizontal_flip(0.5).random_equalize(1)))
    )
    before = feedline.open(folder).random_resized_crop(32, scale=(0.4, 1))
    seen = 0
    for seed in range(8):
        for i, (start, ours) in enumerate(zip(_delivered(before, seed), _delivered(dino, seed), strict=True)):
            drawn = dino.draw(i, seed=seed)
            if any(name == "order" or operation == "color_jitter" for operation, name, _ in drawn):
                continue
            image = Image.fromarray(start)
            for _operation, name, values in drawn:
                if name == "grayscale":
                    image = image.convert("L").convert("RGB")
                elif name in ("posterize", "solarize"):
                    image = augmented(image, name, values[0], Image.Resampling.NEAREST, 0)
                    seen += 1
            np.testing.assert_array_equal(ours, np.asarray(image), err_msg=f"{drawn}")
    assert seen > 3
    assert "random_apply([color_jitter(" in dino.explain()


def test_masks_move_with_chains(tmp_path: Path) -> None:
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        for i in range(8):
            pixels = np.random.default_rng(i).integers(0, 255, (9, 7), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    pairs = feedline.open(tmp_path, fields=("images/{key}.png", "mask=masks/{key}.png:mask"))
    moved = (
        pairs.decode("L")
        .random_apply(chain().random_horizontal_flip(1).random_invert(0), 0.5)
        .random_apply(chain().random_crop((5, 4)), 1)
        .random_order(chain().random_vertical_flip())
    )
    with moved.loader(8, output="numpy") as loader:
        batch = next(iter(loader))
    np.testing.assert_array_equal(batch.images[:, 0], batch.mask)
    for name, wrong in (("random_apply", chain().rand_augment()), ("random_order", chain().aug_mix())):
        with pytest.raises(feedline.ConfigError, match=f"{name}: it moves the pixels of images"):
            getattr(pairs.resize((8, 8)), name)(wrong).loader(1)
    with pytest.raises(feedline.ConfigError, match="gaussian_blur: fields: 'mask' is a mask"):
        pairs.gaussian_blur(3, fields="mask")
    pairs.resize((8, 8)).random_erasing(1).gaussian_blur(3).loader(1).close()


# ---- all operations ----

EVERYTHING: Chain = lambda d: (  # noqa: E731
    d.random_apply(chain().random_order(chain().gaussian_blur(5).random_invert()))
    .random_erasing(0.7, value="random")
    .random_choice([chain().aug_mix(), chain().timm_augment("rand-m9-mstd0.5"), chain().timm_augment("augmix-m3")])
    .normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))
    .timm_random_erasing(0.8, mode="pixel", max_count=3)
    .random_horizontal_flip()
)


def test_the_same_bytes_with_any_number_of_threads_and_through_a_cache(folder: Path) -> None:
    dataset = EVERYTHING(_opened(folder))
    first = _delivered(dataset, 3, num_workers=1)
    assert any((a != b).any() for a, b in zip(first, _delivered(dataset, 4, num_workers=1), strict=True))
    for threads in (2, 3, 8):
        for a, b in zip(first, _delivered(dataset, 3, num_workers=threads), strict=True):
            np.testing.assert_array_equal(a, b)
    small = feedline.open(folder).resize((40, 30))
    for a, b in zip(_delivered(EVERYTHING(small), 3), _delivered(EVERYTHING(small.cache("memory")), 3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loader_resumes_within_them(folder: Path) -> None:
    dataset = EVERYTHING(feedline.open(folder).resize((40, 30)))
    with dataset.loader(3, shuffle=True, seed=2, output="numpy") as loader:
        iterator = iter(loader)
        for _ in range(2):
            next(iterator)
        state = loader.state_dict()
        rest = [batch.image for batch in iterator]
    with dataset.loader(3, shuffle=True, seed=2, output="numpy") as loader:
        loader.load_state_dict(state)
        for a, b in zip([batch.image for batch in loader], rest, strict=True):
            np.testing.assert_array_equal(a, b)


OPERATIONS: dict[str, Chain] = {
    "gaussian_blur": lambda d: d.gaussian_blur((3, 5), 1.5),
    "random_erasing": lambda d: d.random_erasing(value=(1, 2, 3)),
    "timm_random_erasing": lambda d: d.timm_random_erasing(max_count=2),
    "aug_mix": lambda d: d.aug_mix(all_ops=False),
    "timm_augment": lambda d: d.timm_augment("v0", 7, "bilinear"),
    "random_apply": lambda d: d.random_apply(chain().random_invert()),
    "random_choice": lambda d: d.random_choice([chain().random_invert(), chain()], [1, 2]),
    "random_order": lambda d: d.random_order(chain().random_invert()),
}
DESCRIBED = {
    "gaussian_blur": "gaussian_blur(kernel_size=(3, 5), sigma=(1.5, 1.5))",
    "random_erasing": "random_erasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=(1, 2, 3))",
    "timm_random_erasing": "mode=const, count=(1, 2)",
    "aug_mix": "aug_mix(severity=3, mixture_width=3, chain_depth=-1, alpha=1, all_ops=False)",
    "timm_augment": "timm_augment('v0', fill=7, interpolation=bilinear, translate_pct=0.45)",
    "random_apply": "random_apply([random_invert(p=0.5)], p=0.5)",
    "random_choice": "random_choice([[random_invert(p=0.5)], []], p=(1, 2))",
    "random_order": "random_order([random_invert(p=0.5)])",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_is_described_and_kept_out_of_caches(one: feedline.Dataset, name: str) -> None:
    dataset = OPERATIONS[name](one.resize((8, 8)))
    assert DESCRIBED[name] in dataset.explain()
    with pytest.raises(feedline.ConfigError, match=f"{name} before cache would draw only once"):
        dataset.cache()


WRONG: dict[str, tuple[Chain, str]] = {
    "kernel": (lambda d: d.gaussian_blur(4), "gaussian_blur: kernel_size must be odd, from 1 to 1023, got 4"),
    "kernels": (lambda d: d.gaussian_blur((1, 3, 5)), "gaussian_blur: kernel_size must be one number or"),
    "sigma": (lambda d: d.gaussian_blur(3, 0), "gaussian_blur: sigma must be two numbers 0 < low <= high"),
    "blurred floats": (lambda d: d.to_dtype("float32").gaussian_blur(3), "gaussian_blur: works on uint8 pixels"),
    "p": (lambda d: d.random_erasing(-0.1), "random_erasing: p must be between 0 and 1, got -0.1"),
    "scale": (lambda d: d.random_erasing(scale=(0.1, 1.5)), "random_erasing: scale must be two numbers 0 <= low"),
    "ratio": (lambda d: d.random_erasing(ratio=(0, 1)), "random_erasing: ratio must be two numbers 0 < low"),
    "value": (lambda d: d.random_erasing(value=256), "random_erasing: value must be a whole number from 0 to 255 on"),
    "values": (lambda d: d.random_erasing(value=(1, 2)), "random_erasing: 3 channels but 2 numbers in value"),
    "word": (lambda d: d.random_erasing(value="noise"), "random_erasing: value must be a number, one per channel"),
    "inplace": (lambda d: d.random_erasing(inplace=1), "random_erasing: inplace must be True or False"),
    "mode": (lambda d: d.timm_random_erasing(mode="x"), "timm_random_erasing: mode must be one of"),
    "uint8 noise": (lambda d: d.timm_random_erasing(mode="rand"), "timm_random_erasing: random values need float"),
    "counts": (lambda d: d.timm_random_erasing(min_count=3, max_count=2), "timm_random_erasing: min_count, max_count"),
    "areas": (lambda d: d.timm_random_erasing(min_area=0.5), "timm_random_erasing: min_area, max_area must be"),
    "aspect": (lambda d: d.timm_random_erasing(min_aspect=0), "timm_random_erasing: min_aspect must be above 0"),
    "severity": (lambda d: d.aug_mix(11), "aug_mix: severity must be from 1 to 10, got 11"),
    "width": (lambda d: d.aug_mix(mixture_width=0), "aug_mix: mixture_width must be from 1 to 32, got 0"),
    "depth": (lambda d: d.aug_mix(chain_depth=65), "aug_mix: chain_depth must be at most 64, got 65"),
    "alpha": (lambda d: d.aug_mix(alpha=0), "aug_mix: alpha must be above 0, got 0"),
    "policy": (
        lambda d: d.timm_augment("m9"),
        "timm_augment: 'm9' is not a policy of timm: the policy must begin with",
    ),
    "section": (lambda d: d.timm_augment("augmix-x3"), "timm_augment: 'augmix-x3' is not a policy of timm: AugMix has"),
    "set": (lambda d: d.timm_augment("rand-t3b"), "timm_augment: 'rand-t3b' is not a policy of timm: 't3b' must be"),
    "share": (lambda d: d.timm_augment("v0", translate_pct=2), "timm_augment: translate_pct must be from 0 to 1"),
    "chain": (lambda d: d.random_apply([1]), "random_apply: a chain must come from feedline.chain()"),
    "chains": (lambda d: d.random_choice(3), "random_choice: chains must be a sequence of feedline.chain()"),
    "no chains": (lambda d: d.random_choice([]), "random_choice: there is nothing to choose from"),
    "weights": (lambda d: d.random_choice([chain()], [1, 2]), "random_choice: p must have one number for each of 1"),
    "negative": (lambda d: d.random_choice([chain()], [-1]), "random_choice: p must not be negative, got -1"),
    "normalized": (
        lambda d: d.random_apply(chain().normalize([0], [1])),
        "random_apply: normalize: the type of an image's values cannot be random",
    ),
    "levels": (
        lambda d: d.random_apply(chain().random_apply(chain().random_apply(chain().random_invert()))),
        "random_apply: random_apply: random_apply: operations can be nested at most 2 levels deep",
    ),
    "size": (
        lambda d: d.resize((8, 8)).random_apply(chain().center_crop(4)).collate("stack").loader(1, output="numpy"),
        "the chain has no fixed output size (it varies after random_apply)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named_at_the_call(one: feedline.Dataset, case: str) -> None:
    wrong, words = WRONG[case]
    with pytest.raises(feedline.ConfigError) as raised:
        wrong(one)
    assert words in str(raised.value)
