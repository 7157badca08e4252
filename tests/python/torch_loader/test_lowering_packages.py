# SPDX-License-Identifier: Apache-2.0
"""Transforms created by timm and OpenCLIP, and those of packages that stay in Python."""

from __future__ import annotations

import importlib
import importlib.util
import random
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
import torch
from lowered import assert_same, plan_of
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader

import feedline
from feedline import DataLoader
from feedline.torch_loader.lowering.transforms.transforms import chain_of

vision = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")
WHOLE = (50.0, 60.0)  # a scale for which no crop fits into the image: the largest crop within the ratio is used


@pytest.fixture(scope="module")
def timm() -> Any:
    return pytest.importorskip("timm.data", reason="timm is not installed (tools/test --integrations installs it)")


@pytest.fixture(scope="module")
def open_clip() -> Any:
    """Only its transforms, because the models need more packages."""
    found = importlib.util.find_spec("open_clip")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("OpenCLIP is not installed (tools/test --integrations installs it)")
    package = types.ModuleType("open_clip")
    package.__path__ = list(found.submodule_search_locations)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "open_clip", package)
        yield importlib.import_module("open_clip.transform")
        for name in [name for name in sys.modules if name.startswith("open_clip.")]:
            del sys.modules[name]


def dataset_of(folder: Path, transform: Any) -> Any:
    return vision.datasets.ImageFolder(folder, transform)


def assert_torchs_pixels(dataset: Any, plan: str) -> str:
    ours = DataLoader(dataset, 8)
    assert plan_of(ours) == plan, ours.explain()
    assert_same(list(ours), list(TorchLoader(dataset, 8)))
    return str(ours.explain())


TIMM = {
    "eval": {},
    "eval, bicubic": {"interpolation": "bicubic", "crop_pct": 0.95},
    "eval, lanczos": {"interpolation": "lanczos", "crop_pct": 1.0},
    "eval, squashed": {"crop_mode": "squash", "input_size": (3, 32, 24)},
    "eval, for a prefetcher": {"use_prefetcher": True},
    "eval, not normalized": {"normalize": False},
    "eval, keeping the ratio": {"input_size": (3, 32, 24)},
    "eval, with a border": {"crop_mode": "border", "crop_pct": 1.0},
    "eval, with a border, larger": {"crop_mode": "border", "crop_pct": 0.8, "interpolation": "bicubic"},
    "train, rkrc": {
        "is_training": True, "train_crop_mode": "rkrc", "scale": (1.0, 1.0), "ratio": (1.0, 1.0), "hflip": 0.0,
        "color_jitter": None,
    },
    "train, no_aug": {"is_training": True, "no_aug": True},
    "train": {"is_training": True, "scale": WHOLE, "hflip": 1.0, "vflip": 1.0, "color_jitter": None},
    "train, bicubic": {
        "is_training": True, "scale": WHOLE, "hflip": 0.0, "color_jitter": None, "interpolation": "bicubic"
    },
    "train, grey": {"is_training": True, "scale": WHOLE, "hflip": 0.0, "color_jitter": None, "grayscale_prob": 1.0},
}  # fmt: skip


def test_timms_dataset_of_folders_runs_natively(timm: Any, folder: Path, tmp_path: Path) -> None:
    transform = timm.create_transform(32, is_training=False)
    dataset = timm.create_dataset("", str(folder), is_training=False)
    dataset.transform = transform
    assert_torchs_pixels(dataset, "images")
    loader = timm.create_loader(
        dataset, (3, 32, 32), 4, is_training=False, use_prefetcher=False, num_workers=0, persistent_workers=False
    )
    assert_same(list(DataLoader(dataset, 4)), list(loader))
    bad = tmp_path / "bad"
    shutil.copytree(folder, bad)
    first = sorted(bad.rglob("*.jpg"))[0]
    first.write_bytes(first.read_bytes()[:100])
    broken = timm.create_dataset("", str(bad), is_training=False)
    broken.transform = transform
    assert_torchs_pixels(broken, "images")  # timm returns the next sample instead
    for changes in ({"load_bytes": True}, {"input_img_mode": "L"}, {"additional_features": ["x"]}):
        other = timm.create_dataset("", str(folder), is_training=False)
        other.transform = transform
        vars(other).update(changes)
        ours = DataLoader(other, 4)
        assert plan_of(ours) == "python" and next(iter(changes)) in str(ours.explain()), ours.explain()
    mine = timm.create_dataset("", str(folder), is_training=False)
    mine.transform = vision.transforms.Compose([vision.transforms.Lambda(lambda image: image), transform])
    assert_torchs_pixels(mine, "prefix")


@pytest.mark.parametrize("name", TIMM)
def test_timms_transforms_run_natively(timm: Any, folder: Path, name: str) -> None:
    transform = timm.create_transform(**{"input_size": 32, **TIMM[name]})
    assert_torchs_pixels(dataset_of(folder, transform), "images")


def test_timms_crops_by_chance_run_natively(timm: Any, folder: Path) -> None:
    """test_geometry and test_geometry_distributions compare the draws with timm's strings."""
    for mode in ("rkrc", "rkrr"):
        made = timm.create_transform(32, is_training=True, train_crop_mode=mode, interpolation="random")
        loader = DataLoader(dataset_of(folder, made), 8, seed=2)
        assert plan_of(loader) == "images", loader.explain()
        first = chain_of(made, feedline.open(folder)).dataset.operations[0]
        assert "random_scale_prob=0.5, random_scale_range=(0.8, 1), random_scale_area=True" in first
        assert "random_aspect_prob=0.5, random_aspect_range=(0.9, 1.1" in first and "interpolation=random" in first
        epochs = [torch.cat([images for images, _ in loader]) for _ in range(2)]
        assert epochs[0].shape[1:] == (3, 32, 32)
        assert not torch.equal(*epochs)


def test_timms_random_interpolation_is_one_of_two(timm: Any, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    Image.fromarray(made_data.photo(7, 33, 26)).save(tmp_path / "all" / "0.png")
    options = {"input_size": 20, "is_training": True, "scale": WHOLE, "hflip": 0.0, "color_jitter": None}

    def images_of(interpolation: str, draws: int) -> list[bytes]:
        dataset = dataset_of(tmp_path, timm.create_transform(**options, interpolation=interpolation))
        loader = DataLoader(dataset, 100, sampler=[0] * draws, seed=1)
        assert plan_of(loader) == "images"
        return [image.numpy().tobytes() for images, _ in loader for image in images]

    bilinear, bicubic = (images_of(word, 1)[0] for word in ("bilinear", "bicubic"))
    drawn = images_of("random", 1000)
    assert set(drawn) == {bilinear, bicubic} and bilinear != bicubic
    assert 430 < drawn.count(bilinear) < 570


def test_timms_erasing_runs_natively(timm: Any, folder: Path) -> None:
    options = {"is_training": True, "scale": WHOLE, "hflip": 0.0, "color_jitter": None, "re_prob": 1.0}
    for mode in ("const", "rand", "pixel"):
        dataset = dataset_of(folder, timm.create_transform(32, **options, re_mode=mode, re_count=2))
        plain = dataset_of(folder, timm.create_transform(32, **{**options, "re_prob": 0.0}))
        assert plan_of(DataLoader(dataset)) == "images", DataLoader(dataset).explain()
        erased, whole = (torch.cat([images for images, _ in DataLoader(d, 8, seed=1)]) for d in (dataset, plain))
        changed = (erased != whole).any(dim=1)
        shares = changed.float().mean(dim=(1, 2))
        assert shares.min() > 0 and shares.max() < 0.45
        values = erased.permute(0, 2, 3, 1)[changed]
        assert bool((values == 0).all()) == (mode == "const")
    on_gpu = timm.create_transform(32, **options)
    on_gpu.transforms[-1].device = "cuda"
    assert plan_of(DataLoader(dataset_of(folder, on_gpu))) == "prefix"


AUGMENTATIONS = (
    None, "original", "originalr-mstd0.5", "v0", "v0r-mstd101", "3a", "3a-mstd0.5", "rand-m9-mstd0.5-inc1",
    "rand-m7-n3-mmax20-p0.8", "rand-m9-mstd101-tweights", "rand-m6-t3a", "rand-t3aw-n1", "augmix-m5-w4-d2-mstd1",
    "augmix-b1-a0.5",
)  # fmt: skip


@pytest.mark.parametrize("policy", AUGMENTATIONS)
def test_all_that_create_transform_makes_to_train_runs_natively(timm: Any, folder: Path, policy: str | None) -> None:
    """test_lowering_timm and test_random_operations compare the draws with timm."""
    opened = feedline.open(folder)
    for mode, interpolation, how, size in (
        (None, "random", {"re_prob": 0.25, "re_mode": "pixel", "re_num_splits": 2}, 32),
        ("rrc", "bicubic", {"re_prob": 0.25, "re_mode": "rand", "re_count": 3, "color_jitter_prob": 0.8}, (3, 32, 24)),
        ("rkrc", "bilinear", {"grayscale_prob": 0.2, "gaussian_blur_prob": 0.5}, 32),
        ("rkrr", "lanczos", {"use_prefetcher": True, "vflip": 0.5}, (32, 24)),
        (None, "random", {"normalize": False, "color_jitter": (0.4, 0.4, 0.4, 0.1)}, 32),
    ):
        if policy and interpolation == "lanczos":
            continue  # timm rotates with it, which Pillow refuses
        made = timm.create_transform(
            size, is_training=True, auto_augment=policy, train_crop_mode=mode, interpolation=interpolation, **how
        )
        chain = chain_of(made, opened)
        assert not chain.rest, (mode, chain.why)
        assert plan_of(DataLoader(dataset_of(folder, made), 4)) == "images"


def test_timms_patches_stay_in_python_by_name(timm: Any, folder: Path) -> None:
    naflex = timm.create_transform(32, naflex=True)
    assert "ResizeToSequence of timm is not" in DataLoader(dataset_of(folder, naflex), 4).explain()


def test_the_erasing_of_timms_prefetcher_gets_the_same_batches(timm: Any, folder: Path) -> None:
    loaders = importlib.import_module("timm.data.loader")
    dataset = dataset_of(folder, timm.create_transform(32, use_prefetcher=True))
    for mode, splits in (("const", 0), ("rand", 2), ("pixel", 2)):
        found = []
        for kind in (DataLoader, TorchLoader):
            random.seed(3)
            torch.manual_seed(3)
            inner = kind(dataset, 6, collate_fn=loaders.fast_collate)
            assert kind is TorchLoader or plan_of(inner) == "images"
            options = {"re_prob": 0.7, "re_mode": mode, "re_count": 2, "re_num_splits": splits}
            outer = loaders.PrefetchLoader(inner, device=torch.device("cpu"), **options)
            found.append([(images.clone(), labels) for images, labels in outer])
        assert_same(*found)


def test_timms_arrays_are_arrays(timm: Any, folder: Path) -> None:
    own = importlib.import_module("timm.data.transforms")
    t = vision.transforms
    assert_torchs_pixels(dataset_of(folder, t.Compose([t.Resize((20, 30)), own.ToNumpy()])), "images")
    described = t.Compose([t.Resize((20, 30)), own.ToNumpy(), lambda array: (type(array).__name__, array)])
    assert_torchs_pixels(dataset_of(folder, described), "prefix")
    assert_torchs_pixels(dataset_of(folder, t.Compose([t.Resize((20, 30)), own.ToTensor()])), "images")
    doubles = t.Compose([t.Resize((20, 30)), own.ToTensor(torch.float64)])
    assert_torchs_pixels(dataset_of(folder, doubles), "prefix")


def test_timms_borders_are_trimmed_natively(timm: Any, folder: Path) -> None:
    own = importlib.import_module("timm.data.transforms")
    for border in (1, 3, 9):
        words = assert_torchs_pixels(dataset_of(folder, timm.create_transform(32, crop_border_pixels=border)), "images")
        assert "TrimBorder" in words
    t = vision.transforms
    for border in (0, 5):
        made = t.Compose([t.Resize((40, 33)), own.TrimBorder(border), t.ToTensor()])
        assert_torchs_pixels(dataset_of(folder, made), "images")
    for border, says in ((-2, "border_size must be from 0"), (17, "leaves nothing of the image, which is 40 x 33")):
        made = t.Compose([t.Resize((40, 33)), own.TrimBorder(border), t.ToTensor()])
        assert says in DataLoader(dataset_of(folder, made), 4).explain()


def test_timms_crops_take_any_border(timm: Any, folder: Path) -> None:
    own = importlib.import_module("timm.data.transforms")
    t = vision.transforms
    for kind in (own.CenterCropOrPad, own.RandomCropOrPad):
        for border in (
            {"fill": 7},
            {"fill": (1, 2, 3)},
            *({"padding_mode": m} for m in ("edge", "reflect", "symmetric")),
        ):
            size = (40, 40) if kind is own.RandomCropOrPad else (90, 35)  # without random draws
            made = t.Compose([t.Resize((40, 40)), kind(size, **border), t.ToTensor()])
            assert_torchs_pixels(dataset_of(folder, made), "images")


def test_what_timm_has_of_its_own_stays_in_python(timm: Any, folder: Path) -> None:
    own = importlib.import_module("timm.data.transforms")

    class Own(own.RandomResizedCropAndInterpolation):
        pass

    class OneOf(own.RandomResizedCropAndInterpolation):
        def __init__(self) -> None:
            super().__init__(20)
            self.interpolation = ("bilinear", "nearest")

    altered = own.RandomResizedCropAndInterpolation(20, interpolation="random")
    altered.interpolation = altered.interpolation[::-1] * 2
    t = vision.transforms
    for transform in (Own(20), OneOf(), altered):
        dataset = dataset_of(folder, t.Compose([t.Resize((40, 40)), transform, t.ToTensor()]))
        assert plan_of(DataLoader(dataset)) == "prefix", transform


@pytest.mark.parametrize("training", [False, True])
def test_open_clips_transforms_run_natively(open_clip: Any, folder: Path, training: bool) -> None:
    made = open_clip.image_transform(32, training, aug_cfg={"scale": WHOLE})
    assert_torchs_pixels(dataset_of(folder, made), "images")
    squashed = open_clip.image_transform(32, training, resize_mode="squash", aug_cfg={"scale": WHOLE})
    assert_torchs_pixels(dataset_of(folder, squashed), "images")
    t = vision.transforms
    older = t.Compose([t.Resize(40), t.CenterCrop(32), open_clip._convert_to_rgb, t.ToTensor()])
    assert_torchs_pixels(dataset_of(folder, older), "images")


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "random"])
@pytest.mark.parametrize("size", [32, (32, 24)])
def test_open_clips_resizes_are_all_native(
    open_clip: Any, folder: Path, mode: str, interpolation: str, size: Any
) -> None:
    made = open_clip.image_transform(size, False, resize_mode=mode, interpolation=interpolation, fill_color=7)
    assert_torchs_pixels(dataset_of(folder, made), "images")


def test_open_clips_colours_run_natively(open_clip: Any, folder: Path) -> None:
    sure = {"color_jitter": ((1.3, 1.3), 0, 0, 0), "color_jitter_prob": 1.0, "gray_scale_prob": 1.0}
    made = open_clip.image_transform(32, True, aug_cfg={"scale": WHOLE, **sure})
    words = assert_torchs_pixels(dataset_of(folder, made), "images")
    assert "color_jitter" in words and "gray_scale" in words
    drawn = {"color_jitter": (0.4, 0.4, 0.4, 0.1), "color_jitter_prob": 0.8, "gray_scale_prob": 0.25}
    made = open_clip.image_transform(32, True, aug_cfg=drawn)
    operations = chain_of(made, feedline.open(folder)).dataset.operations
    jitter = "color_jitter(brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.6, 1.4), hue=(-0.1, 0.1))"
    assert operations[1:3] == [
        f"random_apply([{jitter}], p=0.8)",
        "random_apply([grayscale(num_output_channels=3)], p=0.25)",
    ]
    grey = open_clip.gray_scale(0.5)
    grey.transf = vision.transforms.Grayscale(1)
    t = vision.transforms
    words = DataLoader(dataset_of(folder, t.Compose([t.Resize((20, 30)), grey, t.ToTensor()]))).explain()
    assert "gray_scale returns" in words


def test_open_clips_transforms_by_timm_run_natively(open_clip: Any, timm: Any, folder: Path) -> None:
    options = {"use_timm": True, "scale": WHOLE}
    for interpolation in ("bilinear", "bicubic"):
        made = open_clip.image_transform((3, 32, 24), True, interpolation=interpolation, aug_cfg=options)
        assert_torchs_pixels(dataset_of(folder, made), "images")
    more = {"re_prob": 0.5, "re_count": 2, "color_jitter": (0.4, 0.4, 0.4, 0.1), "ratio": (0.9, 1.1)}
    made = open_clip.image_transform(32, True, interpolation="random", aug_cfg=options | more)
    words = DataLoader(dataset_of(folder, made), 8, lower="require").explain()
    assert "RandomErasing" in words and "ColorJitter" in words


@pytest.mark.parametrize("fill", [0, 5, (1, 200, 3)])
def test_open_clips_longest_side_runs_natively(open_clip: Any, folder: Path, fill: Any) -> None:
    longest = open_clip.image_transform(32, False, resize_mode="longest", fill_color=fill)
    assert_torchs_pixels(dataset_of(folder, longest), "images")
    t = vision.transforms
    by_chance = t.Compose([open_clip.ResizeKeepRatio(32, random_aspect_prob=0.5), t.CenterCrop(32), t.ToTensor()])
    assert plan_of(DataLoader(dataset_of(folder, by_chance))) == "prefix", "its factor is not timm's"


def test_what_follows_open_clips_own_runs_natively(open_clip: Any, folder: Path) -> None:
    t = vision.transforms
    shaded = t.Compose([t.Resize(40), t.CenterCrop(32), t.Grayscale(), open_clip._convert_to_rgb, t.ToTensor()])
    assert_torchs_pixels(dataset_of(folder, shaded), "prefix")


def _of_package(name: str) -> Any:
    """An object whose class claims to be from a package."""

    def call(self: Any, image: Any) -> Any:
        return Image.fromarray(np.array(image)[::-1])

    return type("Flip", (), {"__module__": f"{name}.augmentations.transforms", "__call__": call})()


@pytest.mark.parametrize("version", ["v1", "v2", "timm"])
def test_other_packages_are_named_and_the_rest_runs_natively(
    folder: Path, version: str, request: pytest.FixtureRequest
) -> None:
    """Before and after it; its result is Pillow's, and is examined when it arrives."""
    for package in ("albumentations", "kornia", "transformers", "monai"):
        foreign = _of_package(package)
        if version == "timm":
            made = request.getfixturevalue("timm").create_transform(32)
            made.transforms.insert(2, foreign)
            first, last = "CenterCrop", "Normalize"
        else:
            t = vision.transforms if version == "v1" else vision.transforms.v2
            to_tensor = [t.ToTensor()] if version == "v1" else [t.ToImage(), t.ToDtype(torch.float32, scale=True)]
            made = t.Compose([t.Resize((20, 30)), foreign, t.Resize((16, 16)), *to_tensor])
            first, last = "Resize", "ToTensor" if version == "v1" else "ToDtype"
        words = assert_torchs_pixels(dataset_of(folder, made), "prefix")
        assert f"Flip of {package} is not supported by the engine" in words
        lines = {line.split()[1]: line for line in words.splitlines() if line.strip().startswith("transform")}
        assert "native" in lines[first] and "if Flip returns an RGB or L PIL image" in lines[last]
