# SPDX-License-Identifier: Apache-2.0
"""Dataset classes in common forms: those that run natively, and the suggestions of explain() for the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

pytest.importorskip("torchvision")
pandas = pytest.importorskip("pandas")

import canonical_lists as lists  # noqa: E402
import canonical_tables as tables  # noqa: E402
from lowered import assert_same, plan_of  # noqa: E402
from torchvision import transforms  # noqa: E402

COUNT = 12
TOGETHER = "whose operations transform a sample's images together"
WHOLE, PREFIX, NEXT, GENERAL = "images", "prefix", "next step", "general advice"


def words(text: str) -> list[str]:
    return text.split()


# The result for each class, and a part of the call that explain() suggests.
LISTS: dict[str, Any] = {
    **dict.fromkeys(
        words(
            "TwoLists AsStored WithTarget JoinedPath OpenedFile ImageBlock OwnLoader LoaderAttribute TorchvisionLoader "
            "ThreeValues AsDict DictCall DictWithPath MergedDict TestSet TestSetWithName TrainAndTest LabelFromName "
            "LabelByIf PathObjects Formatted SeveralTransforms MadeInside ResizedByPillow Grey Turned ListOfDicts "
            "CheckedIndex FolderWithPaths OfVisionDataset PrivateNames TwoViews"
        ),
        (WHOLE, ""),
    ),
    "AddsToken": (PREFIX, ""),
    "ArrayTransform": (NEXT, "feedline.files(self.paths, label=self.labels)"),
    "WithExcept": (
        NEXT,
        'feedline.files(self.paths, label=self.labels), with your own code in its .map(); on_error="skip"',
    ),
    "Cropped": (NEXT, "feedline.files(self.paths, label=self.labels)"),
    "SameClassPair": (NEXT, "feedline.files(self.paths, label=self.labels)"),
    "Cached": (NEXT, "feedline.files(self.paths, label=self.labels)"),
    "Preloaded": (GENERAL, ""),
    "Triplet": (GENERAL, ""),
    "WrapsAnother": (GENERAL, ""),
}
TABLES: dict[str, Any] = {
    **dict.fromkeys(
        words(
            "ColumnNumbers ColumnNames ByLoc RowAttributes Series Values ColumnOfFrame ByIat NameParts MultiHotColumns "
            "MultiHotSlice MultiHotText MultiHotList OneHot Regression Lines OptionalLabels TwoTransforms MaskByName "
            "TwoMaskTransforms MaskDict SuperResolution"
        ),
        (WHOLE, ""),
    ),
    "JointArrays": (NEXT, f"feedline.files(self.images, mask=self.masks), {TOGETHER}"),
    "JointDict": (NEXT, f"feedline.files(self.images, mask=self.masks), {TOGETHER}"),
    "JointMaskByName": (
        NEXT,
        f"(self.images, mask=[path.replace('.jpg', '.png') for path in self.images]), {TOGETHER}",
    ),
    "JointTensors": (NEXT, f"feedline.files(self.images, mask=self.masks), {TOGETHER}"),
    "JoinedMasks": (NEXT, "feedline.files(self.images, mask=self.masks, root=self.root)"),
    **dict.fromkeys(words("MaskOfLabels NamedMask OptionalMasks"), (PREFIX, "")),
    "DictTransform": (NEXT, "feedline.table(self.df, image=self.df.columns[3]"),
    "TorchvisionIo": (NEXT, "feedline.table(self.df, image=self.df.columns[3], label=self.df.columns[1])"),
    "NumpyFiles": (NEXT, "feedline.table(self.df, image='path', label='label')"),
    "Oversampled": (GENERAL, ""),
    "SavedFeatures": (GENERAL, ""),
}
CASES = [(lists, name, *found) for name, found in LISTS.items()]
CASES += [(tables, name, *found) for name, found in TABLES.items()]


@dataclass
class Data:
    root: str
    tree: str
    names: list[str]
    paths: list[str]
    labels: list[int]
    masks: list[str]
    frame: Any


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    root = tmp_path_factory.mktemp("tree") / "photos"
    root.mkdir()
    names = [f"{'dog' if i % 3 else 'cat'}_{i:02}.jpg" for i in range(COUNT)]
    for number, name in enumerate(sorted(names)):
        pixels = np.random.default_rng(number).integers(0, 256, (40, 30 + number, 3), np.uint8)
        Image.fromarray(pixels).save(root / name)
        Image.fromarray(pixels[..., 0]).save((root / name).with_suffix(".png"))
    names.sort()
    paths = [str(root / name) for name in names]
    frame = pandas.DataFrame({"name": names, "label": range(COUNT), "x": np.arange(COUNT) / 2, "path": paths})
    frame["id"] = [name.split(".")[0] for name in names]
    frame[["a", "b", "c"]] = np.arange(3 * COUNT).reshape(COUNT, 3) % 2
    frame["y"], frame["tags"] = 0.5, ["a b", "c", ""] * (COUNT // 3)
    # The tree has one class for ImageFolder's own files.
    masks = [str(Path(path).with_suffix(".png")) for path in paths]
    tree = tmp_path_factory.mktemp("classes")
    (tree / "one").mkdir()
    for path in paths:
        (tree / "one" / Path(path).name).write_bytes(Path(path).read_bytes())
    return Data(str(root), str(tree), names, paths, list(range(COUNT)), masks, frame)


def chain(channels: int) -> Any:
    normalize = transforms.Normalize([0.5] * channels, [0.25] * channels)
    return transforms.Compose([transforms.Resize(24), transforms.CenterCrop(20), transforms.ToTensor(), normalize])


@pytest.mark.parametrize(("module", "name", "outcome", "offer"), CASES, ids=[name for _, name, _, _ in CASES])
def test_each_class(data: Data, module: Any, name: str, outcome: str, offer: str) -> None:
    crop = transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])
    dataset = getattr(module, name)(
        data, crop if issubclass(getattr(module, name), tables.Masks) else chain(1 if name == "Grey" else 3)
    )
    loader = DataLoader(dataset, batch_size=5)
    explained = loader.explain()
    if outcome in (WHOLE, PREFIX):
        assert plan_of(loader) == outcome, explained
        assert "instead" not in explained
    else:
        assert plan_of(loader) == "python", explained
        assert offer in explained
        assert ("write feedline." in explained) == (outcome == NEXT), explained
    if name == "SameClassPair":
        return  # its pairs are random
    for ours, theirs in zip(loader, TorchLoader(dataset, batch_size=5), strict=True):
        assert_same(ours, theirs)
    if outcome == WHOLE:
        assert (loader._progress.native_rows, loader._progress.native_misses) == (COUNT, 0)


def test_number_of_classes_that_run_natively() -> None:
    outcomes = [outcome for _, _, outcome, _ in CASES]
    assert len(outcomes) >= 60
    assert outcomes.count(WHOLE) >= 45


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["TwoLists", "AsDict", "AddsToken", "TestSet"])
def test_workers_and_epochs(data: Data, name: str, workers: int) -> None:
    dataset = getattr(lists, name)(data, chain(3))
    torch.manual_seed(3)
    ours = DataLoader(dataset, 5, shuffle=True, num_workers=workers)
    found = [list(ours) for _ in range(2)]
    torch.manual_seed(3)
    theirs = TorchLoader(dataset, 5, shuffle=True, num_workers=workers)
    for mine, other in zip(found, [list(theirs) for _ in range(2)], strict=True):
        assert_same(mine, other)
