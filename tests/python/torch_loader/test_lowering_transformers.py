# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's image processors as transforms, and in transform functions: the batches equal theirs, to the bit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lowered import plan_of
from torch.utils.data import DataLoader as TorchLoader

from feedline import DataLoader

vision = pytest.importorskip("torchvision")
_REASON = "Transformers is not installed (tools/test --integrations installs it)"
transformers = pytest.importorskip("transformers", reason=_REASON)
pytest.importorskip("transformers.image_processing_backends", reason="Transformers before 5", exc_type=ImportError)
SQUARE, EDGE = {"height": 24, "width": 31}, {"shortest_edge": 29}
PROCESSORS: dict[str, Any] = {
    "ViT": transformers.ViTImageProcessor(size=SQUARE),
    "CLIP": transformers.CLIPImageProcessor(size=EDGE, crop_size={"height": 22, "width": 25}),
    "a crop with a border": transformers.CLIPImageProcessor(size=EDGE, crop_size={"height": 36, "width": 41}),
    "SigLIP": transformers.SiglipImageProcessor(size=SQUARE),
    "DeiT": transformers.DeiTImageProcessor(size=SQUARE, crop_size={"height": 21, "width": 20}),
    "BiT": transformers.BitImageProcessor(size=EDGE, crop_size={"height": 24, "width": 24}),
    "BLIP": transformers.BlipImageProcessor(size=SQUARE),
    "without a resize": transformers.CLIPImageProcessor(do_resize=False, crop_size={"height": 33, "width": 38}),
    "another scale": transformers.ViTImageProcessor(size=SQUARE, rescale_factor=1 / 127.5, image_mean=[1.0, 0.9, 1.1]),
}


def assert_equal_batches(dataset: Any, plan: str = "images", **options: Any) -> None:
    loader = DataLoader(dataset, 5, **options)
    assert plan_of(loader) == plan, loader.explain()
    ours, theirs = list(loader), list(TorchLoader(dataset, 5))
    assert len(ours) == len(theirs) > 1
    for (images, labels), (expected, others) in zip(ours, theirs, strict=True):
        assert type(images) is type(expected)
        if plan != "images":
            assert dict(images).keys() == dict(expected).keys()
            ((images,), (expected,)) = images["pixel_values"], expected["pixel_values"]
        assert torch.equal(images, expected), float((images - expected).abs().max())
        assert images.dtype == torch.float32
        assert torch.equal(labels, others)


def folder_of(folder: Path, transform: Any) -> Any:
    return vision.datasets.ImageFolder(folder, transform)


@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_are_the_processors(folder: Path, name: str) -> None:
    processor = PROCESSORS[name]
    assert_equal_batches(folder_of(folder, lambda image: processor(image, return_tensors="pt")["pixel_values"][0]))


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_may_be_the_transform(folder: Path, name: str) -> None:
    assert_equal_batches(folder_of(folder, PROCESSORS[name]), "prefix")


PROCESSOR = PROCESSORS["CLIP"]


def of_two_lines(image: Any) -> Any:
    inputs = PROCESSOR(images=image.convert("RGB"), return_tensors="pt")
    return inputs["pixel_values"].squeeze(0)


def with_a_default(image: Any, processor: Any = PROCESSOR) -> Any:
    return processor(image, return_tensors="pt").pixel_values[0]


def with_an_argument(processor: Any, image: Any) -> Any:
    return processor.preprocess(image, return_tensors="pt").pixel_values.squeeze()


FORMS: dict[str, Callable[..., Any]] = {
    "two lines": of_two_lines,
    "a default": with_a_default,
    "an argument": functools.partial(with_an_argument, PROCESSOR),
    "a list": lambda image: PROCESSOR(image)["pixel_values"][0],
    "in a chain": vision.transforms.Compose(
        [vision.transforms.RandomHorizontalFlip(1.0), lambda image: PROCESSOR(image).pixel_values[0]]
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_functions_are_known_by_what_they_do(folder: Path, name: str) -> None:
    dataset = folder_of(folder, FORMS[name])
    assert_equal_batches(dataset)
    assert "CLIPImageProcessor" in str(DataLoader(dataset, 5).explain())


def other_key(image: Any) -> Any:
    return PROCESSOR(image, return_tensors="pt")["pixel_value"][0]


def second(image: Any) -> Any:
    return PROCESSOR(image, return_tensors="pt")["pixel_values"][1]


def as_arrays(image: Any) -> Any:
    return PROCESSOR(image, return_tensors="np")["pixel_values"][0]


def with_an_option(image: Any) -> Any:
    return PROCESSOR(image, return_tensors="pt", do_resize=False)["pixel_values"][0]


def used_twice(image: Any) -> Any:
    inputs = PROCESSOR(image, return_tensors="pt")
    return inputs["pixel_values"][0], inputs


def as_grey(image: Any) -> Any:
    return PROCESSOR(image.convert("L"), return_tensors="pt")["pixel_values"][0]


class Own(transformers.ViTImageProcessor):  # type: ignore[misc, name-defined]
    def rescale(self, image: Any, scale: float, **kwargs: Any) -> Any:
        return image * scale * 2


def altered() -> Any:
    made = transformers.ViTImageProcessor(size=SQUARE)
    made.rescale_and_normalize = lambda images, *args, **kwargs: images.float()
    return made


UNKNOWN: dict[str, tuple[Any, str]] = {
    "another key": (other_key, "other_key is not"),
    "another image": (second, "second is not"),
    "arrays": (as_arrays, "as_arrays is not"),
    "an option of the call": (with_an_option, "with_an_option is not"),
    "used twice": (used_twice, "used_twice is not"),
    "grey": (as_grey, "as_grey is not"),
    "a class of one's own": (Own(size=SQUARE), "Own overrides methods"),
    "a method of one's own": (altered(), "rescale_and_normalize"),
    "Lanczos": (transformers.ViTImageProcessor(size=SQUARE, resample=1), "resample"),
    "nearest": (transformers.ViTImageProcessor(size=SQUARE, resample=0), "resample"),
    "not normalized": (transformers.ViTImageProcessor(size=SQUARE, do_normalize=False), "do_normalize=False"),
    "not rescaled": (transformers.ViTImageProcessor(size=SQUARE, do_rescale=False), "do_rescale=False"),
    "a longest edge": (
        transformers.ViTImageProcessor(size={"shortest_edge": 20, "longest_edge": 30}),
        "is not supported by the engine",
    ),
    "padded": (transformers.ViTImageProcessor(size=SQUARE, do_pad=True), "do_pad=True"),
    "many sizes": (transformers.CLIPImageProcessor(size=EDGE, do_center_crop=False), "different sizes"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_stays_in_python(folder: Path, name: str) -> None:
    transform, why = UNKNOWN[name]
    loader = DataLoader(folder_of(folder, transform), 1)
    assert plan_of(loader) == "python"
    assert why in str(loader.explain())


def test_a_function_is_looked_at_again_when_its_processor_changes(folder: Path) -> None:
    box = {"processor": PROCESSORS["ViT"]}
    processor: Any = box["processor"]

    def transform(image: Any) -> Any:
        return processor(image, return_tensors="pt")["pixel_values"][0]

    dataset = folder_of(folder, transform)
    loader = DataLoader(dataset, 5)
    first = next(iter(loader))[0]
    processor = PROCESSORS["CLIP"]
    assert_equal_batches(dataset)
    assert next(iter(loader))[0].shape != first.shape
