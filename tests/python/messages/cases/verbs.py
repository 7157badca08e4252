# SPDX-License-Identifier: Apache-2.0
"""pack, verify and stage as functions, and shared lists."""

from __future__ import annotations

import feedline
from feedline import packing, staging, verifying
from messages.expressions import expressions, functions
from messages.samples import Samples


def _a_restart_interval_of_zero(s: Samples) -> None:
    packing.RestartMarkers(0)


def _a_restart_interval_that_is_text(s: Samples) -> None:
    packing.RestartMarkers("many")  # type: ignore[arg-type]


def _a_pack_of_a_mixture(s: Samples) -> None:
    feedline.mix([s.images, s.images]).pack("here/out")


def _a_pack_of_a_source_that_is_missing(s: Samples) -> None:
    packing.pack("no/such/folder", "here/out")


def _a_shard_range_that_is_text(s: Samples) -> None:
    packing.pack(s.folder, "here/out", samples_per_shard=2, shard_range="0:1")  # type: ignore[arg-type]


def _a_shard_range_of_limited_size_with_arrays(s: Samples) -> None:
    packing.pack(s.folder, "here/out", shard_range=(0, 1), transcoders=[packing.RestartMarkers()])


def _a_key_that_is_too_long_for_lmdb(s: Samples) -> None:
    s.write(f"in/{'a' * 250}/{'b' * 250}/{'c' * 30}.png", s.png)
    packing.pack("here/in", "here/out", to="lmdb")


def _records_of_unknown_sizes(s: Samples) -> None:
    packing.pack(s.folder, "here/out", to="tfrecord", shard_range=(0, 1))


def _samples_with_other_columns(s: Samples) -> None:
    tar = s.write_tar(("a.png", s.png), ("a.cls", "0"), ("b.png", s.png))
    packing.pack(tar, "here/out", to="tfrecord")


def _a_value_that_does_not_fit(s: Samples) -> None:
    tar = s.write_tar(("a.png", s.png), ("a.cls", "0"), ("b.png", s.png), ("b.cls", "cat"))
    packing.pack(tar, "here/out", to="tfrecord")


def _a_verification_of_arrays(s: Samples) -> None:
    s.numbers.verify()


def _a_verification_of_a_world_of_zero(s: Samples) -> None:
    verifying.verify(s.folder, world_size=0)


def _a_verification_by_text(s: Samples) -> None:
    verifying.verify(s.folder, num_workers="many")  # type: ignore[arg-type]


def _a_stage_of_too_few_threads(s: Samples) -> None:
    staging.stage(s.folder, "here/out", num_workers=0)


def _a_stage_into_a_number(s: Samples) -> None:
    staging.stage(s.folder, 3)  # type: ignore[arg-type]


def _a_stage_of_a_dict(s: Samples) -> None:
    staging.stage({"a": 1}, "here/out")  # type: ignore[arg-type]


CASES = {
    **expressions("""
        small.pack("here/out")
        small.verify()
        numbers.pack("here/out")
        images.pack(3)
        images.pack("here/out", shard_bytes="much")
        images.pack("here/out", shard_bytes=0)
        images.pack("here/out", shard_bytes=10**9, samples_per_shard=3)
        images.pack("here/out", samples_per_shard=0)
        images.pack("here/out", samples_per_shard="3")
        images.pack("here/out", to="zip")
        images.pack("here/out", to="lmdb", shuffle=True)
        images.pack("here/out", to="lmdb", keep_keys=True)
        images.pack("here/out", compression="zstd")
        images.pack("here/out", hashes=["sha256"])
        images.pack("here/out", keep_keys="yes")
        images.pack("here/out", to="mds", compression="lzma")
        images.pack("here/out", to="mds", compression="zstd:99")
        images.pack("here/out", to="mds", hashes="sha256")
        images.pack("here/out", to="mds", hashes=3)
        images.pack("here/out", to="mds", hashes=["crc"])
        images.pack("here/out", to="mds", hashes=[3])
        images.pack("here/out", to="mds", hashes=[["sha256"]])
        images.pack("here/out", to="mds", shard_bytes=8 * 10**9)
        images.pack("here/out", shuffle="yes")
        images.pack("here/out", seed=-1)
        images.pack("here/out", on_error="ignore")
        images.pack("here/out", num_workers=0)
        images.pack("here/out", num_workers="many")
        images.pack("here/out", shard_range=3)
        images.pack("here/out", shard_range=("a", "b"))
        images.pack("here/out", samples_per_shard=2, shard_range=(2, 1))
        images.pack("here/out", samples_per_shard=2, shard_range=(7, 9))
        images.pack("here/none/deeper/out")
        images.pack("ftp://host/out")
    """),
    **functions(globals()),
}
