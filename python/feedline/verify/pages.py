# SPDX-License-Identifier: Apache-2.0
"""Texts for findings that `feedline verify` reports and `feedline inspect` does not."""

from __future__ import annotations

from ..findings import Entry

# Code, title, meaning, detection, remedy.
_PAGES = (
    (
        "checksum_differs",
        "a shard has changed since it was packed",
        "The shard's size or SHA-256 does not match the manifest: the shard was truncated, changed or damaged.",
        "`feedline-pack.json` next to the shard has a different size or checksum.",
        "Copy or download the shard again; if it was changed on purpose, pack the dataset again.",
    ),
    (
        "does_not_open",
        "the source cannot be opened",
        "A part of the source is invalid, or parts are inconsistent, such as shards with different class names.",
        "Opening the source, or one of its shards, fails with the reported error.",
        "Follow the reported error.",
    ),
    (
        "duplicate_samples",
        "samples have the same bytes",
        "Duplicates count twice in training, and a training sample that is also in the evaluation split makes the "
        "evaluation too optimistic.",
        "All files of the samples except their labels have the same 128-bit digest.",
        "Remove all but one of the samples, unless duplicates are intended.",
    ),
    (
        "index_differs",
        "a stored index does not match its shard",
        "The shard was replaced by a file of the same size and modification time, so its index looked valid.",
        "The stored index is compared with a new one, built from the shard.",
        "Remove the index (`.feedline/SHARD.feedline-index` next to the shard, or the folder of index=), and open the "
        "source again.",
    ),
    (
        "labels_differ",
        "samples with the same bytes have different labels",
        "At least one of the labels is wrong, or the image belongs to several classes.",
        "All files of the samples except the labels have the same 128-bit digest; the labels differ.",
        "Examine the samples, and remove those with wrong labels.",
    ),
    (
        "order_incomplete",
        "the ranks together do not receive every sample exactly once",
        "This is a bug in Feedline: please report it.",
        "The orders of all ranks, shuffled and not, were combined and counted.",
        "Report the bug, with the numbers of samples and ranks.",
    ),
    (
        "packing_unfinished",
        "the shards belong to an unfinished pack run",
        "The manifest next to the shards is incomplete.",
        "`feedline-pack.json` is not marked as complete.",
        "Run `feedline pack` with the same arguments to resume the run.",
    ),
    (
        "shards_left_out",
        "the manifest lists shards that are not in the source",
        "These shards were packed with the other shards but are not read.",
        "`feedline-pack.json` lists names that the source does not contain.",
        "Do nothing if this is intended; otherwise pass all shards.",
    ),
    (
        "undecodable_sample",
        "a sample cannot be decoded",
        "The sample's bytes can be read, but a field is damaged or does not match its extension.",
        "With --decode, every field of every sample is decoded, as in a loader.",
        'Copy the sample again from its source, or set on_error="skip" in the loader to leave it out.',
    ),
    (
        "unreadable_sample",
        "a sample cannot be read",
        "The storage returns an error, or too few bytes.",
        "All files of every sample are read completely.",
        "Copy the shard or file again; check the disk or the server's log.",
    ),
    (
        "unreadable_shard",
        "a shard cannot be read completely",
        "The shard does not exist or is not readable, or the storage returns an error.",
        "The shard is opened, and read completely if the manifest contains its checksum.",
        "Check that the shard exists; copy or download it again.",
    ),
)


def entries() -> list[Entry]:
    """Returns the documentation pages of findings that only `verify` reports."""
    return [Entry(code, "verify", title, means, recognised, to_do) for code, title, means, recognised, to_do in _PAGES]


TO_DO = {code: to_do for code, _, _, _, to_do in _PAGES}
