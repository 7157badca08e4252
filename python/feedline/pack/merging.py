# SPDX-License-Identifier: Apache-2.0
"""Merges ranges of shards, packed by several workers, into one dataset."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..data import arguments
from ..errors import ConfigError, DataError
from .destinations import Destination, destination_of
from .layouts import index_of_all, name_of_shard, pattern_of
from .manifest import NAME, UNFINISHED_NAME, Manifest, Part, part_in

_MOST_NAMED = 8


class Merged(NamedTuple):
    """Contents of a complete dataset."""

    output: str
    shards: int
    samples: int
    skipped: int
    ranges: int  # number of merged ranges; 0 if it was already complete
    pattern: str


def merge_index(place: str | os.PathLike[str]) -> Merged:
    """Writes the manifest of a dataset that was packed in ranges, and removes the manifests of the ranges.

    Writes nothing unless all ranges are finished, were packed from the same source with the same arguments, have no
    gaps or overlaps, and every shard exists with its SHA-256 (in a folder) or its size and ETag (in a bucket).

    Raises:
        ConfigError: the destination contains no packed ranges, or their arguments differ.
        DataError: a range or a shard is missing, unfinished, duplicate or changed; the message names the range or
            shard.
        StorageError: a manifest or shard cannot be read, or the manifest cannot be written.
    """
    stored = destination_of(arguments.output_path("merge-index", "place", place, urls=True))
    names = stored.names()
    found = sorted((span, name) for name in names if (span := part_in(name)))
    whole = Manifest.load(stored, NAME) if NAME in names else None
    if whole is not None and whole.complete:
        stored.verify(whole.shards, {})
        for _, name in found:  # an earlier removal was interrupted
            stored.remove(name)
        return _merged(stored, whole, 0)
    if not found:
        begun = whole is not None or UNFINISHED_NAME in names
        why = (
            ("the dataset was packed without ranges: run feedline pack again")
            if begun
            else "run feedline pack --shard-range first"
        )
        raise ConfigError(f"merge-index: {stored.shown} has no ranges of shards to merge; {why}")
    parts = [(name, _loaded(stored, name)) for _, name in found]
    _check_alike(stored, parts)
    _check_complete(stored, parts)
    merged = Manifest(parts[0][1].arguments, parts[0][1].source, parts[0][1].classes, complete=True)
    for _, part in parts:
        stored.verify(part.shards, part.marks)
        merged.shards += part.shards
        merged.skipped += part.skipped
    index_of_all(stored, merged)
    merged.save(stored, NAME)
    for name, _ in parts:
        stored.remove(name)
    return _merged(stored, merged, len(parts))


def _loaded(destination: Destination, name: str) -> Manifest:
    part = Manifest.load(destination, name)
    if part is None or part.part is None:
        raise DataError(f"merge-index: {destination.shown}/{name} is not a range's manifest; pack that range again")
    return part


def _check_alike(destination: Destination, parts: list[tuple[str, Manifest]]) -> None:
    """Checks that every range was packed from the same source with the same arguments."""
    first_name, first = parts[0]
    for name, part in parts[1:]:
        differences = [
            f"{what} is {first.arguments.get(what)!r} and {part.arguments.get(what)!r}"
            for what in sorted(first.arguments.keys() | part.arguments.keys())
            if first.arguments.get(what) != part.arguments.get(what)
        ]
        if first.classes != part.classes:
            differences.append("the classes have different names")
        if _part(first).of != _part(part).of:
            differences.append(f"the plans have {_part(first).of} and {_part(part).of} shards")
        if differences:
            raise ConfigError(
                f"merge-index: {first_name} and {name} in {destination.shown} belong to different datasets: "
                f"{'; '.join(differences)}. Pack one of the two again with the arguments of the other"
            )


def _check_complete(destination: Destination, parts: list[tuple[str, Manifest]]) -> None:
    """Checks that each shard exists exactly once, and that every sample is in a shard or was skipped."""
    expected, position = 0, 0
    total = _part(parts[0][1]).of
    for name, manifest in parts:
        part = _part(manifest)
        if part.first > expected:
            raise _missing(destination, expected, part.first, parts, total)
        if part.first < expected:
            raise DataError(f"merge-index: shard {part.first} is in {name} and in an earlier range; remove one of them")
        end = min(part.end, total)
        if not manifest.complete or len(manifest.shards) != end - part.first:
            raise DataError(
                f"merge-index: {destination.shown}/{name} is not finished: {len(manifest.shards)} of "
                f"{end - part.first} shards; run feedline pack with --shard-range {part.first}:{part.end} again"
            )
        for number, shard in enumerate(manifest.shards, part.first):
            if shard.name != name_of_shard(manifest.arguments, number) or shard.first != position:
                raise DataError(
                    f"merge-index: {name} does not match the earlier ranges: {shard.name} begins with sample "
                    f"{shard.first:,}"
                )
            position = shard.end
        expected = end
    if expected < total:
        raise _missing(destination, expected, total, parts, total)
    if position != parts[0][1].arguments["samples"]:
        raise DataError(f"merge-index: the shards end with sample {position:,}, before the last sample of the source")


def _missing(
    destination: Destination, first: int, end: int, parts: list[tuple[str, Manifest]], total: int
) -> DataError:
    gaps, expected = [], 0
    for part in [_part(manifest) for _, manifest in parts] + [Part(total, total, total)]:
        if part.first > expected:
            gaps.append(f"{expected}:{part.first}")
        expected = max(expected, part.end)
    named = ", ".join(gaps[:_MOST_NAMED]) + (f" and {len(gaps) - _MOST_NAMED} more" if len(gaps) > _MOST_NAMED else "")
    return DataError(
        f"merge-index: of the {total} shards of {destination.shown}, these shards are missing: {named}; run "
        "feedline pack with "
        f"--shard-range {first}:{end}"
    )


def _part(manifest: Manifest) -> Part:
    assert manifest.part is not None
    return manifest.part


def _merged(destination: Destination, whole: Manifest, ranges: int) -> Merged:
    pattern = pattern_of(destination, whole.arguments, whole.shards)
    samples = sum(shard.samples for shard in whole.shards)
    return Merged(destination.shown, len(whole.shards), samples, len(whole.skipped), ranges, pattern)
