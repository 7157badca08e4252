# SPDX-License-Identifier: Apache-2.0
"""torchvision's augmentations in the engine: the same possible results, with the same frequencies."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn_outcomes import SIZE, Outcomes, assert_drawn_as, dataset_of, drawn, image_of, mixed, pixels, small_photo
from lowered import assert_same, plan_of
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader

from feedline import ConfigError, DataLoader

vision = pytest.importorskip("torchvision")
v1, v2 = pytest.importorskip("torchvision.transforms"), pytest.importorskip("torchvision.transforms.v2")
autoaugment = pytest.importorskip("torchvision.transforms.autoaugment")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_photo(tmp_path_factory.mktemp("one"))


def assert_same_pixels(dataset: Any, plan: str) -> None:
    ours = DataLoader(dataset, 8)
    assert plan_of(ours) == plan, ours.explain()
    assert_same(list(ours), list(TorchLoader(dataset, 8)))


# ---- torchvision's own code, run for each possible choice ----


def space_of(t: Any, image: Image.Image, bins: int) -> dict[str, tuple[Any, bool]]:
    if not hasattr(t, "_AUGMENTATION_SPACE"):
        arguments = (bins,) if type(t).__name__ == "TrivialAugmentWide" else (bins, (image.height, image.width))
        space = t._augmentation_space(*arguments)
        return {name: (m if m.ndim else None, signed) for name, (m, signed) in space.items()}
    made = t._AUGMENTATION_SPACE.items()
    return {name: (magnitudes(bins, image.height, image.width), signed) for name, (magnitudes, signed) in made}


def changed(t: Any, image: Image.Image, name: str, magnitude: float) -> Image.Image:
    if hasattr(t, "_AUGMENTATION_SPACE"):
        return t._apply_image_or_video_transform(image, name, magnitude, t.interpolation, t._fill)
    return autoaugment._apply_op(image, name, magnitude, t.interpolation, t.fill)


def changes(t: Any, image: Image.Image, name: str, bin_: Any, bins: int) -> list[tuple[float, Image.Image]]:
    """Returns the possible results of one change, with both signs."""
    magnitudes, signed = space_of(t, image, bins)[name]
    magnitude = 0.0 if magnitudes is None or bin_ is None else float(magnitudes[bin_])
    signs = (1.0, -1.0) if signed else (1.0,)
    return [(1 / len(signs), changed(t, image, name, sign * magnitude)) for sign in signs]


def of_rand_augment(t: Any, image: Image.Image, ops: int | None = None) -> Outcomes:
    left = t.num_ops if ops is None else ops
    if left == 0:
        return {pixels(image): 1.0}
    names = list(space_of(t, image, t.num_magnitude_bins))
    return mixed(
        [
            (share / len(names), of_rand_augment(t, after, left - 1))
            for name in names
            for share, after in changes(t, image, name, t.magnitude, t.num_magnitude_bins)
        ]
    )


def of_trivial_augment(t: Any, image: Image.Image) -> Outcomes:
    bins = t.num_magnitude_bins
    names = list(space_of(t, image, bins))
    return mixed(
        [
            (share / len(names) / bins, {pixels(after): 1.0})
            for name in names
            for bin_ in range(bins)
            for share, after in changes(t, image, name, bin_, bins)
        ]
    )


def of_auto_augment(t: Any, image: Image.Image) -> Outcomes:
    policies = getattr(t, "policies", None) or t._policies

    def steps(before: Image.Image, left: Any) -> Outcomes:
        if not left:
            return {pixels(before): 1.0}
        (name, probability, bin_), *others = left
        parts = [(1 - probability, steps(before, others))] if probability < 1 else []
        for share, after in changes(t, before, name, bin_, 10):
            parts.append((probability * share, steps(after, others)))
        return mixed(parts)

    return mixed([(1 / len(policies), steps(image, pair)) for pair in policies])


AUTOMATIC: dict[str, tuple[Callable[[], Any], Callable[[Any, Image.Image], Outcomes]]] = {
    "rand": (lambda: v1.RandAugment(1), of_rand_augment),
    "rand twice": (lambda: v1.RandAugment(2, 30), of_rand_augment),
    "rand in colour": (
        lambda: v1.RandAugment(1, 5, 10, v1.InterpolationMode.BILINEAR, fill=[9.0, 120.5, 250.0]), of_rand_augment
    ),
    "v2 rand": (lambda: v2.RandAugment(1), of_rand_augment),
    "v2 rand in colour": (lambda: v2.RandAugment(1, 5, 12, "bicubic", fill=(9, 120, 250)), of_rand_augment),
    "trivial": (lambda: v1.TrivialAugmentWide(), of_trivial_augment),
    "trivial bicubic": (
        lambda: v1.TrivialAugmentWide(17, v1.InterpolationMode.BICUBIC, fill=77), of_trivial_augment
    ),
    "v2 rand with its own threshold": (lambda: v2.RandAugment(1, magnitude=8), of_rand_augment),
    "v2 trivial": (lambda: v2.TrivialAugmentWide(), of_trivial_augment),
    "v2 trivial bilinear": (lambda: v2.TrivialAugmentWide(30, v2.InterpolationMode.BILINEAR), of_trivial_augment),
    "auto": (lambda: v1.AutoAugment(), of_auto_augment),
    "auto cifar10": (
        lambda: v1.AutoAugment(v1.AutoAugmentPolicy.CIFAR10, v1.InterpolationMode.BILINEAR), of_auto_augment
    ),
    "v2 auto": (lambda: v2.AutoAugment(), of_auto_augment),
    "v2 auto cifar10": (lambda: v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10, "bilinear"), of_auto_augment),
    "v2 auto svhn": (lambda: v2.AutoAugment(v2.AutoAugmentPolicy.SVHN, fill=(1, 2, 3)), of_auto_augment),
    "auto svhn": (lambda: v1.AutoAugment(v1.AutoAugmentPolicy.SVHN, fill=(1, 2, 3)), of_auto_augment),
}  # fmt: skip


@pytest.mark.parametrize("name", AUTOMATIC)
def test_an_automatic_augmentation_gives_torchvisions_images_as_often(one: Path, name: str) -> None:
    make, outcomes = AUTOMATIC[name]
    assert_drawn_as(drawn(one, make()), outcomes(make(), image_of(one)))


def test_of_grey_images_as_well(one: Path) -> None:
    image = image_of(one, "L")
    t = v1.RandAugment(1, fill=[40])
    assert_drawn_as(drawn(one, v1.Grayscale(), t), of_rand_augment(t, image))
    loader = DataLoader(
        dataset_of(one, v1.Resize(SIZE), v1.Grayscale(), v1.RandAugment(fill=[1, 2, 3]), v1.PILToTensor())
    )
    assert "must have one value for each of 1 channels" in loader.explain()


RANDOM = {
    "RandomInvert": {},
    "RandomPosterize": {"bits": 3},
    "RandomSolarize": {"threshold": 100.5},
    "RandomAdjustSharpness": {"sharpness_factor": 2.5},
    "RandomAutocontrast": {},
    "RandomEqualize": {},
    "RandomGrayscale": {},
}
OF_TENSORS = ("RandomInvert", "RandomPosterize", "RandomSolarize", "RandomEqualize")


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", RANDOM)
def test_a_random_change_has_torchvisions_pixels_and_probability(
    folder: Path, one: Path, module: Any, name: str
) -> None:
    kind, arguments = getattr(module, name), RANDOM[name]
    for before in ([], [module.Grayscale()]):
        for p in (0.0, 1.0):
            chain = [module.Resize((30, 20)), *before, kind(**arguments, p=p), module.PILToTensor()]
            assert_same_pixels(vision.datasets.ImageFolder(folder, module.Compose(chain)), "images")
    image = image_of(one)
    outcomes = mixed([(0.7, {pixels(image): 1.0}), (0.3, {pixels(kind(**arguments, p=1.0)(image)): 1.0})])
    assert_drawn_as(drawn(one, kind(**arguments, p=0.3)), outcomes)


@pytest.mark.parametrize("name", RANDOM)
def test_of_tensors_what_is_the_same_for_every_value(folder: Path, name: str) -> None:
    for module, to_tensor in ((v1, v1.PILToTensor()), (v2, v2.ToImage()), (v2, v2.PILToTensor())):
        kind, arguments = getattr(module, name), RANDOM[name]
        chain = [module.Resize((30, 20)), to_tensor, kind(**arguments, p=1.0)]
        plan = "images" if name in OF_TENSORS else "prefix"
        assert_same_pixels(vision.datasets.ImageFolder(folder, module.Compose(chain)), plan)


def test_v2s_thresholds_of_solarize(tmp_path: Path) -> None:
    """At 11 of 31 bins, they are a millionth above v1's, so one more of the 256 values does not change."""
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    image = Image.fromarray(np.stack([ramp, ramp.T, 255 - ramp], -1))
    (tmp_path / "a").mkdir()
    for number in range(64):
        image.save(tmp_path / "a" / f"{number}.png")
    wanted, of_v1 = (
        {pixels(changed(t, image, "Solarize", float(magnitude))) for magnitude in space_of(t, image, 31)["Solarize"][0]}
        for t in (v2.TrivialAugmentWide(), v1.TrivialAugmentWide())
    )
    assert len(wanted - of_v1) == 11, "torchvision has changed: compute them again"
    chain = v2.Compose([v2.CenterCrop(16), v2.TrivialAugmentWide(), v2.PILToTensor()])
    loader = DataLoader(vision.datasets.ImageFolder(tmp_path, chain), 64, seed=1, lower="require")
    found = {one.numpy().tobytes() for _ in range(40) for batch in loader for one in batch[0]}
    assert not found & (of_v1 - wanted)
    assert len(found & (wanted - of_v1)) > 6


def test_an_object_that_was_changed_stays_in_python(one: Path) -> None:
    def altered(t: Any, **attributes: Any) -> Any:
        for name, value in attributes.items():
            setattr(t, name, value)
        return t

    def hooked(t: Any) -> Any:
        t.register_forward_hook(lambda module, given, made: made)
        return t

    class Own(v1.RandAugment):
        pass

    objects = [
        altered(v1.AutoAugment(), policies=[(("Invert", 1.0, None), ("Invert", 1.0, None))]),
        altered(v2.AutoAugment(v2.AutoAugmentPolicy.SVHN), _policies=[]),
        altered(v2.RandAugment(), _fill={"others": 3, torch.Tensor: 4}),
        altered(v2.RandAugment(), _AUGMENTATION_SPACE={}),
        altered(v1.RandAugment(), _augmentation_space=lambda bins, size: {}),
        altered(v1.RandAugment(), magnitude=31),
        altered(v1.RandomInvert(), forward=lambda image: image),
        hooked(v1.TrivialAugmentWide()),
        Own(),
        v1.RandAugment(fill={Image.Image: 3}),
        v1.RandAugment(interpolation=v1.InterpolationMode.LANCZOS),
        v1.RandomPosterize(9),
    ]
    for t in objects:
        loader = DataLoader(dataset_of(one, v1.Resize((30, 20)), t, v1.PILToTensor()), 4)
        assert plan_of(loader) == "prefix", t
        with pytest.raises(ConfigError, match=rf"transform \({re.escape(type(t).__qualname__)}\): "):
            DataLoader(loader.dataset, 4, lower="require")
    changed_after = v1.RandAugment(1)
    changed_after.magnitude, changed_after.fill = 3, 200
    assert_drawn_as(drawn(one, changed_after), of_rand_augment(changed_after, image_of(one)))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(v1.CenterCrop, "size", (7, 9)), (v2.CenterCrop, "size", (7, 9)), (v1.RandomInvert, "p", 1.0)],
)
def test_a_property_of_a_class_that_hides_what_an_object_keeps_stays_in_python(
    one: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, value: Any
) -> None:
    """The transform then uses the property, and not the value in the object."""
    t = kind((11, 13)) if name == "size" else kind(0.0)
    dataset = dataset_of(one, v1.Resize(SIZE), t, v1.RandomAutocontrast(0.0), v1.PILToTensor())
    plain = next(iter(TorchLoader(dataset)))[0]
    assert plan_of(DataLoader(dataset)) == "images"
    monkeypatch.setattr(kind, name, property(lambda self: value), raising=False)
    loader = DataLoader(dataset)
    assert plan_of(loader) == "prefix", loader.explain()
    (found, _), (wanted, _) = next(iter(loader)), next(iter(TorchLoader(dataset)))
    assert torch.equal(found, wanted) and not torch.equal(plain, wanted)


def test_augmentations_redraw_for_every_sample_and_epoch(one: Path) -> None:
    dataset = dataset_of(one, v1.Resize(SIZE), v1.TrivialAugmentWide(), v1.PILToTensor())
    epochs = {}
    for workers in (0, 3):
        loader = DataLoader(dataset, 40, sampler=[0] * 40, seed=1, num_workers=workers)
        epochs[workers] = [images for _ in range(2) for images, _ in loader]
    assert all(torch.equal(a, b) for a, b in zip(epochs[0], epochs[3], strict=True))
    assert len({image.numpy().tobytes() for image in epochs[0][0]}) > 20
    assert not torch.equal(*epochs[0])
    shape = next(iter(TorchLoader(dataset)))[0].shape
    assert epochs[0][0].shape[1:] == shape[1:]


# ---- geometry ----

WARPS: dict[str, Callable[[Any], list[Any]]] = {
    "turned": lambda t: [t.RandomRotation((30, 30), t.InterpolationMode.BILINEAR, fill=[9, 99, 199])],
    "turned, grown": lambda t: [t.RandomRotation((-50, -50), expand=True, fill=7), t.CenterCrop(40)],
    "turned about": lambda t: [t.RandomRotation([90, 90], center=(3, 5))],
    "slanted": lambda t: [t.RandomAffine((20, 20), scale=(1.3, 1.3), shear=(5, 5), fill=200)],
    "slanted twice": lambda t: [
        t.RandomAffine(0, shear=(5, 5, -9, -9), interpolation=t.InterpolationMode.BICUBIC, center=[4, 4])
    ],
    "no perspective": lambda t: [t.RandomPerspective(0.0, 1.0, t.InterpolationMode.NEAREST)],
    "seldom a perspective": lambda t: [t.RandomPerspective(0.5, 0.0, fill=5)],
}  # fmt: skip
SIZES: dict[str, Callable[[], list[Any]]] = {
    "resized": lambda: [v2.RandomResize(41, 42), v2.CenterCrop(30)],
    "short side": lambda: [v2.RandomShortestSize([37], 45), v2.CenterCrop(30)],
    "one short side": lambda: [v2.RandomShortestSize(37, interpolation="bicubic"), v2.CenterCrop(30)],
    "scaled": lambda: [v2.ScaleJitter((50, 44), (0.8, 0.8)), v2.CenterCrop(30)],
    "long side": lambda: [v2.Resize(None, max_size=50), v2.CenterCrop(30)],
    "lanczos": lambda: [v2.Resize((30, 31), v2.InterpolationMode.LANCZOS)],
    "rgb": lambda: [v2.RGB(), v2.Resize((30, 31))],
}


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("name", WARPS)
def test_a_warp_whose_parameters_are_given_has_torchvisions_pixels(folder: Path, module: Any, name: str) -> None:
    chain = [module.Resize((30, 20)), *WARPS[name](module), module.PILToTensor()]
    assert_same_pixels(vision.datasets.ImageFolder(folder, module.Compose(chain)), "images")


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_is_given_has_torchvisions_pixels(folder: Path, name: str) -> None:
    chain = [*SIZES[name](), v2.PILToTensor()]
    assert_same_pixels(vision.datasets.ImageFolder(folder, v2.Compose(chain)), "images")


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_shifts_are_as_frequent_as_torchvisions(one: Path, module: Any) -> None:
    height, width = SIZE
    image = image_of(one)

    def shares(most: float) -> dict[int, float]:
        edges = np.clip(np.arange(-5.5, 6), -most, most)
        return {k: share for k, share in zip(range(-5, 6), np.diff(edges) / (2 * most), strict=True) if share > 0}

    outcomes = mixed(
        [
            (along_x * along_y, {pixels(v1.functional.affine(image, 0.0, [x, y], 1.0, [0.0, 0.0])): 1.0})
            for x, along_x in shares(0.1 * width).items()
            for y, along_y in shares(0.1 * height).items()
        ]
    )
    assert_drawn_as(drawn(one, module.RandomAffine(0, translate=(0.1, 0.1))), outcomes)


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_an_elastic_transform_runs_natively_within_a_level(folder: Path, module: Any) -> None:
    still = module.Compose([module.Resize((30, 20)), module.ElasticTransform(0.0, 3.0), module.PILToTensor()])
    dataset = vision.datasets.ImageFolder(folder, still)
    ours, theirs = (torch.cat([images for images, _ in kind(dataset, 8)]) for kind in (DataLoader, TorchLoader))
    assert plan_of(DataLoader(dataset, 8)) == "images"
    assert (ours.int() - theirs.int()).abs().max() <= 1
    bent = module.Compose([module.Resize((30, 20)), module.ElasticTransform([60.0, 20.0]), module.PILToTensor()])
    dataset = vision.datasets.ImageFolder(folder, bent)
    first, second = (torch.cat([images for images, _ in DataLoader(dataset, 8, seed=seed)]) for seed in (1, 2))
    assert (first != second).any() and (first != ours).any()
    wraps = module.ElasticTransform(60.0, interpolation=module.InterpolationMode.BICUBIC)
    cut = module.Compose([module.Resize((30, 20)), wraps, module.PILToTensor()])
    dataset = vision.datasets.ImageFolder(folder, cut)
    assert "bicubic interpolation is not supported by the engine" in DataLoader(dataset, 8).explain()


def lists(t: Any, chance: float) -> list[Any]:
    """Returns a decision made by `chance`, 0 or 1."""
    return [
        t.RandomApply([t.RandomInvert(1.0), t.Compose([t.RandomSolarize(100, 1.0)])], chance),
        t.RandomChoice([t.RandomInvert(1.0), t.RandomEqualize(1.0)], [chance, 1 - chance]),
        t.RandomOrder([t.RandomHorizontalFlip(chance), t.RandomPosterize(3, 1.0)]),
    ]


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_lists_of_transforms_run_natively(folder: Path, one: Path, module: Any) -> None:
    for chance in (0.0, 1.0):
        chain = [module.Resize((30, 20)), *lists(module, chance), module.PILToTensor()]
        assert_same_pixels(vision.datasets.ImageFolder(folder, module.Compose(chain)), "images")
    image, invert, equalize = image_of(one), v1.RandomInvert(1.0), v1.RandomEqualize(1.0)
    applied = {pixels(image): 0.7, pixels(invert(image)): 0.3}
    assert_drawn_as(drawn(one, module.RandomApply([module.RandomInvert(1.0)], 0.3)), applied)
    chosen = {pixels(equalize(image)): 0.75, pixels(invert(image)): 0.25}
    choice = module.RandomChoice([module.RandomInvert(1.0), module.RandomEqualize(1.0)], [1, 3])
    assert_drawn_as(drawn(one, choice), chosen)
    ordered = {pixels(invert(equalize(image))): 0.5, pixels(equalize(invert(image))): 0.5}
    order = module.RandomOrder([module.RandomEqualize(1.0), module.RandomInvert(1.0)])
    assert_drawn_as(drawn(one, order), ordered)
    for inner in (module.Grayscale(), blur_of_ones_own):
        dataset = dataset_of(one, module.Resize(SIZE), module.RandomApply([inner]), module.PILToTensor())
        assert plan_of(DataLoader(dataset)) == "prefix"


def blur_of_ones_own(image: Image.Image) -> Image.Image:
    return image


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_erasing_and_blur_run_natively(folder: Path, module: Any) -> None:
    erasing = module.RandomErasing(1.0, (0.25, 0.25), (1.0, 1.0000001), value=(7.0, 8.0, 9.0))
    chain = [module.Resize((20, 20)), v1.ToTensor(), v1.Normalize([0.5], [0.5]), erasing]
    dataset = vision.datasets.ImageFolder(folder, v1.Compose(chain))
    assert plan_of(DataLoader(dataset)) == "images"
    images = torch.cat([images for images, _ in DataLoader(dataset, 8)])
    assert all((images[:, c] == 7.0 + c).sum(dim=(1, 2)).tolist() == [100] * len(images) for c in range(3))
    blurred = module.Compose([module.Resize((30, 20)), module.GaussianBlur((3, 5), (1.5, 1.5)), module.PILToTensor()])
    dataset = vision.datasets.ImageFolder(folder, blurred)
    ours, theirs = (torch.cat([images for images, _ in kind(dataset, 8)]) for kind in (DataLoader, TorchLoader))
    assert plan_of(DataLoader(dataset, 8)) == "images"
    assert (ours.int() - theirs.int()).abs().max() <= 1
