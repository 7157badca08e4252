# SPDX-License-Identifier: Apache-2.0
"""Folders of images that the engine reads and transforms completely: the same as torch's loader, in its order."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import made_data
import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, assert_same_epochs, error_of, numbers, plan_of, random_states
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Path:
    """Images of every kind that a folder may contain, one of them tiny."""
    root = tmp_path_factory.mktemp("odd") / "all"
    root.mkdir()
    pixels = made_data.photo(3, 70, 55)
    image = Image.fromarray(pixels)
    image.convert("L").save(root / "gray.jpg")
    image.convert("CMYK").save(root / "cmyk.jpg")
    image.save(root / "progressive.jpg", progressive=True, quality=70)
    image.save(root / "full.jpeg", subsampling=0)
    image.convert("RGBA").save(root / "alpha.png")
    image.convert("P").save(root / "palette.png")
    image.convert("1").save(root / "bits.png")
    Image.fromarray(pixels[..., 0].astype(np.uint16) * 257).save(root / "deep.png")
    image.save(root / "lossy.webp")
    image.resize((9, 7)).save(root / "tiny.png")
    image.resize((4, 90)).save(root / "tall.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6  # viewers rotate it, but Pillow's open() does not
    image.save(root / "turned.jpg", exif=exif)
    return root.parent


@pytest.fixture
def crops(vision, folder):
    """The usual chain for validation."""
    t = vision.transforms
    return vision.datasets.ImageFolder(folder, t.Compose([t.Resize(40), t.CenterCrop(32), t.ToTensor()]))


@pytest.fixture
def augmented(vision, folder):
    t = vision.transforms
    return vision.datasets.ImageFolder(
        folder, t.Compose([t.RandomResizedCrop(24), t.RandomHorizontalFlip(), t.ToTensor()])
    )


COMMON = {
    "usual": lambda t: [t.Resize(40), t.CenterCrop(32), t.ToTensor()],
    "uint8": lambda t: [t.Resize((30, 20)), t.PILToTensor()],
    "normalized": lambda t: [t.Resize((32, 32)), t.ToTensor(), t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.2))],
    "one mean": lambda t: [t.Resize((32, 32)), t.ToTensor(), t.Normalize([0.5], [0.25])],
    "tensor mean": lambda t: [t.Resize((9, 9)), t.ToTensor(), t.Normalize(torch.full((3,), 0.5), torch.ones(3))],
    "bicubic": lambda t: [t.Resize((33, 31), Image.Resampling.BICUBIC), t.PILToTensor()],
    "nearest": lambda t: [t.Resize((33, 31), Image.Resampling.NEAREST), t.PILToTensor()],
    "box": lambda t: [t.Resize((33, 31), Image.Resampling.BOX), t.PILToTensor()],
    "longest edge": lambda t: [t.Resize(50, max_size=55), t.CenterCrop((20, 60)), t.PILToTensor()],
    "list of one": lambda t: [t.Resize([40]), t.CenterCrop([32]), t.PILToTensor()],
    "larger crop": lambda t: [t.CenterCrop((90, 101)), t.PILToTensor()],
    "gray": lambda t: [t.Resize((20, 20)), t.Grayscale(), t.ToTensor(), t.Normalize([0.5], [0.5])],
    "gray first": lambda t: [t.Grayscale(3), t.Resize((20, 20)), t.ToTensor()],
    "twice": lambda t: [t.Resize(50), t.CenterCrop(45), t.Resize(20), t.CenterCrop(16), t.ToTensor()],
    "nested": lambda t: [t.Compose([t.Resize((20, 20))]), t.Compose([t.Compose([t.ToTensor()])])],
    "always flipped": lambda t: [t.Resize((20, 30)), t.ToTensor(), t.RandomHorizontalFlip(1.0)],
}
ONLY_REAL = {
    "padded": lambda t: [t.Resize((20, 20)), t.Pad((1, 2, 3, 4), fill=7), t.PILToTensor()],
    "padded by reflection": lambda t: [t.Resize((20, 20)), t.Pad(5, padding_mode="reflect"), t.PILToTensor()],
    "padded in colour": lambda t: [t.Resize((20, 20)), t.Pad([2], fill=(1, 2, 3)), t.ToTensor()],
    "converted": lambda t: [t.Resize((20, 20)), t.PILToTensor(), t.ConvertImageDtype(torch.float32)],
    "brightened": lambda t: [t.Resize((20, 20)), t.ColorJitter(brightness=(1.3, 1.3)), t.PILToTensor()],
    "of another hue": lambda t: [t.Resize((20, 20)), t.ColorJitter(hue=(0.2, 0.2)), t.PILToTensor()],
    "whole crop": lambda t: [t.RandomResizedCrop(20, scale=(50, 60)), t.PILToTensor()],
    "upside down": lambda t: [t.Resize((20, 20)), t.RandomVerticalFlip(1.0), t.ToTensor()],
    "interpolation": lambda t: [t.Resize((20, 20), t.InterpolationMode.BICUBIC, antialias=True), t.ToTensor()],
}
ONLY_V2 = {
    "image": lambda t: [t.Resize((20, 20)), t.ToImage(), t.ToDtype(torch.float32, scale=True)],
    "image normalized": lambda t: [
        t.Resize((20, 20)), t.ToImage(), t.ToDtype(torch.float32, scale=True), t.Normalize([0.5] * 3, [0.5] * 3),
        t.ToPureTensor(),
    ],
    "unscaled": lambda t: [t.Resize((20, 20)), t.PILToTensor(), t.ToDtype(torch.float32)],
    "identity": lambda t: [t.Identity(), t.Resize(20), t.CenterCrop(20), t.Grayscale(3), t.PILToTensor()],
}  # fmt: skip
CHAINS = [
    *[("transforms", name, make) for name, make in {**COMMON, **ONLY_REAL}.items()],
    *[("transforms.v2", name, make) for name, make in {**COMMON, **ONLY_REAL, **ONLY_V2}.items()],
]


@pytest.mark.parametrize(("module", "name", "make"), CHAINS, ids=[f"{m}: {n}" for m, n, _ in CHAINS])
def test_a_chain_gives_torchs_pixels(vision, odd, module, name, make):
    if not hasattr(vision, "__version__") and (name not in COMMON or module != "transforms"):
        pytest.skip("the stand-in for torchvision has no such transform")
    t = vision.transforms.v2 if module == "transforms.v2" else vision.transforms
    dataset = vision.datasets.ImageFolder(odd, t.Compose(make(t)))
    found, expected = (list(kind(dataset, batch_size=5)) for kind in (DataLoader, TorchLoader))
    assert plan_of(DataLoader(dataset, batch_size=5)) == "images"
    assert_same(found, expected)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_epochs_are_torchs_with_any_number_of_workers(crops, workers, persistent):
    if persistent and not workers:
        pytest.skip("there are no workers that could live on")
    torch.manual_seed(1)
    ours = DataLoader(crops, 4, shuffle=True, num_workers=workers, persistent_workers=persistent)
    found = [list(ours) for _ in range(3)]
    after = random_states()
    torch.manual_seed(1)
    theirs = TorchLoader(crops, 4, shuffle=True, num_workers=workers, persistent_workers=persistent)
    assert_same(found, [list(theirs) for _ in range(3)])
    assert after == random_states()
    assert (iter(ours) is iter(ours)) == persistent


def test_every_sampler_keeps_its_order(crops):
    made = {
        "in order": dict,
        "drop_last": lambda: {"drop_last": True, "shuffle": True},
        "own generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(9)},
        "with repeats": lambda: {"sampler": RandomSampler(crops, replacement=True, num_samples=50)},
        "more than all": lambda: {"sampler": RandomSampler(crops, num_samples=45)},
        "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * 20 + [9.0], 30)},
        "distributed": lambda: {"sampler": DistributedSampler(crops, 2, 1, seed=4)},
        "list": lambda: {"sampler": [3, -1, 3, np.int64(7), torch.tensor(2), True]},
    }
    for workers in (0, 2):
        for options in made.values():
            torch.manual_seed(2)
            pairs = []
            for kind in (DataLoader, TorchLoader):
                torch.manual_seed(2)
                arguments = {"batch_size": 4, **options()}
                loader = kind(crops, num_workers=workers if kind is DataLoader else 0, **arguments)
                epochs = [list(loader)]
                generator = arguments.get("generator")
                pairs.append((epochs, random_states(), None if generator is None else generator.get_state()))
            assert_same(pairs[0][0], pairs[1][0])
            assert pairs[0][1] == pairs[1][1]
            assert_same(pairs[0][2], pairs[1][2])


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_of_growing_size_keep_images_and_labels_together(crops, workers):
    batches = [[0], [20, 1], [3, 4, 5], [6, 7, 15, 9], [10], [1, 12, 13, 14, 15, 16], [2]]
    assert_same_epochs(crops, plan="images", workers=workers, batch_sampler=batches, epochs=2)


def test_a_batch_size_beyond_the_dataset_takes_no_memory_for_it(crops):
    assert_same_epochs(crops, plan="images", batch_size=10**9)

    class Sharded(list):
        batch_size = 10**9  # over all ranks, say

    assert_same_epochs(crops, plan="images", batch_sampler=Sharded([[0, 1], [2]]))


def test_parts_of_datasets_and_their_parts(crops):
    nested = Subset(Subset(crops, [5, 6, 7, -1, 5]), np.array([4, 3, 0, 0]))
    joined = ConcatDataset([nested, crops, Subset(crops, range(3, 9))])
    for dataset in (nested, joined, Subset(joined, torch.tensor([0, 7, 24, -1]))):
        assert_same_epochs(dataset, plan="images", batch_size=3, workers=2)
    assert_same_epochs(joined, plan="images", sampler=[-1, -20, 4, -31], batch_size=2)


def test_labels_are_whatever_a_folder_was_given(vision, folder, crops):
    for label in (1.5, "apple", (1, "a"), None, torch.tensor(3), b"x"):
        crops.samples = [(path, label) for path, _ in crops.samples]
        kinds = [error_of(lambda kind=kind: list(kind(crops, 4))) for kind in (DataLoader, TorchLoader)]
        assert kinds[0] is kinds[1]
        if kinds[0] is None:
            assert_same_epochs(crops, plan="images", batch_size=4)
    jpegs = vision.datasets.DatasetFolder(
        folder, vision.datasets.folder.default_loader, (".jpg",), transform=crops.transform
    )
    assert_same_epochs(jpegs, plan="images", batch_size=4)


def test_paths_need_not_be_text(crops, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 \xff.jpg")
    shutil.copy(crops.samples[0][0], name)
    crops.samples = [(name, 0), (Path(crops.samples[1][0]), 1)]
    assert_same_epochs(crops, plan="images", batch_size=2)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("bad", [21, -22, 1.0, "0", None, [0], slice(0, 2)])
def test_a_wrong_index_raises_what_torch_raises_and_the_next_batch_follows(crops, bad, workers):
    sampler = [0, 1, bad, 2, 3, 4]
    found = []
    for kind in (DataLoader, TorchLoader):
        iterator = iter(kind(crops, 2, sampler=sampler, num_workers=workers if kind is DataLoader else 0))
        first = next(iterator)
        error = error_of(lambda iterator=iterator: next(iterator))
        found.append((first, error, next(iterator)))
    assert found[0][1] is found[1][1] is not None
    assert_same([found[0][0], found[0][2]], [found[1][0], found[1][2]])


@pytest.mark.parametrize("container", [tuple, iter, set, np.array, torch.tensor])
def test_a_batch_of_indices_in_any_container(crops, container):
    for workers in (0, 2):
        found = []
        for kind in (DataLoader, TorchLoader):
            sampler = [container([1, 2, 5]), container([4, 0]), container([20])]
            found.append(list(kind(crops, batch_sampler=sampler, num_workers=workers * (kind is DataLoader))))
        assert_same(*found)


def test_an_empty_batch_raises_what_torch_raises(crops):
    for workers in (0, 1):
        ours = DataLoader(crops, batch_sampler=[[1], [], [2]], num_workers=workers)
        theirs = TorchLoader(crops, batch_sampler=[[1], [], [2]])
        assert error_of(lambda ours=ours: list(ours)) is error_of(lambda theirs=theirs: list(theirs)) is not None


def test_two_epochs_at_once_and_an_epoch_that_was_broken_off(crops):
    expected = list(TorchLoader(crops, 4))
    for workers in (0, 2):
        loader = DataLoader(crops, 4, num_workers=workers)
        one, two = iter(loader), iter(loader)
        found = [(next(one), next(two)) for _ in range(len(loader))]
        assert_same([a for a, _ in found], expected)
        assert_same([b for _, b in found], expected)
        for batch in loader:
            assert_same(batch, expected[0])
            break
        assert_same(list(loader), expected)
        kept = iter(DataLoader(crops, 4, num_workers=workers))  # its loader is gone
        assert_same(list(kept), expected)


def test_a_change_of_the_dataset_holds_from_the_next_epoch_on(vision, crops):
    t = vision.transforms
    loader = DataLoader(crops, 4, num_workers=1)
    list(loader)
    crops.samples.reverse()
    assert_same(list(loader), list(TorchLoader(crops, 4)))
    crops.transform = t.Compose([t.Resize((17, 13)), t.PILToTensor()])
    assert_same(list(loader), list(TorchLoader(crops, 4)))
    crops.transform.transforms[0] = t.Lambda(lambda image: image.resize((8, 8)))
    assert plan_of(loader) == "prefix", "what is behind the function"
    assert_same(list(loader), list(TorchLoader(crops, 4)))
    del crops.samples[10:]
    assert [numbers(b[1]) for b in DataLoader(crops, 4)] == [numbers(b[1]) for b in TorchLoader(crops, 4)]


def test_totensor_follows_torchs_default_dtype(crops):
    loader = DataLoader(crops, 4)
    assert plan_of(loader) == "images"
    torch.set_default_dtype(torch.float64)
    try:
        assert next(iter(loader))[0].dtype is next(iter(TorchLoader(crops, 4)))[0].dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_batches_are_the_users_own(crops):
    loader = DataLoader(crops, 4, num_workers=1)
    kept = list(loader)
    copies = [images.clone() for images, _ in kept]
    for images, labels in list(loader):
        assert images.is_contiguous() and not images.requires_grad
        images.fill_(-1.0)
        labels.fill_(-1)
    assert all(torch.equal(images, copy) for (images, _), copy in zip(kept, copies, strict=True))
    assert len({images.data_ptr() for images, _ in kept}) == len(kept)


def test_random_crops_depend_on_seed_epoch_and_sample_alone(augmented):
    epochs = {}
    for workers in (0, 1, 3):
        loader = DataLoader(augmented, 5, shuffle=True, seed=3, num_workers=workers)
        assert plan_of(loader) == "images"
        epochs[workers] = [list(loader) for _ in range(2)]
    assert_same(epochs[0], epochs[1])
    assert_same(epochs[0], epochs[3])
    plain = [next(iter(DataLoader(augmented, 21, seed=seed)))[0] for seed in (3, 3, 4)]
    assert torch.equal(plain[0], plain[1])
    assert not any(torch.equal(a, b) for a, b in zip(plain[0], plain[2], strict=True))
    again = DataLoader(augmented, 21, seed=3)
    first, second = (next(iter(again))[0] for _ in range(2))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("options", [{"seed": 1}, {"seed": 1, "num_workers": 2}, {}, {"num_workers": 2}])
def test_a_sample_that_comes_twice_is_cropped_twice(augmented, options):
    images = torch.cat([b[0] for b in DataLoader(augmented, 4, sampler=[7] * 12, **options)])
    assert len({image.numpy().tobytes() for image in images}) == 12


def test_without_a_seed_torchs_generator_decides(augmented):
    def epochs(seed, workers):
        torch.manual_seed(seed)
        loader = DataLoader(augmented, 7, num_workers=workers)
        return [torch.cat([b[0] for b in loader]) for _ in range(2)]

    one, same, other = epochs(1, 0), epochs(1, 2), epochs(2, 0)
    assert torch.equal(one[0], same[0]) and torch.equal(one[1], same[1])
    assert not torch.equal(one[0], one[1]) and not torch.equal(one[0], other[0])


def test_half_of_the_images_are_flipped_and_crops_have_torchs_sizes(vision, tmp_path):
    """The image is a ramp from left to right, so that a crop's first and last column show its position."""
    t = vision.transforms
    (tmp_path / "ramp").mkdir()
    ramp = np.tile(np.arange(256, dtype=np.uint8)[None, :, None], (256, 1, 3))
    Image.fromarray(ramp).save(tmp_path / "ramp" / "0.png")
    chain = [
        t.RandomResizedCrop(32, scale=(0.25, 0.25), ratio=(1, 1.0000001)),
        t.RandomHorizontalFlip(),
        t.PILToTensor(),
    ]
    dataset = vision.datasets.ImageFolder(tmp_path, t.Compose(chain))
    loader = DataLoader(dataset, 100, sampler=[0] * 2000, seed=2)
    assert plan_of(loader) == "images"
    rows = torch.cat([images[:, 0, 0].float() for images, _ in loader])
    flipped = (rows[:, 0] > rows[:, -1]).float().mean()
    assert 0.44 < flipped < 0.56
    wide = (rows[:, 0] - rows[:, -1]).abs()
    assert wide.min() > 118 and wide.max() < 130  # half of the width
    left = rows.min(dim=1).values
    assert left.min() < 8 and left.max() > 120 and 55 < left.mean() < 74


def test_options_of_transport_change_no_sample(crops, recwarn):
    expected = list(TorchLoader(crops, 4))
    for options in (
        {"in_order": False},
        {"prefetch_factor": 5},
        {"prefetch_factor": 1, "persistent_workers": True},
        {"memory_budget": 1},
        {"device": "cpu"},
        {"timeout": 200},
        {"stall_timeout": 0},
        {"pin_memory": True},
    ):
        assert_same(list(DataLoader(crops, 4, num_workers=2, **options)), expected)
    if not torch.accelerator.is_available():
        assert sum("pin_memory" in str(warning.message) for warning in recwarn) == 1


def test_a_batch_sampler_of_torchs_own(crops):
    for drop_last in (False, True):
        sampler = BatchSampler(SequentialSampler(range(10)), 4, drop_last)
        assert_same_epochs(crops, plan="images", batch_sampler=sampler, workers=1)


@pytest.mark.parametrize("options", [{"num_workers": 0, "timeout": 3}, {"num_workers": 2, "prefetch_factor": 0}])
def test_numbers_that_torch_refuses_at_iter_are_refused(crops, options):
    for dataset in (crops, torch.zeros(8, 2)):
        for kind in (DataLoader, TorchLoader):
            with pytest.raises(AssertionError):
                iter(kind(dataset, **options))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("into", [0, 2])
def test_random_crops_continue_under_another_seed_of_torch(vision, tmp_path: Path, workers: int, into: int) -> None:
    """The state has the engine's seed, so a resumed run has the same augmentations within an epoch."""
    made_data.make_folder(tmp_path / "train", per_class=5)
    crops = vision.transforms.Compose([vision.transforms.RandomResizedCrop(16), vision.transforms.ToTensor()])

    def loader(number: int) -> DataLoader:
        dataset = vision.datasets.ImageFolder(str(tmp_path / "train"), crops)
        return DataLoader(dataset, batch_size=2, shuffle=True, num_workers=number)

    torch.manual_seed(1)
    first = loader(workers)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    state = first.state_dict()
    rest = [(images, labels) for images, labels in batches]
    torch.manual_seed(2)
    again = loader(into)
    again.load_state_dict(state)
    resumed = [(images, labels) for images, labels in again]
    assert plan_of(again) == "images" and len(rest) == len(resumed)
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(rest, resumed, strict=True))
