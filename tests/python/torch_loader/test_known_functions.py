# SPDX-License-Identifier: Apache-2.0
"""Functions of frameworks' examples are recognised by bytecode in each supported CPython that is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import feedline

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")  # a new version is added after its examples pass
SOURCE = Path(feedline.__file__).parent / "torch_loader/lowering/transforms" / "function_templates.py"

SCRIPT = """
import functools
import importlib.util
import sys
import types

loading = importlib.util.spec_from_file_location("function_templates", sys.argv[1])
known = sys.modules["function_templates"] = importlib.util.module_from_spec(loading)
loading.loader.exec_module(known)

torch = types.ModuleType("torch")
torch.stack = lambda rows: rows
MARKER, TRANSFORM = object(), object()
WORDS = ("<image>", "<made>")


def default_collate(batch):
    return batch


def of_column(batch):
    batch["<made>"] = [MARKER(image.convert("RGB")) for image in batch["<image>"]]
    del batch["<image>"]
    return batch


def in_two_lists(batch):
    images = [image.convert("RGB") for image in batch["<image>"]]
    batch["<made>"] = [MARKER(image) for image in images]
    return batch


def starred(batch):
    return MARKER(*default_collate(batch))


def unpacked(batch):
    images, labels = default_collate(batch)
    images, labels = MARKER(images, labels)
    return images, labels


stacked = lambda crops: torch.stack([MARKER(crop) for crop in crops])
first_pixels = lambda image: MARKER(image, return_tensors="pt")["pixel_values"][0]


def examples(step):
    def transformers_guide(examples):
        examples["pixel_values"] = [step(img.convert("RGB")) for img in examples["image"]]
        del examples["image"]
        return examples

    def diffusers_text_to_image(examples):
        images = [image.convert("RGB") for image in examples["image"]]
        examples["pixel_values"] = [step(image) for image in images]
        return examples

    def two_names(examples):
        pictures = [img.convert("RGB") for img in examples["image"]]
        examples["pixel_values"] = [step(picture) for picture in pictures]
        return examples

    def torchvision_references(samples):
        return step(*default_collate(samples))

    def torchvision_gallery(samples):
        pictures, classes = default_collate(samples)
        pictures, classes = step(pictures, classes)
        return pictures, classes

    def with_default(samples, mixer=step):
        return mixer(*default_collate(samples))

    class Module:
        def __init__(self):
            self.mixer = step

        def collate(self, samples):
            return self.mixer(*default_collate(samples))

    yield transformers_guide, of_column, {"<image>": "image", "<made>": "pixel_values"}
    yield diffusers_text_to_image, in_two_lists, {"<image>": "image", "<made>": "pixel_values"}
    yield two_names, in_two_lists, {"<image>": "image", "<made>": "pixel_values"}
    yield torchvision_references, starred, {}
    yield functools.partial(with_default, mixer=step), starred, {}
    yield with_default, starred, {}
    yield Module().collate, starred, {}
    yield torchvision_gallery, unpacked, {}
    yield lambda views: torch.stack([step(view) for view in views]), stacked, {}
    yield lambda photo: step(photo, return_tensors="pt")["pixel_values"][0], first_pixels, {}


def others(step):
    def of_the_wrong_list(examples):
        pictures = [img.convert("RGB") for img in examples["image"]]
        examples["pixel_values"] = [step(picture) for picture in examples["image"]]
        return examples

    def caught(samples):
        try:
            return step(*default_collate(samples))
        except ValueError:
            return None

    yield of_the_wrong_list
    yield caught
    yield lambda batch: step(*default_collate(batch[1:]))
    yield lambda batch: [step(*default_collate(batch))]
    yield lambda crops: torch.stack([step(crop) for crop in crops if crop])
    yield lambda crops: torch.stack([step(crop) for crop in reversed(crops)])


templates = (of_column, in_two_lists, starred, unpacked, stacked, first_pixels)
for function, wanted, words in examples(TRANSFORM):
    read = known.read(function)
    for template in templates:
        found = read.values_and_words(template, (MARKER,), WORDS)
        assert found == (((TRANSFORM,), words) if template is wanted else None), (function, template, found)
for function in others(TRANSFORM):
    assert all(known.read(function).value(template, MARKER) is None for template in templates), function
"""


@pytest.mark.parametrize("version", SUPPORTED)
def test_examples_of_frameworks_are_recognised(version: str, tmp_path: Path) -> None:
    running = "{}.{}".format(*sys.version_info)
    python = sys.executable if version == running else shutil.which(f"python{version}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if python is None or subprocess.run([python, "-c", ""], env=environment, capture_output=True).returncode:
        pytest.skip(f"python{version} is not installed")
    script = tmp_path / "recognise.py"
    script.write_text(SCRIPT)
    done = subprocess.run([python, str(script), str(SOURCE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_this_python_is_one_of_them() -> None:
    assert "{}.{}".format(*sys.version_info) in SUPPORTED
