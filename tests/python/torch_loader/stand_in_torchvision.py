# SPDX-License-Identifier: Apache-2.0
"""The few parts of torchvision that lowering uses, for machines without torchvision.

It is written from torchvision's documentation: folders of classes, and transforms of Pillow images. The transforms have
torchvision's names, arguments and attributes. Random values are drawn from torch's generator.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from PIL import Image

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def get_image_backend() -> str:
    return "PIL"


def pil_loader(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def default_loader(path):
    return pil_loader(path)


class DatasetFolder:
    def __init__(self, root, loader, extensions=None, transform=None, target_transform=None) -> None:
        self.root, self.loader, self.extensions = root, loader, extensions
        self.transform, self.target_transform = transform, target_transform
        self.classes = sorted(entry.name for entry in Path(root).iterdir() if entry.is_dir())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        files = [(file, i) for name, i in self.class_to_idx.items() for file in sorted((Path(root) / name).iterdir())]
        self.samples = [(str(file), i) for file, i in files if file.name.lower().endswith(extensions)]
        self.targets = [target for _, target in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return sample, target


class ImageFolder(DatasetFolder):
    def __init__(self, root, transform=None, target_transform=None, loader=default_loader) -> None:
        super().__init__(root, loader, EXTENSIONS, transform, target_transform)


class ImageNet(ImageFolder):
    pass


class _InMemory:
    """Applies `transform` and `target_transform` to `data`."""

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index):
        image, target = self._pair(index)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class CIFAR10(_InMemory):
    def _pair(self, index):
        return Image.fromarray(self.data[index]), self.targets[index]


class CIFAR100(CIFAR10):
    pass


class MNIST(_InMemory):
    def _pair(self, index):
        return Image.fromarray(self.data[index].numpy()), int(self.targets[index])


class FashionMNIST(MNIST):
    pass


class SVHN(_InMemory):
    def _pair(self, index):
        return Image.fromarray(np.transpose(self.data[index], (1, 2, 0))), int(self.labels[index])


class StandardTransform:
    def __init__(self, transform=None, target_transform=None) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, image, target):
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class CocoDetection:
    def _load_target(self, number):
        return self.coco.loadAnns(self.coco.getAnnIds(number))

    def __getitem__(self, index):
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        number = self.ids[index]
        with open(Path(self.root, self.coco.loadImgs(number)[0]["file_name"]), "rb") as file:
            image = Image.open(file).convert("RGB")
        target = self._load_target(number)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    def _load_target(self, number):
        return [annotation["caption"] for annotation in super()._load_target(number)]


class _Voc:
    def __getitem__(self, index):
        with open(self.images[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        target = self._target(self.targets[index])
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.images)


class VOCSegmentation(_Voc):
    _target = staticmethod(Image.open)
    masks = property(lambda self: self.targets)


class VOCDetection(_Voc):
    annotations = property(lambda self: self.targets)

    def _target(self, path):
        return self.parse_voc_xml(ElementTree.parse(path).getroot())

    @staticmethod
    def parse_voc_xml(node):
        return {node.tag: [VOCDetection.parse_voc_xml(child) for child in node] or (node.text or "").strip()}


class FakeData:
    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, random_offset=0) -> None:
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.transform, self.target_transform, self.random_offset = transform, None, random_offset

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError("FakeData index out of range")
        state = torch.get_rng_state()
        torch.manual_seed(index + self.random_offset)
        image = torch.randn(*self.image_size)
        target = torch.randint(0, self.num_classes, size=(1,), dtype=torch.long)[0]
        torch.set_rng_state(state)
        pixels = image.mul(255).byte().permute(1, 2, 0).numpy()
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target.item()

    def __len__(self) -> int:
        return self.size


_DATASETS = {
    "coco": (CocoDetection, CocoCaptions),
    "voc": (VOCDetection, VOCSegmentation),
    "vision": (StandardTransform,),
    "fakedata": (FakeData,),
    "imagenet": (ImageNet,),
    "cifar": (CIFAR10, CIFAR100),
    "mnist": (MNIST, FashionMNIST),
    "svhn": (SVHN,),
}


class Compose:
    def __init__(self, transforms) -> None:
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Lambda:
    def __init__(self, lambd) -> None:
        self.lambd = lambd

    def __call__(self, image):
        return self.lambd(image)


class _Module(torch.nn.Module):
    pass


class Resize(_Module):
    def __init__(self, size, interpolation=Image.Resampling.BILINEAR, max_size=None, antialias=True) -> None:
        super().__init__()
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def forward(self, image):
        size = [self.size] if isinstance(self.size, int) else list(self.size)
        if len(size) == 2:
            return image.resize((size[1], size[0]), self.interpolation)
        short, long = sorted(image.size)
        new = [size[0], int(size[0] * long / short)]
        if self.max_size is not None and new[1] > self.max_size:
            new = [int(self.max_size * new[0] / new[1]), self.max_size]
        return image.resize(
            (new[0], new[1]) if image.size[0] <= image.size[1] else (new[1], new[0]), self.interpolation
        )


def _square(size):
    height, *width = [size] if isinstance(size, int) else size
    return (height, *(width or [height]))


class CenterCrop(_Module):
    def __init__(self, size) -> None:
        super().__init__()
        self.size = _square(size)

    def forward(self, image):
        height, width = self.size
        left, top = (max(0, want - have) // 2 for want, have in ((width, image.width), (height, image.height)))
        if width > image.width or height > image.height:
            padded = Image.new(image.mode, (max(width, image.width), max(height, image.height)))
            padded.paste(image, (left, top))
            image = padded
        left, top = round((image.width - width) / 2.0), round((image.height - height) / 2.0)
        return image.crop((left, top, left + width, top + height))


class RandomResizedCrop(_Module):
    def __init__(self, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation=Image.Resampling.BILINEAR) -> None:
        super().__init__()
        self.size = _square(size)
        self.scale, self.ratio, self.interpolation = scale, ratio, interpolation

    def forward(self, image):
        box = (0, 0, image.width, image.height)
        for _ in range(10):
            area = image.width * image.height * float(torch.empty(1).uniform_(*self.scale))
            ratio = math.exp(float(torch.empty(1).uniform_(math.log(self.ratio[0]), math.log(self.ratio[1]))))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= image.width and 0 < height <= image.height:
                left, top = (int(torch.randint(0, n + 1, ())) for n in (image.width - width, image.height - height))
                box = (left, top, left + width, top + height)
                break
        return image.crop(box).resize((self.size[1], self.size[0]), self.interpolation)


class RandomHorizontalFlip(_Module):
    def __init__(self, p=0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, image):
        if torch.rand(1) >= self.p:
            return image
        return image.flip(-1) if isinstance(image, torch.Tensor) else image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


class Grayscale(_Module):
    def __init__(self, num_output_channels=1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, image):
        gray = image.convert("L")
        return gray if self.num_output_channels == 1 else Image.merge("RGB", (gray, gray, gray))


class PILToTensor:
    def __call__(self, image):
        pixels = np.array(image)
        return torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1)).permute(2, 0, 1).contiguous()


class ToTensor:
    def __call__(self, image):
        return PILToTensor()(image).to(torch.get_default_dtype()).div(255)


class Normalize(_Module):
    def __init__(self, mean, std, inplace=False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor):
        mean, std = (torch.as_tensor(v, dtype=tensor.dtype).view(-1, 1, 1) for v in (self.mean, self.std))
        return tensor.clone().sub_(mean).div_(std)


_TRANSFORMS = (
    Compose, Lambda, Resize, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, Grayscale, PILToTensor, ToTensor,
    Normalize,
)  # fmt: skip


def _modules() -> dict[str, types.ModuleType]:
    datasets = [".datasets", ".datasets.folder", *(f".datasets.{name}" for name in _DATASETS)]
    names = ("", *datasets, ".transforms", ".transforms.transforms", ".transforms.v2")
    made = {f"torchvision{name}": types.ModuleType(f"torchvision{name}") for name in names}
    for name, module in made.items():
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(made[parent], own, module)
    made["torchvision"].get_image_backend = get_image_backend  # type: ignore[attr-defined]
    for name in ("torchvision.datasets", "torchvision.datasets.folder"):
        for thing in (DatasetFolder, ImageFolder, default_loader, pil_loader):
            setattr(made[name], thing.__name__, thing)
    for name, kinds in _DATASETS.items():
        for kind in kinds:
            setattr(made["torchvision.datasets"], kind.__name__, kind)
            setattr(made[f"torchvision.datasets.{name}"], kind.__name__, kind)
    made["torchvision.datasets.voc"].ET_parse = ElementTree.parse  # type: ignore[attr-defined]
    for name in ("torchvision.transforms", "torchvision.transforms.transforms"):
        for kind in _TRANSFORMS:
            setattr(made[name], kind.__name__, kind)
    return made


@contextlib.contextmanager
def vision() -> Iterator[types.ModuleType]:
    """torchvision, or its replacement until the end of the block, which has no `__version__`."""
    try:
        module = importlib.import_module("torchvision")
    except ImportError:
        made = _modules()
    else:
        importlib.import_module("torchvision.transforms.v2")
        yield module
        return
    modules = sys.modules  # while the interpreter exits, the global `sys` is None and this is empty
    modules.update(made)
    try:
        yield made["torchvision"]
    finally:
        for name in made:
            modules.pop(name, None)
