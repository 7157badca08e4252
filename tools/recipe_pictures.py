#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/recipe_pictures.py [--text]: draws docs/pictures/recipe-*.jpg, samples of the recipes in docs/recipes.md, and
writes the output of `explain()` for each recipe into that page. --text: writes only the page.

The photos are scikit-image's, which are in the public domain (CC0; NASA): chelsea, coffee, astronaut, rocket.
"""

from __future__ import annotations

import io
import re
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

import feedline
from feedline import presets
from feedline.data.inspect.contact_sheet import sheet_of

DOCS = Path(__file__).parents[1] / "docs"
PICTURES, PAGE = DOCS / "pictures", DOCS / "recipes.md"
EXPLAINED = ("torchvision", "timm", "detection")  # the recipes whose explain() the page shows
# Crop boxes in pixels of the photos below: the cat's face and nose, the cup, the head, the rocket.
BOXES = {
    "chelsea": [[90, 30, 330, 270], [180, 140, 240, 190]],
    "coffee": [[130, 60, 470, 340]],
    "astronaut": [[165, 10, 300, 215]],
    "rocket": [[285, 90, 350, 380]],
}


def photos() -> dict[str, np.ndarray]:
    return {name: getattr(data, name)() for name in BOXES}


def made_folder(folder: Path) -> Path:
    for name, pixels in photos().items():
        (folder / "photos" / name).mkdir(parents=True)
        Image.fromarray(pixels).save(folder / "photos" / name / "photo.jpg", quality=92)
    return folder / "photos"


def made_tar(path: Path) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, (name, pixels) in enumerate(photos().items()):
            photo, boxes, labels = io.BytesIO(), io.BytesIO(), io.BytesIO()
            Image.fromarray(pixels).save(photo, "JPEG", quality=92)
            np.save(boxes, np.array(BOXES[name], np.float32))
            np.save(labels, np.arange(len(BOXES[name])) + 10 * number)
            for extension, stream in (("jpg", photo), ("boxes.npy", boxes), ("labels.npy", labels)):
                member = tarfile.TarInfo(f"{name}.{extension}")
                member.size = len(stream.getvalue())
                tar.addfile(member, io.BytesIO(stream.getvalue()))
    return path


def recipes(folder: Path, tar: Path) -> dict[str, tuple[feedline.Dataset, int, int]]:
    """Returns by name: the dataset, and the numbers of samples and epochs in its picture."""
    scenes = feedline.open(tar, fields=["jpg", "boxes.npy:boxes", "labels.npy"])
    timm = feedline.open(folder).random_resized_crop(224, interpolation="random").random_horizontal_flip()
    timm = timm.timm_augment("rand-m9-mstd0.5-inc1").normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    return {
        "torchvision": (presets.imagenet_train_v2(folder, size=224).dataset, 4, 4),
        "timm": (timm.timm_random_erasing(0.25, mode="pixel"), 4, 4),
        "dino": (presets.dino(folder).dataset, 3, 1),
        "simclr": (presets.simclr(folder).dataset, 4, 2),
        "detection": (presets.detection(scenes).dataset, 4, 4),
    }


def explained(dataset: feedline.Dataset) -> str:
    """Omits the first line, which describes these photos."""
    return dataset.explain().partition("\n")[2].rstrip("\n") + "\n"


def with_explanations(page: str, found: dict[str, str]) -> str:
    """Returns `page` with each text of `found` in the block after the line `<!-- explain: NAME -->`."""
    for name, text in found.items():
        block = re.compile(rf"(<!-- explain: {name} -->\n```\n).*?(?=```)", re.DOTALL)
        page, count = block.subn(lambda match, text=text: match[1] + text, page)
        if count != 1:
            raise SystemExit(f"docs/recipes.md has {count} blocks after <!-- explain: {name} -->, not one")
    return page


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        found = recipes(made_folder(Path(made)), made_tar(Path(made) / "boxes.tar"))
        PAGE.write_text(with_explanations(PAGE.read_text(), {name: explained(found[name][0]) for name in EXPLAINED}))
        print(PAGE)
        if "--text" in sys.argv[1:]:
            return
        for name, (dataset, samples, epochs) in found.items():
            sheet = sheet_of(dataset, samples, epochs, 0)
            sheet.image.save(PICTURES / f"recipe-{name}.jpg", quality=85)
            print(PICTURES / f"recipe-{name}.jpg", sheet.image.size)


if __name__ == "__main__":
    main()
