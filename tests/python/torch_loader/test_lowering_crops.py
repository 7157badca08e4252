# SPDX-License-Identifier: Apache-2.0
"""DINOv2's and DINOv3's DataAugmentationDINO in the engine: recognised by their torchvision parts, in any layout."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lowered import assert_same, plan_of
from torch import nn
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader
from feedline.torch_loader.lowering.transforms import dino_views

vision = pytest.importorskip("torchvision")
v1, v2 = pytest.importorskip("torchvision.transforms"), pytest.importorskip("torchvision.transforms.v2")
WHOLE = (50.0, 60.0)  # a scale for which no crop fits into the image: the largest crop within the ratio is used


def blur_of(module: Any) -> type:
    """As in both repositories: RandomApply with the remaining probability p."""

    class GaussianBlur(module.RandomApply):
        def __init__(self, *, p: float, sigma: tuple[float, float] = (0.1, 2.0)) -> None:
            super().__init__([module.GaussianBlur(9, sigma=sigma)], p=1 - p)

    return GaussianBlur


class Parts:
    """The attributes of both repositories' class, with fixed draws for `fixed`."""

    def __init__(self, module: Any, fixed: bool = False, locals_: int = 3) -> None:
        t, bicubic = module, module.InterpolationMode.BICUBIC
        flip = t.RandomHorizontalFlip(1.0 if fixed else 0.5)
        jitter = t.RandomApply([t.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.0 if fixed else 0.8)
        grey = t.RandomGrayscale(1.0 if fixed else 0.2)
        blur = blur_of(module)
        scales = [WHOLE, WHOLE] if fixed else [(0.32, 1.0), (0.05, 0.32)]
        self.local_crops_number = locals_
        self.geometric_augmentation_global = t.Compose(
            [t.RandomResizedCrop(32, scales[0], interpolation=bicubic), flip]
        )
        self.geometric_augmentation_local = t.Compose([t.RandomResizedCrop(16, scales[1], interpolation=bicubic), flip])
        to_tensor = [t.ToTensor()] if module is v1 else [t.ToImage(), t.ToDtype(torch.float32, scale=True)]
        self.normalize = t.Compose([*to_tensor, t.Normalize(mean=(0.5, 0.4, 0.3), std=(0.5, 0.6, 0.7))])
        still = nn.Identity()
        self.resize_global_post_transf = nn.Identity()
        colours = [still, t.Compose([jitter, grey])]
        solarize = t.Compose([blur(p=1.0 if fixed else 0.1), t.RandomSolarize(threshold=128, p=1.0 if fixed else 0.2)])
        self.global_transfo1 = t.Compose([*colours, blur(p=1.0), self.normalize])
        self.global_transfo2 = t.Compose([*colours, solarize, self.normalize])
        self.local_transfo = t.Compose([*colours, blur(p=1.0 if fixed else 0.5), self.normalize])

    def large(self, image: Any) -> list[Any]:
        transforms = (self.global_transfo1, self.global_transfo2)
        return [self.resize_global_post_transf(one(self.geometric_augmentation_global(image))) for one in transforms]

    def small(self, image: Any) -> list[Any]:
        return [self.local_transfo(self.geometric_augmentation_local(image)) for _ in range(self.local_crops_number)]


def named(base: type, call: Callable[[Any, Any], Any], **members: Any) -> type:
    return type("DataAugmentationDINO", (base,), {"__call__": call, **members})


def as_published(self: Any, image: Any) -> Any:
    large = self.large(image)
    return {"global_crops": large, "global_crops_teacher": list(large), "local_crops": self.small(image), "offsets": ()}


def with_flag(self: Any, image: Any) -> Any:
    return {"weak_flag": True} | as_published(self, image)


def dataset_of(folder: Path, augmentation: Any) -> Any:
    return vision.datasets.ImageFolder(folder, augmentation)


def first_of(batch: Any) -> Any:
    return batch


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("call", [as_published, with_flag])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_crops_are_torchvisions_in_the_layout_of_the_class(
    folder: Path, module: Any, call: Any, workers: int
) -> None:
    dataset = dataset_of(folder, named(Parts, call)(module, fixed=True))
    ours = DataLoader(dataset, 4, collate_fn=first_of, num_workers=workers)
    assert plan_of(ours) == "prefix"
    theirs = [sample for batch in TorchLoader(dataset, 4, collate_fn=first_of) for sample in batch]
    found = [sample for batch in ours for sample in batch]
    assert_same(found, theirs)
    assert all(s["global_crops"][0] is s["global_crops_teacher"][0] for s, _ in found) or workers
    assert_same(list(DataLoader(dataset, 4)), list(TorchLoader(dataset, 4)))


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
def test_every_view_draws_what_its_parts_specify(folder: Path, module: Any) -> None:
    """Other tests compare the draws of each operation with torchvision; this test shows that the operations are the
    same.
    """
    augmentation = named(Parts, as_published)(module)
    crops = dino_views.crops_of(augmentation)
    assert isinstance(crops, dino_views.Crops) and len(crops.chains) == 5
    for i, chain in enumerate(crops.chains):
        size, scale = (32, "(0.32, 1)") if i < 2 else (16, "(0.05, 0.32)")
        blurred = (0, 0.9, 0.5, 0.5, 0.5)[i]  # 1 - p
        words = [
            f"random_resized_crop({size}, {size}, scale={scale}, ratio=(0.75, 1.3333333333333333), "
            "interpolation=bicubic)",
            "random_horizontal_flip(p=0.5)",
            "random_apply([color_jitter(brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.8, 1.2), "
            "hue=(-0.1, 0.1))], p=0.8)",
            "random_grayscale(p=0.2)",
            f"random_apply([gaussian_blur(kernel_size=(9, 9), sigma=(0.1, 2))], p={blurred})",
            *(["random_solarize(threshold=128, p=0.2)"] if i == 1 else []),
            "to_dtype(float32, scale=True)",
            "normalize(mean=(0.5, 0.4, 0.3), std=(0.5, 0.6, 0.7))",
        ]
        assert chain.dataset.operations == words
    words = DataLoader(dataset_of(folder, augmentation), 4).explain()
    assert (
        "view 1: RandomResizedCrop, RandomHorizontalFlip, RandomApply, RandomGrayscale, RandomApply, RandomSol" in words
    )
    assert words.count("the engine draws random numbers") == 5
    assert "several crops of an image" in words
    batches = list(DataLoader(dataset_of(folder, augmentation), 1, sampler=[0] * 12))
    views = [view for crops, _ in batches for view in (*crops["global_crops"], *crops["local_crops"])]
    assert len({view.numpy().tobytes() for view in views}) == 12 * 5


def test_with_a_seed_workers_change_nothing(folder: Path) -> None:
    dataset = dataset_of(folder, named(Parts, as_published)(v2))
    epochs = {n: list(DataLoader(dataset, 4, num_workers=n, seed=5)) for n in (0, 2)}
    assert_same(epochs[0], epochs[2])


# ---- where its parts are defined ----


class OfClass(Parts):
    """Its transforms are attributes of the class, and one of them is in a list."""

    to_tensor = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    crops = (v2.RandomResizedCrop(32, WHOLE), v2.RandomResizedCrop(16, WHOLE))

    def __init__(self) -> None:
        self.colours = [v2.RandomGrayscale(1.0), v2.RandomSolarize(100, 1.0)]
        self.by_name = {"flip": v2.RandomHorizontalFlip(1.0)}
        self.modules = nn.ModuleList([v2.RandomInvert(1.0)])


def of_class(self: Any, image: Any) -> Any:
    views = [self.to_tensor(colour(self.crops[0](image))) for colour in self.colours]
    return views, self.to_tensor(self.modules[0](self.by_name["flip"](self.crops[1](image))))


GLOBAL_CROP = v2.RandomResizedCrop(24, WHOLE)
GLOBAL_TENSOR = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def as_tensor(image: Any) -> Any:
    return GLOBAL_TENSOR(image)


def of_module(self: Any, image: Any, last: Any = v2.RandomInvert(1.0)) -> Any:  # noqa: B008  # a default is one place
    return as_tensor(GLOBAL_CROP(image)), [as_tensor(last(GLOBAL_CROP(image)))]


def of_function() -> Any:
    crop, tensor = v1.RandomResizedCrop(20, WHOLE), v1.ToTensor()

    def call(self: Any, image: Any) -> Any:
        return {"a": tensor(crop(image)), "b": self.normalize(crop(image))}

    return call


def sharing_colours(self: Any, image: Any) -> Any:
    """DINOv3's share_color_jitter."""
    return as_published(self, self.colours(image))


def sharing_a_crop(self: Any, image: Any) -> Any:
    crop = self.geometric_augmentation_global(image)
    return [self.global_transfo1(crop), self.global_transfo2(crop)]


def sharing_what_is_not_drawn(self: Any, image: Any) -> Any:
    """Two of three views have a common step without random draws."""
    grey = self.grey(image)
    return [self.normalize(self.first(grey)), self.normalize(self.second(grey)), self.normalize(self.first(image))]


def with_parts(augmentation: Any, **parts: Any) -> Any:
    vars(augmentation).update(parts)
    return augmentation


PLACES: dict[str, Callable[[], Any]] = {
    "the class": lambda: named(OfClass, of_class)(),
    "the module": lambda: named(Parts, of_module)(v2, fixed=True),
    "the function around it": lambda: named(Parts, of_function())(v1, fixed=True),
    "colours are shared": lambda: with_parts(
        named(Parts, sharing_colours)(v2, fixed=True), colours=v2.Compose([v2.RandomInvert(1.0), nn.Identity()])
    ),
    "grey is shared": lambda: with_parts(
        named(Parts, sharing_colours)(v2, fixed=True),
        colours=v2.Grayscale(),
        normalize=v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
        global_transfo1=v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
        global_transfo2=v2.Compose([v2.RandomSolarize(9, 1.0), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
        local_transfo=v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
    ),
    "a crop is shared": lambda: named(Parts, sharing_a_crop)(v1, fixed=True),
    "a step is shared": lambda: with_parts(
        named(Parts, sharing_what_is_not_drawn)(v1),
        grey=v1.Compose([v1.Resize((40, 50)), v1.Grayscale(3)]),
        first=v1.Resize((20, 24)),
        second=v1.CenterCrop(19),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_parts_are_known_wherever_they_come_from(folder: Path, place: str) -> None:
    dataset = dataset_of(folder, PLACES[place]())
    ours = DataLoader(dataset, 4)
    words = str(ours.explain())
    assert plan_of(ours) == "prefix", words
    assert "view 0: " in words and "native, in this process: once for all views" in words
    assert_same(list(ours), list(TorchLoader(dataset, 4)))


def test_what_views_share_is_drawn_once(folder: Path) -> None:
    """A flip before all crops mirrors all views of an image, or none; each crop draws separately."""
    tensor = v2.Compose([v2.Resize((20, 24)), v2.ToImage()])
    augmentation = with_parts(
        named(Parts, flipped_and_cropped)(v2), flip=v2.RandomHorizontalFlip(), plain=tensor, invert=v2.RandomInvert()
    )
    dataset = dataset_of(folder, augmentation)
    loader = DataLoader(dataset, 4, sampler=[1] * 400)
    words = str(loader.explain())
    assert "RandomHorizontalFlip" in words and "once for all views; the engine draws random numbers" in words
    file = TorchLoader(dataset_of(folder, tensor), 1, sampler=[1])
    plain = next(iter(file))[0][0]
    kinds = []
    for views, _ in loader:
        for first, second in zip(*views, strict=True):
            mirrored = torch.equal(first, plain.flip(-1))
            assert mirrored or torch.equal(first, plain)
            inverted = not torch.equal(second, first)
            assert torch.equal(second, 255 - first if inverted else first)
            kinds.append((mirrored, inverted))
    assert all(60 < kinds.count(one) < 140 for one in ((False, False), (False, True), (True, False), (True, True)))


def flipped_and_cropped(self: Any, image: Any) -> Any:
    image = self.flip(image)
    return [self.plain(image), self.invert(self.plain(image))]


# ---- DINOv3's options, with which several views use one random crop ----


def of_dinov3(self: Any, image: Any) -> Any:
    """As published with teacher_no_color_jitter, and gram_teacher_crops_size if resize_gram_teacher is set."""
    bases = [self.geometric_augmentation_global(image) for _ in range(2)]
    large = [self.global_transfo1(bases[0]), self.global_transfo2(bases[1])]
    made = {"global_crops": large, "global_crops_teacher": [self.normalize(base) for base in bases]}
    if self.resize_gram_teacher is not None:
        made["gram_teacher_crops"] = [self.normalize(self.resize_gram_teacher(base)) for base in bases]
    return made | {"local_crops": self.small(image), "offsets": ()}


def dinov3(module: Any, fixed: bool, gram: int | None) -> Any:
    augmentation = named(Parts, of_dinov3)(module, fixed=fixed)
    augmentation.resize_gram_teacher = gram and module.Resize(gram, interpolation=module.InterpolationMode.BICUBIC)
    return augmentation


@pytest.mark.parametrize("module", [v1, v2], ids=["v1", "v2"])
@pytest.mark.parametrize("gram", [None, 32, 25])
def test_dinov3s_crops_for_teachers_are_torchvisions(folder: Path, module: Any, gram: int | None) -> None:
    dataset = dataset_of(folder, dinov3(module, True, gram))
    ours = DataLoader(dataset, 4, collate_fn=first_of)
    assert plan_of(ours) == "prefix", ours.explain()
    assert "view 2 (begins as view 0): RandomResizedCrop, RandomHorizontalFlip" in ours.explain()
    theirs = [sample for batch in TorchLoader(dataset, 4, collate_fn=first_of) for sample in batch]
    assert_same([sample for batch in ours for sample in batch], theirs)


def test_views_of_one_random_crop_are_drawn_alike(folder: Path) -> None:
    """The teacher gets the student's crop, here inverted; a smaller one is resized from the same crop."""
    augmentation = dinov3(v2, False, 25)
    augmentation.normalize = v2.Compose([v2.ToImage()])
    augmentation.global_transfo1 = augmentation.global_transfo2 = v2.Compose([v2.RandomInvert(1.0), v2.ToImage()])
    loader = DataLoader(dataset_of(folder, augmentation), 4, collate_fn=first_of, shuffle=True, seed=2)
    assert plan_of(loader) == "prefix", loader.explain()
    crops, total = set(), 0
    for sample, _ in (one for _ in range(6) for batch in loader for one in batch):
        students, teachers, grams = (sample[f"{k}_crops{t}"] for k, t in GIVEN)
        for student, teacher, gram in zip(students, teachers, grams, strict=True):
            assert torch.equal(student, 255 - teacher)
            resized = v1.functional.resize(v1.functional.to_pil_image(teacher), [25, 25], v1.InterpolationMode.BICUBIC)
            assert torch.equal(gram, v1.functional.pil_to_tensor(resized))
            crops.add(teacher.numpy().tobytes())
            total += 1
    assert total >= 80 and len(crops) > 0.9 * total  # each of the two is drawn separately in every epoch


GIVEN = (("global", ""), ("global", "_teacher"), ("gram_teacher", ""))


def one_behind_the_other(self: Any, image: Any) -> Any:
    crop = self.geometric_augmentation_global(image)
    changed = self.global_transfo1(crop)
    last = self.normalize(self.global_transfo2(changed))
    other = self.normalize(self.geometric_augmentation_global(image))
    return [self.normalize(crop), self.normalize(changed), last, other]


def test_of_several_forks_each_is_drawn_as_the_first_view_after_it(folder: Path) -> None:
    augmentation = named(Parts, one_behind_the_other)(v2)
    augmentation.normalize = v2.ToImage()
    augmentation.global_transfo1, augmentation.global_transfo2 = v2.RandomInvert(0.5), v2.RandomInvert(1.0)
    crops = dino_views.crops_of(augmentation)
    assert isinstance(crops, dino_views.Crops)
    assert crops.drawn_as == ((), (0, 0), (0, 0, 1), ())
    loader = DataLoader(dataset_of(folder, augmentation), 4, collate_fn=first_of, seed=1)
    inverted = []
    for (crop, changed, last, other), _ in (one for _ in range(8) for batch in loader for one in batch):
        assert not torch.equal(crop, other)
        inverted.append(torch.equal(changed, 255 - crop))
        assert torch.equal(changed, 255 - crop if inverted[-1] else crop)
        assert torch.equal(last, 255 - changed)
    assert 0.25 < sum(inverted) / len(inverted) < 0.75


def with_distorted_grams(self: Any, image: Any) -> Any:
    crops = self.large(image)
    return {"global_crops": crops, "gram_teacher_crops": [self.resize_gram_teacher(crop) for crop in crops]}


def cut_out_of_crops(self: Any, image: Any) -> Any:
    crops = [self.local_transfo(self.geometric_augmentation_global(image)) for _ in range(2)]
    return [crop[:, at : at + 16, at : at + 16] for crop in crops for at in np.random.randint(0, 2, 2) * 8]


def test_what_views_cannot_express_of_dinov3_stays_in_python_by_its_option(folder: Path) -> None:
    grams = named(Parts, with_distorted_grams)(v2)
    grams.gram_teacher_crops_size, grams.gram_teacher_no_distortions = 25, False
    grams.resize_gram_teacher = v2.Resize(25)
    subset = named(Parts, cut_out_of_crops)(v2)
    subset.local_crops_subset_of_global_crops = True
    for augmentation, why in (
        (grams, "gram_teacher_crops_size without gram_teacher_no_distortions resizes normalized tensors"),
        (subset, "local_crops_subset_of_global_crops crops tensors at positions from NumPy's generator"),
    ):
        loader = DataLoader(dataset_of(folder, augmentation), 4, collate_fn=first_of)
        assert plan_of(loader) == "python"
        assert why in loader.explain(), loader.explain()
        assert len(next(iter(loader))) == 4


# ---- classes with additional code ----


def making_its_own(self: Any, image: Any) -> Any:
    """v2's transforms return unknown objects unchanged."""
    return [v2.ToDtype(torch.float32)(self.normalize(self.geometric_augmentation_global(image)))]


def making_its_own_crop(self: Any, image: Any) -> Any:
    return [self.normalize(v2.Resize((9, 9))(image))]


CALLS = 0


def counting_in_the_module(self: Any, image: Any) -> Any:
    global CALLS
    CALLS += 1
    return self.large(image)


def looking(self: Any, image: Any) -> Any:
    return {"global_crops": self.large(image), "size": image.size}


def drawing(self: Any, image: Any) -> Any:
    return self.large(image)[: 1 + (torch.rand(1).item() < 2)]


def drawing_in_numpy(self: Any, image: Any) -> Any:
    return self.large(image)[: 1 + (np.random.randint(0, 1000) >= 0)]


def counting(self: Any, image: Any) -> Any:
    self.calls = getattr(self, "calls", 0) + 1
    return self.large(image)


def unfinished(self: Any, image: Any) -> Any:
    return [self.geometric_augmentation_global(image)]


def without_image(self: Any, image: Any) -> Any:
    return [1, 2]


REFUSED = {
    "creates a transform for each image": making_its_own,
    "creates a transform": making_its_own_crop,
    "draws random numbers or stores": counting_in_the_module,
    "uses an image in other ways than passing it to a transform": looking,
    "draws random numbers or stores data": drawing,
    "draws random numbers": drawing_in_numpy,
    "stores data itself": counting,
    "returns a PIL image": unfinished,
    "returns 0 crops": without_image,
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_class_that_does_more_stays_in_python_by_name(folder: Path, why: str) -> None:
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()
    augmentation = named(Parts, REFUSED[why])(v2)
    before = dict(vars(augmentation))
    loader = DataLoader(dataset_of(folder, augmentation), 4, collate_fn=first_of)
    assert plan_of(loader) == "python"
    assert why in loader.explain(), loader.explain()
    assert vars(augmentation) == before
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1:] == (random.getstate(), np.random.get_state()[1].tobytes())


def test_parts_that_are_not_known_and_other_names_stay_in_python(folder: Path) -> None:
    def with_part(**parts: Any) -> Any:
        augmentation = named(Parts, as_published)(v1)
        vars(augmentation).update(parts)
        return augmentation

    class GaussianBlur(v1.RandomApply):
        def forward(self, image: Any) -> Any:
            return image

    other = type("OtherAugmentation", (Parts,), {"__call__": as_published})(v1)
    cases = {
        "is not supported by the engine": with_part(local_transfo=v1.Lambda(v1.ToTensor())),
        "GaussianBlur is not supported": with_part(
            global_transfo1=v1.Compose([GaussianBlur([v1.RandomInvert()]), v1.ToTensor()])
        ),
        "overrides a method": with_part(large=lambda image: []),
        "OtherAugmentation is not supported": other,
    }
    for why, augmentation in cases.items():
        loader = DataLoader(dataset_of(folder, augmentation), 4)
        assert plan_of(loader) == "python", why
        assert why in loader.explain()
