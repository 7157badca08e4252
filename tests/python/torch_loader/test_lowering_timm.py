# SPDX-License-Identifier: Apache-2.0
"""timm's RandAugment, AutoAugment and AugMixAugment objects in the engine: their draws, from their own fields."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_outcomes import Outcomes, assert_drawn_as, dataset_of, drawn, image_of, mixed, pixels, small_photo
from lowered import plan_of
from PIL import Image

import feedline
from feedline import ConfigError, DataLoader
from feedline.torch_loader.lowering.transforms import transforms

auto = pytest.importorskip("timm.data.auto_augment", reason="tools/test --integrations installs timm")
timm = pytest.importorskip("timm.data")
v1 = pytest.importorskip("torchvision.transforms")

HOW = {"img_mean": (9, 120, 250), "translate_pct": 0.45, "interpolation": Image.Resampling.BILINEAR}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_photo(tmp_path_factory.mktemp("one"))


def made(policy: str, **hparams: Any) -> Any:
    name = policy.partition("-")[0]
    make = {"rand": auto.rand_augment_transform, "augmix": auto.augment_and_mix_transform}
    return make.get(name, auto.auto_augment_transform)(policy, dict(hparams) or None)


# ---- timm's own code, run for each possible choice ----


def changes(op: Any, image: Image.Image) -> list[tuple[float, Image.Image]]:
    """Returns the possible results of one change, if it is applied, with its signs and interpolations."""
    resamples = op.kwargs["resample"]
    resamples = resamples if isinstance(resamples, tuple) else (resamples,)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        for sign in (1, -1):
            patch.setattr(auto, "_randomly_negate", lambda value, sign=sign: sign * value)
            level = op.level_fn(op.magnitude, op.hparams) if op.level_fn is not None else ()
            for resample in resamples:
                how = {**op.kwargs, "resample": resample}
                results.append((0.5 / len(resamples), op.aug_fn(image, *level, **how)))
    return results


def one_after_the_other(ops: Any, image: Image.Image) -> Outcomes:
    if not ops:
        return {pixels(image): 1.0}
    op, *others = ops
    parts = [(1 - op.prob, one_after_the_other(others, image))] if op.prob < 1 else []
    parts += [(op.prob * share, one_after_the_other(others, after)) for share, after in changes(op, image)]
    return mixed(parts)


def of_rand_augment(t: Any, image: Image.Image) -> Outcomes:
    assert t.num_layers == 1
    weights = [1 / len(t.ops)] * len(t.ops) if t.choice_weights is None else list(t.choice_weights)
    return mixed([(weight, one_after_the_other([op], image)) for weight, op in zip(weights, t.ops, strict=True)])


def of_auto_augment(t: Any, image: Image.Image) -> Outcomes:
    return mixed([(1 / len(t.policy), one_after_the_other(part, image)) for part in t.policy])


OUTCOMES = {
    "rand-m9-n1-inc1": HOW,
    "rand-m4-n1-p0.25": {"img_mean": (9, 120, 250)},
    "rand-m7-n1-mmax20-p1-tweights": HOW,
    "original": HOW,
    "originalr": HOW | {"interpolation": Image.Resampling.NEAREST},
}


@pytest.mark.parametrize("policy", OUTCOMES)
def test_a_policy_gives_timms_images_as_often(one: Path, policy: str) -> None:
    t, image = made(policy, **OUTCOMES[policy]), image_of(one)
    outcomes = of_rand_augment(t, image) if policy.startswith("rand") else of_auto_augment(t, image)
    assert_drawn_as(drawn(one, t), outcomes)


STRINGS = {
    "rand-m9-mstd0.5-inc1": {},
    "rand-m7-n3-mmax20-p0.8": {"translate_pct": 0.2},
    "rand-m9-mstd101-tweights": {"img_mean": (1, 2, 3)},
    "rand-n4-p0.00001": {"interpolation": Image.Resampling.BICUBIC},
    "rand-m3-p0-n0": {},
    "original-mstd0.5": {"magnitude_max": 10},
    "originalr": {},
    "v0": {},
    "v0r-mstd0.25": {"interpolation": (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)},
    "augmix-m5-w4-d2": {"translate_pct": 0.3},
    "augmix-m3-mstd0.5-a0.4": {},
    "augmix": {"img_mean": (0, 0, 0)},
    "augmix-m7-w2-b1-mstd2": {},
    "augmix-b1-d3-a0.5": {"translate_pct": 0.3},
    "3a": {},
    "v0-mstd101": {},
    "3a-mstd0.5": {"interpolation": Image.Resampling.BILINEAR},
    "rand-m9-mstd0.5-t3a": {},
    "rand-m7-n1-p0.9-t3aw": {},
}


@pytest.mark.parametrize("policy", STRINGS)
def test_an_object_draws_what_its_string_shows(one: Path, policy: str) -> None:
    """test_random_operations compares strings with timm's draws."""
    hparams, opened = STRINGS[policy], feedline.open(one).resize((24, 28))
    lowered = transforms.chain_of(made(policy, **hparams), opened)
    assert not lowered.rest, lowered.why
    resample = hparams.get("interpolation", "random")
    named = opened.timm_augment(
        policy,
        hparams.get("img_mean", (128, 128, 128)),
        "random" if isinstance(resample, tuple) else resample,
        hparams.get("translate_pct", 0.45),
    )
    for seed in range(400):
        assert lowered.dataset.draw(0, seed=seed) == named.draw(0, seed=seed)
    images = [dataset.loader(1, seed=7).__iter__().__next__().image for dataset in (lowered.dataset, named)]
    assert (images[0] == images[1]).all()


CREATED = ("rand-m9-mstd0.5-inc1", "original-mstd0.5", "augmix-m5-w4-d2", "augmix-m3-b1", "rand-m8-mstd1-tweights")


@pytest.mark.parametrize("policy", CREATED)
@pytest.mark.parametrize("interpolation", ["random", "bicubic"])
def test_create_transform_runs_whole(one: Path, policy: str, interpolation: str) -> None:
    options = {"is_training": True, "auto_augment": policy, "re_prob": 0.25, "interpolation": interpolation}
    whole = timm.create_transform(224, **options)
    parts = timm.create_transform(224, **options, separate=True)
    for t in (whole, v1.Compose(list(parts)), timm.create_transform(224, **options, use_prefetcher=True)):
        loader = DataLoader(dataset_of(one, t), 8)
        words = loader.explain()
        assert plan_of(loader) == "images", words
        assert type(whole.transforms[2]).__name__ in words
        images, _ = next(iter(loader))
        assert images.shape == (1, 3, 224, 224)
    opened = feedline.open(one)
    chain = transforms.chain_of(whole, opened)
    mean = (124, 116, 104)
    named = opened.random_resized_crop(224, interpolation=interpolation).random_horizontal_flip()
    named = named.timm_augment(policy, mean, interpolation).to_dtype("float32", scale=True)
    named = named.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD).timm_random_erasing(0.25)
    for seed in range(50):
        assert chain.dataset.draw(0, seed=seed) == named.draw(0, seed=seed)
    # each part separately, as in a dataset of clean and changed images
    assert [not transforms.chain_of(part, opened).rest for part in parts] == [True, True, True]


def test_of_grey_images(one: Path) -> None:
    grey = [v1.Resize((24, 28)), v1.Grayscale()]
    t = made("rand-m9-n1-inc1", img_mean=40, interpolation=Image.Resampling.NEAREST)
    assert_drawn_as(drawn(one, v1.Grayscale(), t), of_rand_augment(t, image_of(one, "L")))
    loader = DataLoader(dataset_of(one, *grey, made("rand"), v1.PILToTensor()), 8)
    assert "fillcolor=(128, 128, 128) must have one value for each of 1 channels" in loader.explain()


def altered(t: Any, ops: Any = None, **attributes: Any) -> Any:
    """Returns `t` with attributes of its changes set to other values."""
    for op in t.ops if ops is None else ops:
        for name, value in attributes.items():
            setattr(op, name, value)
    return t


def with_attributes(t: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(t, name, value)
    return t


def refused() -> Iterator[tuple[str, Any]]:
    """Objects that no string creates, and why they stay in Python."""
    rand, aug, mix = (lambda: made("rand-m9-mstd0.5")), (lambda: made("v0")), (lambda: made("augmix"))

    class Own(auto.AugmentOp):
        pass

    three = made("rand-t3a")
    own_blur = functools.partial(auto._minmax_level_to_arg, min_val=0.1, max_val=3.0)
    yield "GaussianBlur of RandAugment has a function", altered(three, three.ops[2:], level_fn=own_blur)
    yield "Desaturate of RandAugment has a function", altered(t := made("rand-t3a"), t.ops[1:2], level_fn=own_blur.func)
    yield "with these operations is not supported: Invert", auto.rand_augment_transform("rand", transforms=["Invert"])
    yield "has TranslateX, which is not", auto.rand_augment_transform("rand", transforms=["TranslateX"])
    yield (
        "weights that are not timm's",
        auto.rand_augment_transform("rand", transforms=dict.fromkeys(auto._RAND_TRANSFORMS, 1)),
    )
    yield "weights that are not timm's", with_attributes(made("rand-tweights"), choice_weights=[1 / 15] * 15)
    yield "differ in magnitude", altered(t := rand(), t.ops[:1], magnitude=3)
    yield "differ in prob", altered(t := rand(), t.ops[3:4], prob=0.25)
    yield "differ in translate_pct", altered(t := rand(), t.ops[2:3], hparams={"translate_pct": 0.5})
    yield "differ in kwargs", altered(t := rand(), t.ops[2:3], kwargs={"fillcolor": (1, 2, 3), "resample": 3})
    yield (
        "have the arguments fillcolor, resample, fill",
        altered(rand(), kwargs={"fillcolor": (1, 2, 3), "resample": 3, "fill": 1}),
    )
    yield "resample=[3, 3] is not", altered(rand(), kwargs={"fillcolor": (1, 2, 3), "resample": [3, 3]})
    yield "fillcolor=None must have one value", altered(rand(), kwargs={"fillcolor": None, "resample": 3})
    yield "interpolation", altered(rand(), kwargs={"fillcolor": (1, 2, 3), "resample": Image.Resampling.LANCZOS})
    yield "Rotate of RandAugment has a function", altered(t := rand(), t.ops[3:4], aug_fn=auto.shear_x)
    yield "Rotate of RandAugment has a function", altered(t := rand(), t.ops[3:4], level_fn=lambda level, _: (level,))
    yield "has Rotate, which is not", with_attributes(t := rand(), ops=[*t.ops[:3], Own("Rotate"), *t.ops[4:]])
    yield "magnitude=9.5 must be a whole number", altered(rand(), magnitude=9.5)
    yield "num_layers=2.5 must be", with_attributes(rand(), num_layers=2.5)
    yield "magnitude_std=-1", altered(rand(), magnitude_std=-1)
    yield "prob=inf is not", altered(rand(), prob=float("inf"))
    yield "'n' must be from", with_attributes(rand(), num_layers=1000)
    yield "no operations to choose from", with_attributes(rand(), ops=[])
    yield "policy other than timm's", with_attributes(t := aug(), policy=t.policy[1:])
    yield "policy other than timm's", altered(t := aug(), t.policy[0][:1], prob=0.75)
    yield "magnitude_max=12", made("original", magnitude_max=12)
    yield "magnitude_std=200", altered(rand(), magnitude_std=200)
    yield "magnitude_std=inf", made("original", magnitude_std=float("inf"))
    yield "with operations other than timm's", with_attributes(t := mix(), ops=t.ops[1:])
    yield "with operations other than timm's", altered(mix(), prob=0.5)
    yield "hooks, or its own forward", with_attributes(rand(), __call__=lambda image: image)


def test_what_no_string_makes_stays_in_python_by_name(one: Path) -> None:
    for why, t in refused():
        chain = [v1.Resize((30, 20)), t, v1.ToTensor()]
        loader = DataLoader(dataset_of(one, *chain), 4)
        assert plan_of(loader) == "prefix", why
        words = loader.explain()
        assert why in words, words
        assert f"if {type(t).__name__} returns an RGB or L PIL image" in words
        with pytest.raises(ConfigError, match=re.escape(type(t).__name__)):
            DataLoader(loader.dataset, 4, lower="require")
    subclass = type("RandAugment", (auto.RandAugment,), {})
    assert plan_of(DataLoader(dataset_of(one, v1.Resize(20), subclass(made("rand").ops), v1.ToTensor()), 4)) == "prefix"
