# SPDX-License-Identifier: Apache-2.0
"""Folders of images whose first transforms run natively in the workers: the others get torchvision's results."""

from __future__ import annotations

import functools
import random
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, assert_same_epochs, error_of, plan_of, random_states
from PIL import Image, ImageFilter
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset, default_collate, get_worker_info

from feedline import ConfigError, DataLoader
from feedline.torch_loader.native import prefix as native_prefix


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture
def real(vision):
    if not hasattr(vision, "__version__"):
        pytest.skip("needs torchvision itself")
    return vision


@pytest.fixture
def make(vision, folder):
    """A folder of these transforms."""
    return lambda *chain, **options: vision.datasets.ImageFolder(folder, vision.transforms.Compose(chain), **options)


def describe(image):
    """The properties of a PIL image that a user may access."""
    return np.array(image), image.mode, image.size


def blur(image):
    return image.filter(ImageFilter.GaussianBlur(1))


def noise(tensor):
    """From all three generators."""
    return tensor + torch.rand(1) + random.random() + np.random.rand()


def as_bytes(image):
    return torch.from_numpy(np.array(image))


def first_of(samples):
    """A collate_fn."""
    return [label for _, label in samples], samples[0][0]


def worker_of(image):
    info = get_worker_info()
    return -1 if info is None else info.id


def kind_of_dataset(image):
    info = get_worker_info()
    return "" if info is None else type(info.dataset).__name__


@pytest.mark.parametrize("workers", [0, 2])
def test_a_transform_of_ones_own_gets_the_image_that_torchvision_gives(vision, make, workers):
    t = vision.transforms
    for chain in (
        [t.Resize((20, 30)), describe],
        [t.Resize(40), t.CenterCrop(32), t.Grayscale(), describe],
        [t.Resize(40), t.CenterCrop(32), blur, t.ToTensor()],
        [t.Resize((20, 30)), t.ToTensor(), t.Normalize([0.5], [0.5]), t.Lambda(torch.sin)],
        [t.Resize((20, 30)), t.PILToTensor(), torch.Tensor.float],
        [t.Resize((20, 30)), t.Compose([t.Grayscale(3), blur]), t.PILToTensor()],
    ):
        assert_same_epochs(make(*chain), plan="prefix", batch_size=4, workers=workers, shuffle=True)


@pytest.mark.parametrize("version", ["v1", "v2", "mixed"])
def test_torchvisions_own_transforms_continue_from_it(real, make, version):
    t, v2 = real.transforms, real.transforms.v2
    chains = {
        "v1": [
            [t.Resize((20, 30)), t.AugMix(), t.ToTensor()],
            [t.CenterCrop(32), t.AugMix(), t.PILToTensor()],
            [t.Resize((32, 32)), t.PILToTensor(), t.Resize((8, 8))],
        ],
        "v2": [
            [v2.Resize((20, 30)), v2.RandomChannelPermutation(), v2.ToImage()],
            [v2.Resize((20, 30)), v2.ToImage(), v2.RandomChannelPermutation(), v2.ToDtype(torch.float32, scale=True)],
            [v2.Resize((20, 30)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.RandomChannelPermutation()],
            [v2.CenterCrop(30), v2.AugMix(), v2.PILToTensor()],
        ],
        "mixed": [
            [v2.Resize((20, 30)), t.AugMix(), v2.PILToTensor()],
            [t.Resize((20, 30)), v2.ToImage(), t.ConvertImageDtype(torch.float32), v2.ToPureTensor(), torch.sin],
        ],
    }
    for chain in chains[version]:
        assert_same_epochs(make(*chain), plan="prefix", batch_size=4)


def test_the_type_of_torchvisions_tensors_is_kept(real, make):
    v2 = real.transforms.v2
    scaled, norm = v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])
    for chain in (
        [v2.ToImage()],
        [v2.ToImage(), scaled],
        [v2.ToImage(), scaled, norm],
        [v2.ToImage(), v2.RandomHorizontalFlip(1.0)],
        [v2.ToImage(), v2.ToPureTensor()],
        [v2.PILToTensor(), scaled],
        [v2.ToImage(), real.transforms.ConvertImageDtype(torch.float32)],
        [v2.ToImage(), scaled, real.transforms.Normalize([0.5], [0.5])],
    ):
        dataset = make(v2.Resize((20, 30)), *chain, lambda tensor: type(tensor).__name__)
        assert plan_of(DataLoader(dataset, 4)) == "prefix"
        ours, theirs = (next(iter(kind(dataset, 4)))[0] for kind in (DataLoader, TorchLoader))
        assert ours == theirs
    flipped = make(v2.Resize((20, 30)), v2.ToImage(), real.transforms.RandomHorizontalFlip(), torch.Tensor.float)
    assert "returns an Image or a tensor" in DataLoader(flipped).explain()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver", "thread"])
def test_any_kind_of_worker(vision, folder, make, method):
    t = vision.transforms
    dataset = make(t.Resize((20, 30)), as_bytes)
    options = {"worker_method": "thread"} if method == "thread" else {"multiprocessing_context": method}
    if method in ("spawn", "forkserver") and not hasattr(vision, "__version__"):
        pytest.skip("the stand-in for torchvision is not there in a fresh process")
    loader = DataLoader(dataset, 4, num_workers=2, **options)
    assert plan_of(loader) == "prefix"
    assert_same(list(loader), list(TorchLoader(dataset, 4)))


def test_transforms_know_which_worker_they_run_in_and_whose_dataset(vision, make):
    t = vision.transforms
    ids = [set(b[0].tolist()) for b in DataLoader(make(t.Resize((9, 9)), worker_of), 4, num_workers=2)]
    assert ids == [{0}, {1}] * 3
    for options in ({"num_workers": 1}, {"num_workers": 1, "worker_method": "thread"}, {}):
        names = next(iter(DataLoader(make(t.Resize((9, 9)), kind_of_dataset), 4, **options)))[0]
        assert set(names) == ({"ImageFolder"} if options else {""})


def test_labels_and_batches_are_made_by_ones_own_functions(vision, make):
    t = vision.transforms
    whole = [t.Resize((20, 30)), t.ToTensor()]
    for dataset, options in (
        (make(*whole, target_transform=str), {}),
        (make(*whole), {"collate_fn": first_of}),
        (make(*whole), {"collate_fn": lambda samples: default_collate(samples)}),
        (make(*whole), {"batch_size": None}),
        (make(*whole, target_transform=lambda label: label / 2), {"collate_fn": first_of}),
        (Subset(make(*whole, target_transform=str), [3, -1, 3]), {}),
    ):
        assert_same_epochs(dataset, plan="prefix", **{"batch_size": 4, **options})


@pytest.mark.parametrize("workers", [0, 2])
def test_random_numbers_after_a_prefix_are_torchs(vision, make, workers):
    """Nothing is drawn for a prefix without decisions."""
    t = vision.transforms
    dataset = make(t.Resize((20, 30)), t.ToTensor(), noise)
    found = []
    for kind in (DataLoader, TorchLoader):
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)
        found.append((list(kind(dataset, 4, shuffle=True, num_workers=workers)), random_states()))
    assert_same(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_random_crops_of_a_prefix_come_from_torchs_generator_or_the_seed(vision, make):
    t = vision.transforms
    dataset = make(t.RandomResizedCrop(16), t.RandomHorizontalFlip(), blur, t.ToTensor())

    def epochs(manual, workers, **options):
        torch.manual_seed(manual)
        loader = DataLoader(dataset, 4, num_workers=workers, **options)
        assert plan_of(loader) == "prefix"
        return [list(loader), list(loader)]

    assert_same(epochs(1, 2), epochs(1, 2))
    assert not torch.equal(epochs(1, 2)[0][0][0], epochs(2, 2)[0][0][0])
    seeded = epochs(1, 0, seed=5)
    assert_same(seeded, epochs(2, 1, seed=5))
    assert_same(seeded, epochs(3, 2, seed=5))
    assert not torch.equal(seeded[0][0][0], seeded[1][0][0])


@pytest.mark.parametrize("workers", [0, 1])
def test_files_that_the_engine_does_not_read_are_read_by_the_dataset(vision, folder, tmp_path, workers):
    t = vision.transforms
    root = Path(shutil.copytree(folder, tmp_path / "photos"))
    dataset = vision.datasets.ImageFolder(root, t.Compose([t.Resize((20, 30)), as_bytes]))
    for index in (1, 9):
        path = dataset.samples[index][0]
        Image.open(path).convert("RGB").save(path, "BMP")
    assert_same_epochs(dataset, plan="prefix", batch_size=4, workers=workers)
    Path(dataset.samples[6][0]).write_text("no image")
    ours, theirs = DataLoader(dataset, 4, num_workers=workers), TorchLoader(dataset, 4)
    assert error_of(lambda: list(ours)) is error_of(lambda: list(theirs)) is not None
    skipped = [
        list(DataLoader(dataset, 4, num_workers=workers, on_error="skip", lower=lower)) for lower in ("auto", "never")
    ]
    assert_same(*skipped)


def test_an_error_of_a_transform_is_its_own(vision, make):
    def broken(image):
        raise KeyError("mine")

    dataset = make(vision.transforms.Resize((9, 9)), broken)
    for workers in (0, 1):
        with pytest.raises(KeyError, match="mine"):
            next(iter(DataLoader(dataset, 4, num_workers=workers)))
    for bad in ([21], ["x"], [1.5], [None]):
        kinds = (DataLoader, TorchLoader)
        found = [error_of(lambda kind=kind, bad=bad: list(kind(dataset, sampler=bad))) for kind in kinds]
        assert found[0] is found[1]


def test_explain_reports_what_runs_where(vision, make):
    t = vision.transforms
    dataset = make(t.Resize((20, 30)), t.Lambda(blur), t.ToTensor())
    words = DataLoader(dataset, 4, num_workers=2).explain()
    assert "native, within each worker" in words and "Python, in 2 worker processes" in words
    assert "Lambda is not supported by the engine" in words
    assert "in 2 worker threads" in DataLoader(dataset, 4, num_workers=2, worker_method="thread").explain()
    with pytest.raises(ConfigError, match=r"transform \(Lambda\): Lambda is not supported"):
        DataLoader(dataset, 4, lower="require")
    with pytest.raises(ConfigError, match=r"collate \(first_of\): collate_fn is not torch's default_collate"):
        DataLoader(make(t.Resize((9, 9)), t.ToTensor()), 4, collate_fn=first_of, lower="require")
    assert plan_of(DataLoader(dataset, lower="never")) == "python"
    assert plan_of(DataLoader(make(blur, t.Resize((9, 9)), t.ToTensor()))) == "prefix"
    assert plan_of(DataLoader(make(blur, t.RandomHorizontalFlip()))) == "python"
    assert plan_of(DataLoader(make(t.RandomHorizontalFlip(), blur))) == "python"
    assert plan_of(DataLoader(dataset, num_workers=1, worker_init_fn=print)) == "python"


@pytest.fixture
def frameworks(monkeypatch):
    """Modules with the functions that frameworks pass to loaders."""
    modules = {}
    for name in ("transformers.trainer_utils", "lightning.fabric.utilities.seed", "timm.data.loader"):
        modules[name] = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
    modules["transformers.trainer_utils"].seed_worker = seed_worker
    modules["lightning.fabric.utilities.seed"].pl_worker_init_function = seed_by_rank
    modules["timm.data.loader"]._worker_init = seed_as_told
    return modules


def seed_worker(worker, num_workers=1, rank=0):
    torch.manual_seed(7)


def seed_by_rank(worker, rank=None):
    torch.manual_seed(worker)


def seed_as_told(worker, worker_seeding="all"):
    torch.manual_seed(worker)


def seed_elsewhere(worker):
    torch.manual_seed(7)


def test_functions_of_frameworks_that_seed_workers_keep_nothing_in_python(vision, make, frameworks):
    t, partial = vision.transforms, functools.partial
    whole, blurred = make(t.Resize((9, 9)), t.ToTensor()), make(t.Resize((9, 9)), blur, t.ToTensor())
    for known in (
        seed_worker,
        partial(seed_worker, num_workers=2, rank=1),
        partial(seed_by_rank, rank=0),
        partial(seed_as_told, worker_seeding="part"),
    ):
        assert plan_of(DataLoader(whole, num_workers=1, worker_init_fn=known)) == "images", known
        assert plan_of(DataLoader(blurred, num_workers=1, worker_init_fn=known)) == "prefix", known
    for foreign in (
        seed_elsewhere,
        partial(seed_worker, 3),
        partial(seed_worker, seed=3),
        partial(seed_as_told, worker_seeding=seed_elsewhere),
        partial(seed_elsewhere),
    ):
        assert plan_of(DataLoader(whole, num_workers=1, worker_init_fn=foreign)) == "python", foreign


def test_workers_that_a_framework_seeds_draw_from_that_seed(vision, make, frameworks):
    dataset = make(vision.transforms.RandomResizedCrop(9), blur, vision.transforms.ToTensor())
    options = {"batch_size": 4, "num_workers": 1}
    epochs = [list(DataLoader(dataset, worker_init_fn=seed_worker, **options)) for _ in range(2)]
    epochs.append(list(DataLoader(dataset, **options)))
    first = [epoch[0][0] for epoch in epochs]
    assert torch.equal(first[0], first[1]) and not torch.equal(first[0], first[2])


# ---- known transforms after unknown ones ----


def to_gray(image):
    return image.convert("L")


def with_alpha(image):
    return image.convert("RGBA")


def by_index(image):
    """Another kind of image for each size of crop."""
    kinds = (to_gray, with_alpha, blur, np.array, lambda image: image)
    return kinds[image.getpixel((0, 0))[0] % len(kinds)](image)


def count_native(monkeypatch) -> list:
    """Returns the images that known transforms after unknown ones received, in this process."""
    seen = []
    read_image = native_prefix.Reader.read_image
    monkeypatch.setattr(
        native_prefix.Reader, "read_image", lambda self, image: (seen.append(image.mode), read_image(self, image))[1]
    )
    return seen


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_known_after_a_transform_of_ones_own_runs_natively(vision, make, workers, monkeypatch):
    t = vision.transforms
    norm = t.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    seen = count_native(monkeypatch)
    chains = (
        [t.Resize(40), blur, t.CenterCrop(32), t.ToTensor(), norm],
        [t.Resize((20, 30)), blur, t.Resize((16, 16)), t.Grayscale(), t.ToTensor(), t.Normalize([0.5], [0.5])],
        [blur, t.Resize((20, 30)), t.PILToTensor()],
        [blur, t.Compose([t.Resize((20, 30)), blur]), t.ToTensor(), norm, torch.sin],
        [t.Resize(40), blur, t.Resize((20, 30)), t.ToTensor(), t.Lambda(torch.sin), norm],
        [t.Resize((20, 30)), to_gray, t.ToTensor(), t.Normalize([0.5], [0.5])],
    )
    for chain in chains:
        dataset = make(*chain)
        assert_same_epochs(dataset, plan="prefix", batch_size=4, workers=workers, shuffle=True)
        words = DataLoader(dataset, 4).explain()
        assert "if blur returns an RGB or L PIL image" in words or "if to_gray returns an RGB or L PIL image" in words
    assert workers or seen == ["RGB"] * 5 * 21 + ["RGB"] * 21 + ["L"] * 21


def test_other_values_than_pillows_rgb_and_grey_continue_as_they_are(vision, folder, make, monkeypatch):
    t = vision.transforms
    for one, native in ((with_alpha, 0), (np.array, 0), (t.ToTensor(), 0), (by_index, 3), (t.Lambda(np.array), 0)):
        seen = count_native(monkeypatch)
        behind = [t.Normalize([0.5], [0.5])] if isinstance(one, t.ToTensor) else [t.ToTensor()]
        dataset = make(t.Resize((20, 30)), one, *behind, describe_tensor)
        ours, theirs = (list(kind(dataset, 1)) for kind in (DataLoader, TorchLoader))
        assert_same(ours, theirs)
        assert bool(seen) == bool(native)

    class Image_(Image.Image):
        pass

    def of_another_class(image):
        image.__class__ = Image_
        return image

    seen = count_native(monkeypatch)
    dataset = make(t.Resize((20, 30)), of_another_class, t.ToTensor())
    assert_same(list(DataLoader(dataset, 4)), list(TorchLoader(dataset, 4)))
    assert not seen


def describe_tensor(tensor):
    return tuple(tensor.shape), tensor


def test_later_draws_come_after_those_of_ones_own(vision, make):
    t = vision.transforms
    draws = []

    def drawing(image):
        draws.append(torch.rand(1).item())
        return image

    def numbers_of(*chain):
        draws.clear()
        torch.manual_seed(3)
        list(DataLoader(make(*chain), 4))
        return list(draws)

    plain = numbers_of(t.Resize((16, 16)), drawing, t.ToTensor())
    torch.manual_seed(3)
    torch.empty((), dtype=torch.int64).random_()  # the loader's base seed
    assert plain == [torch.rand(1).item() for _ in range(21)]  # nothing is drawn if there is no decision
    before = numbers_of(t.RandomResizedCrop(16), drawing, t.ToTensor())
    behind = numbers_of(t.Resize((20, 20)), drawing, t.RandomResizedCrop(16), t.ToTensor())
    assert behind[0] == plain[0] != before[0]
    dataset = make(t.Resize((20, 20)), drawing, t.RandomResizedCrop(16), t.RandomHorizontalFlip(), t.ToTensor())
    epochs = {
        workers: [list(DataLoader(dataset, 4, num_workers=workers, seed=5)) for _ in range(2)] for workers in (0, 2)
    }
    assert_same(epochs[0], epochs[2])
    images = torch.cat([images for images, _ in DataLoader(dataset, 4, sampler=[3] * 12)])
    assert len({image.numpy().tobytes() for image in images}) == 12


def test_an_error_in_a_later_transform_is_its_own(vision, make):
    t = vision.transforms
    for chain in ([t.Resize((9, 9)), blur, t.ToTensor(), t.Normalize([0.5, 0.5], [0.5, 0.5])],):
        dataset = make(*chain)
        kinds = (DataLoader, TorchLoader)
        found = [error_of(lambda kind=kind, dataset=dataset: list(kind(dataset, 4))) for kind in kinds]
        assert found[0] is found[1] is not None


def test_lower_require_names_the_first_step_that_stays(vision, make):
    t = vision.transforms
    with pytest.raises(ConfigError, match=r"transform \(blur\): blur is not supported"):
        DataLoader(make(t.Resize((20, 30)), blur, t.ToTensor()), 4, lower="require")
    with pytest.raises(ConfigError, match=r"takes less time than passing the image to the engine"):
        DataLoader(make(t.RandomHorizontalFlip(), blur, t.ToTensor()), 4, lower="require")
