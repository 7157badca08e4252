# SPDX-License-Identifier: Apache-2.0
"""Finds samples with the same bytes in all parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..findings import Finding
from .parts import Result
from .report import SampleLocation, found
from .samples import DIGEST_BYTES

_MOST_GROUPS = 1_000


class Duplicates(NamedTuple):
    """`samples` is the number of samples that repeat an earlier sample."""

    samples: int
    groups: list[list[SampleLocation]]
    findings: list[Finding]


def duplicates_in(results: Sequence[Result], place_of: Callable[[int, int], SampleLocation]) -> Duplicates:
    """place_of: function that returns a sample's location, from the number of a part and the index of a digest in
    it.
    """
    import numpy as np

    parts = [np.frombuffer(result.digests, dtype=f"V{DIGEST_BYTES}") for result in results]
    if not any(map(len, parts)):
        return Duplicates(0, [], [])
    digests = np.concatenate(parts).view(np.dtype([("high", "<u8"), ("low", "<u8")]))
    ends = np.cumsum([len(part) for part in parts])
    order = np.lexsort((np.arange(len(digests)), digests["low"], digests["high"]))
    ranked = digests[order]
    repeats = np.flatnonzero(ranked[1:] == ranked[:-1]) + 1  # indices into `order` of all but the first of each group
    if not len(repeats):
        return Duplicates(0, [], [])
    heads = repeats[np.concatenate(([True], np.diff(repeats) > 1))] - 1
    members = []
    for head in heads[:_MOST_GROUPS].tolist():
        end = head + 1
        while end < len(ranked) and ranked[end] == ranked[head]:
            end += 1
        members.append([int(number) for number in order[head:end]])
    members.sort()

    def location(number: int) -> SampleLocation:
        part = int(np.searchsorted(ends, number, side="right"))
        return place_of(part, number - (int(ends[part - 1]) if part else 0))

    groups = [[location(number) for number in group] for group in members]
    return Duplicates(len(repeats), groups, _findings(len(repeats), len(heads), groups))


def _findings(samples: int, count: int, groups: list[list[SampleLocation]]) -> list[Finding]:
    first = groups[0]
    text = f"{samples:,} samples have the same bytes as another sample, in {count:,} groups: '{first[0].key}' and "
    text += f"'{first[1].key}'"
    same = found("duplicate_samples", "note", text, shard=first[0].shard, key=first[0].key)
    differ = [group for group in groups if len({location.label for location in group}) > 1]
    if not differ:
        return [same]
    one, other = _unlike(differ[0])
    text = f"{len(differ):,} groups of samples have the same bytes but different labels: '{one.key}' is {one.label}, "
    text += f"'{other.key}' is {other.label}"
    return [same, found("labels_differ", "warning", text, shard=one.shard, key=one.key)]


def _unlike(group: list[SampleLocation]) -> tuple[SampleLocation, SampleLocation]:
    return next(pair for pair in itertools.combinations(group, 2) if pair[0].label != pair[1].label)
