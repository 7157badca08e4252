# SPDX-License-Identifier: Apache-2.0
"""What stands in a folder of shards, as one JSON file beside them; it is what packing resumes from.

A shard is in the manifest once it is on the device under its own name. One that is there but not in the manifest was
finished in the moment the process died: it is written again, with the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import ConfigError, DataError

NAME = "feedline-pack.json"
UNFINISHED_NAME = "feedline-pack.unfinished.json"  # of a bucket: with NAME a dataset is whole there
_VERSION = 2  # 1: shards without the names of the classes


def part_name(first: int, end: int) -> str:
    """Of the manifest of a range of shards."""
    return f"feedline-pack.{first:06d}-{end:06d}.json"


def part_in(name: str) -> tuple[int, int] | None:
    """The range whose manifest is called so; None: it is another thing."""
    match = re.fullmatch(r"feedline-pack\.(\d{6,})-(\d{6,})\.json", name)
    return (int(match[1]), int(match[2])) if match else None


class ManifestPlace(Protocol):
    """A place that stores manifests by name."""

    shown: str  # for messages

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...


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
    entry: dict[str, Any] | None = None  # of MDS: what index.json says of it


@dataclass(frozen=True)
class Skipped:
    """A sample that is in no shard, and why."""

    position: int
    key: str
    why: str


@dataclass(frozen=True)
class Part:
    """The shards ``first`` to ``end``, as ``range`` has them, of the ``of`` that the whole dataset is split into."""

    first: int
    end: int
    of: int


@dataclass
class Manifest:
    """``arguments``: everything that the shards' bytes depend on."""

    arguments: dict[str, Any]
    source: str
    classes: list[str]
    shards: list[Shard] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    complete: bool = False

    part: Part | None = None  # of a manifest that is none of the whole dataset
    marks: dict[str, str] = field(default_factory=dict)  # ETags of shards in a bucket, until the manifest is whole

    def save(self, place: ManifestPlace, name: str) -> None:
        content = {"version": _VERSION} | dataclasses.asdict(self)
        for absent in ("part", "marks"):
            if not content[absent]:
                del content[absent]
        for shard in content["shards"]:
            if shard["entry"] is None:
                del shard["entry"]
        place.write(name, (json.dumps(content, indent=1) + "\n").encode())

    @staticmethod
    def load(place: ManifestPlace, name: str) -> Manifest | None:
        """``None`` where there is none. Raises DataError for a file that is no manifest of this version."""
        stored = place.read(name)
        if stored is None:
            return None
        shown = f"{place.shown}/{name}"
        try:
            content = json.loads(stored)
        except ValueError as error:
            raise DataError(f"pack: {shown} is damaged ({error}); remove the folder to start anew") from None
        try:
            if content.pop("version") != _VERSION:
                raise DataError(f"pack: {shown} is of another version of Feedline; pack into another folder")
            content["shards"] = [Shard(**shard) for shard in content["shards"]]
            content["skipped"] = [Skipped(**skipped) for skipped in content["skipped"]]
            content["part"] = Part(**content["part"]) if "part" in content else None
            return Manifest(**content)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"pack: {shown} is damaged ({error}); remove the folder to start anew") from None

    def expect(self, arguments: dict[str, Any], place: str) -> None:
        """Raises ConfigError where packing was begun with other arguments, saying which."""
        begun, now = self.arguments, json.loads(json.dumps(arguments))
        differences = [
            f"{name} was {begun.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(begun.keys() | now.keys())
            if begun.get(name) != now.get(name)
        ]
        if differences:
            raise ConfigError(
                f"pack: {place} was begun with other arguments: {'; '.join(differences)}. "
                "Give the same ones to go on, or another folder"
            )

    def end(self, first: int = 0) -> int:
        """The position of the packed order behind the last shard; `first`: where there is none."""
        return self.shards[-1].end if self.shards else first
