# SPDX-License-Identifier: Apache-2.0
"""Files that the engine cannot read, and the position of a loader: the same as for samples read in Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, error_of, plan_of
from PIL import Image
from torch.utils.data import ConcatDataset, Subset, TensorDataset
from torch.utils.data import DataLoader as TorchLoader

from feedline import ConfigError, DataLoader, Error, StalledError


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture
def files(folder, tmp_path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "photos"))


@pytest.fixture
def photos(vision, files):
    """21 samples; the label of each is its index."""
    t = vision.transforms
    dataset = vision.datasets.ImageFolder(files, t.Compose([t.Resize((16, 16)), t.ToTensor()]))
    dataset.samples = [(path, i) for i, (path, _) in enumerate(dataset.samples)]
    return dataset


def spoil(dataset, index: int, how: str) -> None:
    path = Path(dataset.samples[index][0])
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:400])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("not found\n")
    elif how == "missing":
        path.unlink()
    elif how == "folder":
        path.unlink()
        path.mkdir()
    else:
        image = Image.open(path).convert("RGB")
        image.save(path, how)


DAMAGE = ("truncated", "empty", "text", "missing", "folder")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", DAMAGE)
def test_a_bad_file_raises_what_pillow_raises_with_its_index_and_name(photos, how, workers):
    spoil(photos, 5, how)
    iterator = iter(DataLoader(photos, 4, num_workers=workers))
    expected = error_of(lambda: list(TorchLoader(photos, 4)))
    next(iterator)
    with pytest.raises(expected) as caught:
        next(iterator)
    assert type(caught.value) is expected
    words = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "sample 5" in words and photos.samples[5][0] in words
    assert [b[1].tolist() for b in iterator] == [[8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19], [20]]


def test_the_name_of_a_bad_file_is_found_in_parts_of_datasets(photos):
    spoil(photos, 5, "text")
    for dataset in (Subset(photos, [1, 5]), ConcatDataset([Subset(photos, [2]), photos])):
        with pytest.raises(Exception) as caught:
            list(DataLoader(dataset, 4))
        assert photos.samples[5][0] in "".join(caught.value.__notes__)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["GIF", "BMP", "TIFF"])
def test_what_pillow_reads_under_another_name_is_torchs_sample(photos, how, workers):
    for index in (2, 3, 17):
        spoil(photos, index, how)
    loader = DataLoader(photos, 4, num_workers=workers)
    assert plan_of(loader) == "images"
    assert_same([list(loader) for _ in range(2)], [list(TorchLoader(photos, 4))] * 2)
    assert loader.errors == []


def test_a_file_that_the_engine_does_not_read_is_augmented_again_in_each_batch_and_epoch(vision, photos):
    t = vision.transforms
    photos.transform = t.Compose([t.RandomResizedCrop(16), t.ToTensor()])
    for index in (0, 8):
        spoil(photos, index, "BMP")
        shutil.copy(photos.samples[0][0], photos.samples[8][0])
    for options in ({}, {"num_workers": 2}, {"num_workers": 2, "seed": 1}, {"seed": 1}):
        loader = DataLoader(photos, 4, **options)
        crops = [images[0].numpy().tobytes() for _ in range(2) for images, labels in loader if labels[0] in (0, 8)]
        assert len(set(crops)) == len(crops) == 4


def epoch_of(loader):
    batches = list(loader)
    return batches, list(loader.errors)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ["skip", "replace"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_bad_samples_are_skipped_and_replaced_as_in_python(photos, policy, workers, drop_last):
    whole = photos.samples
    for bad in ([], [0], [5, 6, 13], [16, 17, 18, 19, 20], [20], [0, 1, 2, 3, 4, 5, 6], list(range(9, 21))):
        photos.samples = [(f"{path}.missing.jpg" if i in bad else path, i) for i, (path, _) in enumerate(whole)]
        made = {"on_error": policy, "drop_last": drop_last, "batch_size": 4}
        native = DataLoader(photos, num_workers=workers, **made)
        assert plan_of(native) == "images"
        python = DataLoader(photos, lower="never", **made)
        for _ in range(2):
            assert_same(epoch_of(native), epoch_of(python))
            assert native.state_dict()["delivered"] == python.state_dict()["delivered"] == 0
        assert {e.record for e in native.errors} <= set(bad)


def test_an_epoch_of_bad_samples_alone_is_empty(photos):
    photos.samples = [(path + ".missing.jpg", label) for path, label in photos.samples]
    for lower in ("auto", "never"):
        assert list(DataLoader(photos, 4, on_error="skip", lower=lower)) == []


@pytest.mark.parametrize("workers", [0, 1])
def test_the_error_budget_ends_the_epoch(photos, workers):
    for index in (1, 6, 11):
        spoil(photos, index, "text")
    loader = DataLoader(photos, 4, on_error="skip", error_budget=2, num_workers=workers)
    iterator = iter(loader)
    assert [len(next(iterator)[1]) for _ in range(2)] == [4, 4]
    with pytest.raises(Error, match="error_budget=2"):
        next(iterator)
    assert [e.shard for e in loader.errors] == [photos.samples[i][0] for i in (1, 6, 11)]


def test_a_folder_of_foreign_files_goes_back_to_python_by_itself(photos):
    for index in range(21):
        spoil(photos, index, "BMP")
    loader = DataLoader(photos, 4)
    assert plan_of(loader) == "images"
    for _ in range(4):
        assert_same(list(loader), list(TorchLoader(photos, 4)))
    assert plan_of(loader) == "python"
    assert "were not read natively" in loader.explain()


class SlowOnce:
    """An engine whose next batch is late, the first time."""

    def __init__(self, engine, error) -> None:
        self.engine, self.error = engine, error

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def next(self):
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.engine.next()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": 9}, StalledError("no batch for 9 s"), "timed out after 9 seconds"),
        ({"stall_timeout": 9}, StalledError("no batch for 9 s"), "no batch for 9 s"),
        ({"timeout": 9}, KeyboardInterrupt("by you"), "by you"),
    ],
)
def test_a_batch_that_is_late_raises_and_may_still_come(photos, options, error, message):
    iterator = iter(DataLoader(photos, 4, num_workers=1, **options))
    found = [next(iterator)]
    iterator._pipeline.engine = SlowOnce(iterator._pipeline.engine, error)
    with pytest.raises((RuntimeError, StalledError, KeyboardInterrupt), match=message):
        next(iterator)
    assert_same([*found, *iterator], list(TorchLoader(photos, 4)))


# -- the position


@pytest.mark.parametrize("bad", [[], [3, 9]])
@pytest.mark.parametrize("options", [{"generator": True}, {"seed": 4}, {"on_error": "skip"}])
def test_a_state_resumes_in_any_loader_of_the_same_samples(photos, options, bad):
    if bad and "on_error" not in options:
        pytest.skip("an error ends the epoch")
    for index in bad:
        spoil(photos, index, "text")

    def loader(workers, lower):
        extra = {"generator": torch.Generator().manual_seed(6)} if "generator" in options else options
        return DataLoader(photos, 4, shuffle=True, num_workers=workers, lower=lower, **extra)

    kinds = [(0, "auto"), (2, "auto"), (0, "never")]
    torch.manual_seed(7)
    whole = loader(0, "never")
    epochs = [list(whole), list(whole)]
    for seen in (0, 1, 3, len(epochs[0])):
        for writer in kinds:
            torch.manual_seed(7)
            one = loader(*writer)
            iterator = iter(one) if seen else None
            for _ in range(seen):
                next(iterator)
            if seen == len(epochs[0]):
                assert next(iterator, None) is None
            state = json.loads(json.dumps(one.state_dict()))
            for reader in kinds:
                torch.manual_seed(7)
                other = loader(*reader)
                other.load_state_dict(state)
                rest = list(other)
                if seen < len(epochs[0]):
                    assert_same(rest, epochs[0][seen:])
                    rest = list(other)
                if "seed" in options or (seen and seen == len(epochs[0]) and "generator" in options):
                    assert_same(rest, epochs[1])


def test_random_crops_continue_where_the_state_was_taken(vision, photos):
    t = vision.transforms
    photos.transform = t.Compose([t.RandomResizedCrop(16), t.ToTensor()])
    make = lambda workers: DataLoader(photos, 4, shuffle=True, seed=2, num_workers=workers)  # noqa: E731
    whole = make(0)
    epochs = [list(whole), list(whole)]
    stopped = make(2)
    iterator = iter(stopped)
    next(iterator), next(iterator)
    for workers in (0, 2):
        resumed = make(workers)
        resumed.load_state_dict(stopped.state_dict())
        assert_same([list(resumed), list(resumed)], [epochs[0][2:], epochs[1]])


@pytest.mark.parametrize("arrays", [False, True])
def test_workers_that_live_on_go_to_a_loaded_state_and_to_a_set_epoch(photos, arrays):
    dataset = TensorDataset(torch.rand(21, 3), torch.arange(21)) if arrays else photos
    make = lambda lower: DataLoader(  # noqa: E731
        dataset, 4, shuffle=True, seed=1, num_workers=1, persistent_workers=True, prefetch_epochs=True, lower=lower
    )
    found = []
    for lower in ("auto", "never"):
        loader = make(lower)
        epochs = [list(loader), list(loader)]
        iterator = iter(loader)
        next(iterator), next(iterator)
        state = loader.state_dict()
        epochs += [list(iterator), list(loader)]
        loader.load_state_dict(state)
        epochs += [list(loader), list(loader)]
        loader.set_epoch(1)
        found.append([*epochs, list(loader)])
    assert_same(*found)
    assert_same([found[0][2], found[0][3], found[0][1]], [found[0][4], found[0][5], found[0][6]])


@pytest.mark.parametrize("lower", ["auto", "never"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_state_after_an_error_that_was_passed_over(photos, workers, lower):
    spoil(photos, 5, "text")
    loader = DataLoader(photos, 4, num_workers=workers, lower=lower)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(Exception, match="cannot identify"):
        next(iterator)
    next(iterator)
    resumed = DataLoader(photos, 4)
    resumed.load_state_dict(loader.state_dict())
    assert [b[1][0].item() for b in resumed] == [12, 16, 20]


@pytest.mark.parametrize("lower", ["auto", "never"])
def test_a_state_of_a_resumed_epoch_keeps_its_refills(photos, lower):
    spoil(photos, 1, "text")
    make = lambda: DataLoader(photos, 4, on_error="skip", lower=lower)  # noqa: E731
    whole = [b[1].tolist() for b in make()]
    assert whole[-1] == [16, 17, 18, 19]
    loader, found = make(), []
    for _ in range(len(whole)):
        iterator = iter(loader)
        found.append(next(iterator)[1].tolist())
        state = loader.state_dict()
        loader = make()
        loader.load_state_dict(state)
    assert found == whole and list(loader) == []


# -- loaders that stay in Python


def test_what_keeps_a_folder_in_python_is_reported(vision, files, photos):
    t, folder = vision.transforms, vision.datasets.ImageFolder

    class Own(folder):
        pass

    class OwnResize(t.Resize):
        pass

    hooked = t.Resize((16, 16))
    hooked.register_forward_hook(lambda module, given, out: out)
    replaced = t.Resize((16, 16))
    replaced.forward = lambda image: image
    open_it = Image.open
    cases = [
        (folder(files, t.Compose([OwnResize((16, 16)), t.ToTensor()])), "OwnResize is not supported"),
        (folder(files, t.Compose([lambda image: image, t.ToTensor()])), "<lambda> is not supported"),
        (folder(files, lambda image: 0), "<lambda> is not supported"),
        (folder(files, t.Compose([hooked, t.ToTensor()])), "hooks"),
        (folder(files, t.Compose([replaced, t.ToTensor()])), "hooks, or its own forward"),
        (folder(files, t.Compose([t.Resize(16), t.ToTensor()])), "no fixed size"),
        (folder(files, t.ToTensor()), "no fixed size"),
        (folder(files), "no fixed size"),
        (folder(files, photos.transform, loader=open_it), "loader='open' is not torchvision's"),
        (folder(files, t.Compose([t.Resize((8, 8)), t.ToTensor(), t.Resize((4, 4))])), "Resize of a float32 tensor"),
    ]
    # a subclass of the replacement is read like a user's class
    if folder.__getitem__.__module__.startswith("torchvision"):
        cases.append((Own(files, photos.transform), "Own is not a dataset that the engine knows"))
    bitmaps = folder(files, photos.transform)
    bitmaps.samples = [(path.replace(".jpg", ".bmp"), label) for path, label in bitmaps.samples]
    cases.append((bitmaps, "files do not have the extension of a JPEG, PNG or WebP file"))
    other = folder(files, t.Compose([t.Resize((16, 16)), t.PILToTensor()]))
    cases.append((ConcatDataset([photos, other]), "the concatenated datasets have different transforms"))
    for dataset, why in cases:
        loader = DataLoader(dataset, 4)
        assert plan_of(loader) in ("python", "prefix")
        assert why in loader.explain(), loader.explain()
        with pytest.raises(ConfigError, match=r"(read|transform|collate) \(.*\): .*"):
            DataLoader(dataset, 4, lower="require")
    assert "worker_init_fn" in DataLoader(photos, num_workers=1, worker_init_fn=print).explain()
    assert plan_of(DataLoader(photos, lower="never")) == "python"
    required = DataLoader(photos, 4, lower="require")
    assert "the engine draws random numbers" not in required.explain() and "native" in required.explain()
