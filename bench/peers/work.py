# SPDX-License-Identifier: Apache-2.0
"""What a loader is asked to do, as its process gets it. Standard library only: every environment imports it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEAN = (0.485, 0.456, 0.406)  # ImageNet's, of values from 0 to 1
STD = (0.229, 0.224, 0.225)
SIZE = 224
_MOST_BLANK = 0.1  # of a batch: crops out of an overexposed sky; more are photos that could not be read
TOKENS = "tokens.bin"  # among what is made
SHORTER = 256  # side that validation resizes to before it crops


class Unavailable(Exception):
    """A loader cannot do this work here; the text says why."""


@dataclass(frozen=True)
class Work:
    """One loader's share of a measurement."""

    transform: str  # "train": random_resized_crop and flip; "validate": resize and centre crop; else the adapter's own
    dtype: str  # of what it gives: "float32", normalised, or "uint8"
    variant: str  # of the adapter's configurations
    folder: str  # class folders of photos
    tars: str  # the same photos as shards, as a brace list
    made: str  # where an adapter keeps what it makes of them
    batch: int = 64
    threads: int = 2  # or worker processes
    epochs: int = 2  # timed ones, after one that warms up
    step_s: float = 0.0  # what a training step between two batches takes
    source: str = ""  # the same photos in the peer's own format behind a network, as a URL

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
        """The photos in order of path, and the numbers of their classes."""
        classes = sorted(path.name for path in Path(self.folder).iterdir() if path.is_dir())
        found = [(str(p), i) for i, name in enumerate(classes) for p in sorted(Path(self.folder, name).iterdir())]
        return [path for path, _ in found], [label for _, label in found]

    def wrong(self, first: dict[str, Any], samples: int) -> str:
        """Why a first batch, as child.py describes it, or the samples of an epoch are not what was asked for; empty
        where they are."""
        if self.transform not in ("train", "validate"):
            return ""
        photos = len(self.files()[0])
        if not photos - self.threads * self.batch < samples <= photos:  # of each worker a batch may be incomplete
            return f"its epoch has {samples} of {photos} photos"
        lowest, highest = (-2.2, 2.7) if self.floating else (0, 255)  # black in red, white in blue
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
