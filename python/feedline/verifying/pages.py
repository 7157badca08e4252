# SPDX-License-Identifier: Apache-2.0
"""What `feedline verify` finds beside the findings of `inspect`, in the words that all verbs share."""

from __future__ import annotations

from ..findings import Entry

# Code, title, what it means, how it is recognised, what to do.
_PAGES = (
    (
        "checksum_differs",
        "a shard is not what was packed",
        "Its size or its SHA-256 is not the one that the manifest of its packing has: it was cut, changed or damaged.",
        "`feedline-pack.json` beside the shard has another size or checksum.",
        "Copy or download the shard again; if it was changed on purpose, pack the dataset anew.",
    ),
    (
        "does_not_open",
        "the source does not open",
        "Part of it cannot be understood, or its parts do not fit together, as shards with other class names do not.",
        "Opening it, or one of its shards, ends with the error that is told.",
        "What the error says.",
    ),
    (
        "duplicate_samples",
        "samples have the same bytes",
        "They count twice in training, and where one of them is in another split, its evaluation is not independent.",
        "All files of the samples but their labels are the same, by a digest of 128 bits.",
        "Leave out all but one, unless that was meant.",
    ),
    (
        "index_differs",
        "a stored index does not match its shard",
        "The shard was replaced by another of the same size and modification time, so its index looked valid.",
        "The stored index is compared with a new one, made from the shard.",
        "Remove the index (`.feedline/SHARD.feedline-index` next to the shard, or the folder of index=), and open the "
        "source again.",
    ),
    (
        "labels_differ",
        "samples with the same bytes have different labels",
        "At least one of the labels is wrong, or the image belongs to several classes.",
        "Their files but the labels are the same, by a digest of 128 bits; the labels are not.",
        "Look at them, and leave out those that are wrong.",
    ),
    (
        "order_incomplete",
        "the ranks together do not get every sample once",
        "This is an error of Feedline: please report it.",
        "The orders of all ranks, with shuffle and without, were put together and counted.",
        "Report it, with the numbers of samples and ranks.",
    ),
    (
        "packing_unfinished",
        "the shards are of a packing that did not end",
        "The manifest beside them says that more samples were to follow.",
        "`feedline-pack.json` is not marked as complete.",
        "Run `feedline pack` with the same arguments: it goes on where it was.",
    ),
    (
        "shards_left_out",
        "the manifest lists shards that the source does not name",
        "They were packed with the others, and are not read.",
        "`feedline-pack.json` has names that the source has not.",
        "Nothing, if that was meant; else name all of them.",
    ),
    (
        "undecodable_sample",
        "a sample cannot be decoded",
        "Its bytes can be read, and one of its fields is damaged or not what its extension says.",
        "With --decode: every field of every sample is decoded, as a loader does it.",
        'Copy it again from where it came from, or leave it out: on_error="skip" of a loader does.',
    ),
    (
        "unreadable_sample",
        "a sample cannot be read",
        "The storage gives an error there, or fewer bytes than there should be.",
        "All files of every sample are read, to the last byte.",
        "Copy the shard or file again; look at the disk, or at the server's log.",
    ),
    (
        "unreadable_shard",
        "a shard cannot be read to its end",
        "It is not there, may not be read, or the storage gives an error.",
        "It is opened, and where the manifest has its checksum read as a whole.",
        "Look whether it is there; copy or download it again.",
    ),
)


def entries() -> list[Entry]:
    """The pages of all that only `verify` finds."""
    return [Entry(code, "verify", title, means, recognised, to_do) for code, title, means, recognised, to_do in _PAGES]


TO_DO = {code: to_do for code, _, _, _, to_do in _PAGES}
