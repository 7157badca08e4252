# SPDX-License-Identifier: Apache-2.0
"""What stands in a folder of shards, as one JSON file beside them; it is what packing resumes from.

A shard is in the manifest once it is on the device under its own name. One that is there but not in the manifest was
finished in the moment the process died: it is written again, with the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError
from .shard_file import sha256_of, write_durably

NAME = "feedline-pack.json"
_VERSION = 2  # 1: shards without the names of the classes


@dataclass(frozen=True)
class Shard:
    """``first`` and ``end``: the positions of the packed order that it holds, as ``range`` has them."""

    name: str
    first: int
    end: int
    samples: int
    bytes: int
    sha256: str
    files: int  # images and other files that came from the source
    rewritten: int  # of those, the ones that a transcoder changed
    bytes_before: int  # of the files, as they were
    bytes_after: int


@dataclass(frozen=True)
class Skipped:
    """A sample that is in no shard, and why."""

    position: int
    key: str
    why: str


@dataclass
class Manifest:
    """``arguments``: everything that the shards' bytes depend on."""

    arguments: dict[str, Any]
    source: str
    classes: list[str]
    shards: list[Shard] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    complete: bool = False

    def save(self, folder: Path) -> None:
        content = {"version": _VERSION} | dataclasses.asdict(self)
        write_durably(folder / NAME, (json.dumps(content, indent=1) + "\n").encode())

    @staticmethod
    def load(folder: Path) -> Manifest | None:
        """``None`` where there is none. Raises DataError for a file that is no manifest of this version."""
        try:
            content = json.loads((folder / NAME).read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"pack: {folder / NAME} is damaged ({error}); remove the folder to start anew") from None
        try:
            if content.pop("version") != _VERSION:
                raise DataError(f"pack: {folder / NAME} is of another version of Feedline; pack into another folder")
            content["shards"] = [Shard(**shard) for shard in content["shards"]]
            content["skipped"] = [Skipped(**skipped) for skipped in content["skipped"]]
            return Manifest(**content)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"pack: {folder / NAME} is damaged ({error}); remove the folder to start anew") from None

    def expect(self, arguments: dict[str, Any], folder: Path) -> None:
        """Raises ConfigError where packing was begun with other arguments, saying which."""
        begun, now = self.arguments, json.loads(json.dumps(arguments))
        differences = [
            f"{name} was {begun.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(begun.keys() | now.keys())
            if begun.get(name) != now.get(name)
        ]
        if differences:
            raise ConfigError(
                f"pack: {folder} was begun with other arguments: {'; '.join(differences)}. "
                "Give the same ones to go on, or another folder"
            )

    def end(self) -> int:
        """The position of the packed order behind the last shard."""
        return self.shards[-1].end if self.shards else 0

    def verify(self, folder: Path) -> None:
        """Raises DataError unless every shard is what was written."""
        for shard in self.shards:
            path = folder / shard.name
            try:
                same = path.stat().st_size == shard.bytes and sha256_of(path) == shard.sha256
            except FileNotFoundError:
                raise DataError(f"pack: {path} is missing; remove {folder} to start anew", shard=str(path)) from None
            if not same:
                raise DataError(
                    f"pack: {path} is not what was written there; remove {folder} to start anew", shard=str(path)
                )
