# SPDX-License-Identifier: Apache-2.0
"""Describes the work for a loader's process. Uses only the standard library, because every environment imports it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEAN = (0.485, 0.456, 0.406)  # ImageNet's values, for pixels from 0 to 1
STD = (0.229, 0.224, 0.225)
SIZE = 224
_MOST_BLANK = 0.1  # share of a batch that may be blank, such as crops of an overexposed sky; more means read errors
TOKENS = "tokens.bin"  # name of the token file among generated files
SHORTER = 256  # shorter side to which validation resizes before it crops


class Unavailable(Exception):
    """A loader does not support this work on this machine; the message states the reason."""


@dataclass(frozen=True)
class Work:
    """One loader's part of a measurement."""

    # "train": random_resized_crop and flip; "validate": resize and centre crop; otherwise specific to the adapter
    transform: str
    dtype: str  # element type of images: "float32", normalised, or "uint8"
    variant: str  # one of the adapter's configurations
    folder: str  # class folders with photos
    tars: str  # the same photos as shards, as a brace list; adapters store their files next to them
    made: str  # folder for an adapter's files
    batch: int = 64
    threads: int = 2  # or worker processes
    epochs: int = 2  # number of timed epochs, after one warm-up epoch
    step_s: float = 0.0  # duration of a training step between two batches
    source: str = ""  # URL of the same photos in the peer's own format, on a server

    @property
    def train(self) -> bool:
        return self.transform == "train"

    @property
    def floating(self) -> bool:
        return self.dtype == "float32"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Work:
        return Work(**json.loads(text))

    def files(self) -> tuple[list[str], list[int]]:
        """Returns the photos sorted by path, and their class numbers."""
        classes = sorted(path.name for path in Path(self.folder).iterdir() if path.is_dir())
        found = [(str(p), i) for i, name in enumerate(classes) for p in sorted(Path(self.folder, name).iterdir())]
        return [path for path, _ in found], [label for _, label in found]

    def wrong(self, first: dict[str, Any], samples: int) -> str:
        """Returns why the first batch (see child.py) or the number of samples is wrong; empty if both are right."""
        if self.transform not in ("train", "validate"):
            return ""
        photos = len(self.files()[0])
        if not photos - self.threads * self.batch < samples <= photos:  # each worker may have an incomplete batch
            return f"its epoch has {samples} of {photos} photos"
        # the brightness of black in red, and of white in blue
        lowest, highest = (-2.2, 2.7) if self.floating else (0, 255)
        wanted = {"shape": [self.batch, 3, SIZE, SIZE], "dtype": self.dtype}
        for name, value in wanted.items():
            if first[name] != value:
                return f"its batches have {name} {first[name]}, not {value}"
        if not lowest <= first["min"] < first["max"] <= highest:
            return f"its values go from {first['min']} to {first['max']}, outside of {lowest} to {highest}"
        if first["blank"] > _MOST_BLANK * self.batch:
            return f"{first['blank']} pictures of its first batch are blank"
        return ""

    def made_file(self, name: str) -> Path:
        Path(self.made).mkdir(parents=True, exist_ok=True)
        return Path(self.made) / name


def refuse(what: bool, why: str) -> None:
    if what:
        raise Unavailable(why)
