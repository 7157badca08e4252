# SPDX-License-Identifier: Apache-2.0
"""The limits of the machine: programs without a loader, run in the same rounds, with figures like a loader's."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from launch import Skipped
from run import write_boxes
from work import SIZE, TOKENS

_DECODER_ROUNDS = 5  # in one run of jpeg_regions, which alternates itself
_DECODER_IMAGES = {"photos": 300, "large": 60}


@dataclass(frozen=True)
class Programs:
    """The folders of the compiled programs of bench/, of the photos, and of stored boxes and tokens."""

    folder: Path
    photos: dict[str, Path]  # keys: "photos" and "large"
    made: Path
    epochs: int

    def _run(self, name: str, *arguments: object) -> dict[str, Any]:
        program = self.folder / name
        if not program.exists():
            raise Skipped(f"{program} is not built")
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"{name} failed: {done.stderr.strip()[-300:]}")
        return dict(json.loads(done.stdout))

    def _regions(self, data: str, threads: int) -> dict[str, Any]:
        boxes = self.made / f"{data}-boxes.txt"
        if not boxes.exists():
            self.made.mkdir(parents=True, exist_ok=True)
            write_boxes(self.photos[data], SIZE, boxes)
        printed = self._run("jpeg_limit", boxes, threads, self.epochs)
        return {
            "samples_per_s": printed["images_per_s"],
            "cpu_s_per_1000": printed["cpu_s_per_1000_images"],
            "samples": printed["images"],
        }

    def _decoder(self, data: str, tables: str) -> dict[str, Any]:
        arguments = (self.photos[data], _DECODER_ROUNDS, _DECODER_IMAGES[data], tables)
        printed = self._run("jpeg_regions", *arguments)
        return {**printed, "ratio": printed["ratio_median"]}

    def _moved(self, what: str) -> dict[str, Any]:
        tokens = self.made / TOKENS
        if what != "gather" and not tokens.exists():
            raise Skipped(f"{tokens} is missing: the token loaders, which write it, did not run")
        return self._run("memory_limit", what, *([] if what == "gather" else [tokens]))

    def run(self, name: str, data: str) -> dict[str, Any]:
        """Returns the figures of the limit `name` for the photos `data`. Raises Skipped."""
        if name.startswith("regions"):
            return self._regions(data, 1 if name.endswith("1 thread") else 2)
        moved = {"gather of rows": "gather", "widening copy": "widen", "memcpy of the windows": "copy"}
        what = moved.get(name.removesuffix(", 1 thread"))
        if what:
            return self._moved(what)
        data, _, tables = name.partition(", ")
        return self._decoder(data, tables)
