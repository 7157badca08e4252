# SPDX-License-Identifier: Apache-2.0
"""Dataset classes over lists, in the forms in which training repositories write them; see test_canonical_classes."""

# Each class repeats its methods as a user would, in that user's style.
# ruff: noqa: C408, SIM108, SIM117, RET505, UP032

import os
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import Dataset
from torchvision import transforms
from torchvision.datasets import ImageFolder, VisionDataset
from torchvision.datasets.folder import default_loader, pil_loader
from torchvision.transforms import functional as TF

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Base(Dataset):
    def __init__(self, data, transform=None, target_transform=None):
        self.data, self.transform, self.target_transform = data, transform, target_transform
        self.root, self.paths, self.labels, self.names = data.root, data.paths, data.labels, data.names
        self.samples = list(zip(data.paths, data.labels, strict=True))
        self.classes = ["cat", "dog", "owl"]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self):
        return len(self.paths)


class TwoLists(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class AsStored(Base):
    def __getitem__(self, idx):
        img = Image.open(self.paths[idx])
        if self.transform:
            img = self.transform(img)
        return img, self.labels[idx]


class WithTarget(Base):
    def __getitem__(self, index):
        path, target = self.samples[index]
        image = default_loader(path)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class JoinedPath(Base):
    def __getitem__(self, i):
        name = self.names[i]
        img_path = os.path.join(self.root, name)
        image = Image.open(img_path)
        image = image.convert("RGB")
        label = self.labels[i]
        if self.transform:
            image = self.transform(image)
        return image, label


class OpenedFile(Base):
    def __getitem__(self, index):
        with open(self.paths[index], "rb") as f:
            img = Image.open(f)
            img = img.convert("RGB")
        return self.transform(img), torch.tensor(self.labels[index], dtype=torch.long)


class ImageBlock(Base):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with Image.open(self.paths[index]) as img:
            image = img.convert("RGB")
        return self.transform(image), int(self.labels[index])


class OwnLoader(Base):
    def _load(self, index):
        """Opens an image through its path and returns it."""
        image_path = self.paths[index]
        return Image.open(image_path)

    def __getitem__(self, index):
        img = self._load(index)
        class_name = self.classes[self.labels[index] % 3]
        class_idx = self.class_to_idx[class_name]
        if self.transform:
            return self.transform(img), class_idx
        else:
            return img, class_idx


def rgb_loader(path):
    with open(path, "rb") as f:
        with Image.open(f) as img:
            return img.convert("RGB")


class LoaderAttribute(Base):
    def __init__(self, data, transform=None, loader=rgb_loader):
        super().__init__(data, transform)
        self.imgs, self.loader = self.samples, loader

    def __getitem__(self, index):
        fn, label = self.imgs[index]
        img = self.loader(fn)
        if self.transform is not None:
            img = self.transform(img)
        return img, label


class TorchvisionLoader(LoaderAttribute):
    def __init__(self, data, transform=None):
        super().__init__(data, transform, pil_loader)


class ThreeValues(Base):
    def __getitem__(self, index):
        img = Image.open(os.path.join(self.root, "", self.names[index])).convert("RGB")
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[index], index


class AsDict(Base):
    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        image = Image.open(self.paths[idx]).convert("RGB")
        sample = {"image": image, "label": self.labels[idx]}
        if self.transform:
            sample["image"] = self.transform(sample["image"])
        return sample


class DictCall(Base):
    def __getitem__(self, idx):
        image = Image.open(self.paths[idx])
        if image.mode != "RGB":
            image = image.convert("RGB")
        return dict(image=self.transform(image), label=self.labels[idx], name=self.names[idx])


class DictWithPath(Base):
    def __getitem__(self, idx):
        path = self.paths[idx]
        img = self.transform(Image.open(path).convert("RGB"))
        return dict_of(img, self.labels[idx], path)


def dict_of(img, label, path):
    return {"img": img, "target": torch.tensor(label, dtype=torch.float32), "path": path}


class MergedDict(Base):
    def __getitem__(self, idx):
        features = {"img": self.transform(Image.open(self.paths[idx]).convert("RGB"))}
        return {**features, "target": torch.tensor(self.labels[idx], dtype=torch.long)}


class TestSet(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return image if self.transform is None else self.transform(image)


class TestSetWithName(Base):
    def __init__(self, data, transform=None, is_test=True):
        super().__init__(data, transform)
        self.is_test = is_test

    def __getitem__(self, index):
        path = self.paths[index]
        image = self.transform(Image.open(path).convert("RGB"))
        if self.is_test:
            return image, os.path.basename(path)
        return image, self.labels[index]


class TrainAndTest(Base):
    def __init__(self, data, transform=None, split="train"):
        super().__init__(data, transform)
        self.split, self.transforms = split, {"train": transform, "val": None}

    def __getitem__(self, index):
        if self.split == "train":
            path, label = self.paths[index], self.labels[index]
        else:
            path, label = self.names[index], np.zeros((5,))
        img = Image.open(path).convert("RGB")
        return self.transforms[self.split](img), label


class LabelFromName(Base):
    def __getitem__(self, index):
        name = self.names[index]
        image = Image.open(f"{self.root}/{name}").convert("RGB")
        label = 1 if "dog" in name else 0
        return self.transform(image), label


class LabelByIf(Base):
    def __getitem__(self, index):
        filename = self.paths[index].split("/")[-1]
        if filename.startswith("dog"):
            label = 1
        else:
            label = 0
        img = Image.open(self.paths[index]).convert("RGB")
        img = self.transform(img)
        return img, label


class PathObjects(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.files = sorted(Path(data.root).glob("*.jpg"))

    def __getitem__(self, index):
        file = self.files[index]
        img = Image.open(file).convert("RGB")
        return self.transform(img), file.stem


class Formatted(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.ids = [name.split(".")[0] for name in data.names]

    def __getitem__(self, index):
        path = "{}/{}.jpg".format(self.root, self.ids[index])
        return self.transform(Image.open(path).convert("RGB")), self.labels[index]


class SeveralTransforms(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.resize = transforms.Resize((20, 20))
        self.to_tensor = transforms.ToTensor()
        self.normalize = transforms.Normalize(MEAN, STD)

    def __getitem__(self, index):
        x = Image.open(self.paths[index]).convert("RGB")
        x = self.resize(x)
        x = self.to_tensor(x)
        x = self.normalize(x)
        return x, self.labels[index]


class MadeInside(Base):
    def __getitem__(self, index):
        img = Image.open(self.paths[index]).convert("RGB")
        transform = transforms.Compose(
            [transforms.Resize((24, 24)), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
        )
        img = transform(img)
        return img, self.labels[index]


class ResizedByPillow(Base):
    def __getitem__(self, index):
        fn, label = self.samples[index]
        img = Image.open(fn).convert("RGB")
        img = img.resize((32, 24))
        return TF.to_tensor(img), label


class Grey(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("L")
        image = self.transform(image)
        return image, self.labels[index]


class Turned(Base):
    def __getitem__(self, index):
        image = ImageOps.exif_transpose(Image.open(self.paths[index])).convert("RGB")
        return self.transform(image), self.labels[index]


class ListOfDicts(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.records = [{"file": n, "bbox": [1, 2, i]} for i, n in enumerate(data.names)]

    def __getitem__(self, idx):
        rec = self.records[idx]
        image = Image.open(os.path.join(self.root, rec["file"])).convert("RGB")
        return self.transform(image), torch.tensor(rec["bbox"])


class CheckedIndex(Base):
    def __getitem__(self, index):
        assert index < len(self), "out of range"
        if index >= len(self.paths):
            raise IndexError("no such image")
        image = Image.open(self.paths[index % len(self)]).convert("RGB")
        return self.transform(image), self.labels[index]


class FolderWithPaths(ImageFolder):
    def __init__(self, data, transform=None):
        super().__init__(data.tree, transform)

    def __getitem__(self, index):
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return sample, target, path


class OfVisionDataset(VisionDataset):
    def __init__(self, data, transform=None):
        super().__init__(data.root, transform=transform)
        self.files, self.targets = data.paths, np.array(data.labels)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image, target = Image.open(self.files[index]).convert("RGB"), self.targets[index]
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            target = self.target_transform(target)
        return image, target


class PrivateNames(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.__files = data.paths

    def __getitem__(self, index):
        return self.transform(Image.open(self.__files[index]).convert("RGB")), self.labels[index]


class AddsToken(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.tokenizer = Tokenizer()

    def __getitem__(self, idx):
        image = self.transform(Image.open(self.paths[idx]).convert("RGB"))
        tokens = self.tokenizer(self.names[idx])
        return image, tokens


class Tokenizer:
    def __call__(self, text):
        return len(text) + 0 * len(vars(self))


# -- not lowered


class TwoViews(Base):
    def __getitem__(self, index):
        img = Image.open(self.paths[index]).convert("RGB")
        return self.transform(img), self.transform(img), self.labels[index]


class ArrayTransform(Base):
    def __getitem__(self, index):
        image = np.array(Image.open(self.paths[index]).convert("RGB"))
        if self.transform:
            image = torch.from_numpy(image).permute(2, 0, 1)[:, :20, :20]
        return image, self.labels[index]


class WithExcept(Base):
    def __getitem__(self, index):
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except OSError:
            return self[index + 1]
        return self.transform(image), self.labels[index]


class Cropped(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        w, h = image.size
        image = image.crop((0, 3, w, h))
        return self.transform(image), self.labels[index]


class SameClassPair(Base):
    def __getitem__(self, index):
        other = random.choice(range(len(self.paths)))
        a = self.transform(Image.open(self.paths[index]).convert("RGB"))
        b = self.transform(Image.open(self.paths[other]).convert("RGB"))
        return a, b, int(self.labels[index] == self.labels[other])


class Cached(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = Image.open(self.paths[index]).convert("RGB")
        return self.transform(self.cache[index]), self.labels[index]


class Preloaded(Base):
    def __init__(self, data, transform=None):
        super().__init__(data, transform)
        self.images = [Image.open(path).convert("RGB") for path in data.paths]

    def __getitem__(self, index):
        return self.transform(self.images[index]), self.labels[index]


class Triplet(Base):
    def __getitem__(self, index):
        anchor, positive = self.paths[index], self.paths[(index + 1) % len(self.paths)]
        negative = self.paths[(index + 2) % len(self.paths)]
        load = [self.transform(Image.open(p).convert("RGB")) for p in (anchor, positive, negative)]
        return torch.stack(load)


class WrapsAnother(Dataset):
    def __init__(self, data, transform=None):
        self.subset, self.transform = TwoLists(data), transform

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, index):
        x, y = self.subset[index]
        return self.transform(x), y
