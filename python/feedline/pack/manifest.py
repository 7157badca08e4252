# SPDX-License-Identifier: Apache-2.0
"""The manifest of a folder's shards: a JSON file next to them, from which packing resumes.

A shard is added to the manifest once it is durable under its final name. A shard that exists but is not in the manifest
was finished just before the process died. Such a shard is written again, with the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import ConfigError, DataError

NAME = "feedline-pack.json"
UNFINISHED_NAME = "feedline-pack.unfinished.json"  # a bucket with NAME has a complete dataset
_VERSION = 2  # 1: shards without the names of the classes


def part_name(first: int, end: int) -> str:
    """Returns the manifest name for a range of shards."""
    return f"feedline-pack.{first:06d}-{end:06d}.json"


def part_in(name: str) -> tuple[int, int] | None:
    """Returns the range of shards whose manifest has this name; None for other names."""
    match = re.fullmatch(r"feedline-pack\.(\d{6,})-(\d{6,})\.json", name)
    return (int(match[1]), int(match[2])) if match else None


class ManifestStorage(Protocol):
    """A store of manifests by name."""

    shown: str  # for messages

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...


@dataclass(frozen=True)
class Shard:
    """A shard; ``first`` and ``end`` are its half-open range of positions in the packed order."""

    name: str
    first: int
    end: int
    samples: int
    bytes: int
    sha256: str
    files: int  # images and other files from the source
    rewritten: int  # of those, the ones that a transcoder changed
    bytes_before: int  # size of the source files
    bytes_after: int
    entry: dict[str, Any] | None = None  # MDS only: its entry in index.json


@dataclass(frozen=True)
class Skipped:
    """A skipped sample, with the reason."""

    position: int
    key: str
    why: str


@dataclass(frozen=True)
class Part:
    """A half-open range of shards, from ``first`` to ``end``; ``of`` is the number of shards in the whole dataset."""

    first: int
    end: int
    of: int


@dataclass
class Manifest:
    """The manifest's contents; ``arguments`` are all arguments that affect the shards' bytes."""

    arguments: dict[str, Any]
    source: str
    classes: list[str]
    shards: list[Shard] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    complete: bool = False

    part: Part | None = None  # the range, if it is not the manifest of the whole dataset
    marks: dict[str, str] = field(default_factory=dict)  # ETags of shards in a bucket, until the manifest is complete

    def save(self, destination: ManifestStorage, name: str) -> None:
        content = {"version": _VERSION} | dataclasses.asdict(self)
        for absent in ("part", "marks"):
            if not content[absent]:
                del content[absent]
        for shard in content["shards"]:
            if shard["entry"] is None:
                del shard["entry"]
        destination.write(name, (json.dumps(content, indent=1) + "\n").encode())

    @staticmethod
    def load(destination: ManifestStorage, name: str) -> Manifest | None:
        """Returns the manifest, or ``None`` if the file does not exist. Raises DataError if the file is not a manifest
        of this version.
        """
        stored = destination.read(name)
        if stored is None:
            return None
        shown = f"{destination.shown}/{name}"
        try:
            content = json.loads(stored)
        except ValueError as error:
            raise DataError(f"pack: {shown} is damaged ({error}); remove the folder and start again") from None
        try:
            if content.pop("version") != _VERSION:
                raise DataError(
                    f"pack: {shown} was written by a different version of Feedline; pack into another folder"
                )
            content["shards"] = [Shard(**shard) for shard in content["shards"]]
            content["skipped"] = [Skipped(**skipped) for skipped in content["skipped"]]
            content["part"] = Part(**content["part"]) if "part" in content else None
            return Manifest(**content)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"pack: {shown} is damaged ({error}); remove the folder and start again") from None

    def expect(self, arguments: dict[str, Any], destination: str) -> None:
        """Raises ConfigError that lists the differences if packing was started with other arguments."""
        begun, now = self.arguments, json.loads(json.dumps(arguments))
        differences = [
            f"{name} was {begun.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(begun.keys() | now.keys())
            if begun.get(name) != now.get(name)
        ]
        if differences:
            raise ConfigError(
                f"pack: {destination} was started with other arguments: {'; '.join(differences)}. Pass the same "
                "arguments to resume, or another folder"
            )

    def end(self, first: int = 0) -> int:
        """Returns the position after the last shard, or `first` if there is no shard."""
        return self.shards[-1].end if self.shards else first
