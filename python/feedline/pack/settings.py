# SPDX-License-Identifier: Apache-2.0
"""Checks arguments: shard sizes, the format of shards, and MDS storage settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..data import arguments
from ..errors import ConfigError
from . import parquet_shard
from .mds_shard import DEFAULT_SHARD_BYTES, MdsSettings

FORMATS = ("tar", "wds", "mds", "tfrecord", "lmdb", "parquet")
# Default sizes. LMDB: one database, as users expect. Parquet: the size at which `datasets` splits files.
_DEFAULT_SHARD_BYTES = {
    "tar": 1_000_000_000, "mds": DEFAULT_SHARD_BYTES, "tfrecord": 1_000_000_000, "lmdb": 1 << 40,
    "parquet": 500_000_000,
}  # fmt: skip
_SMALLEST_BARE_BYTES = 1_000_000  # smaller numbers without a unit, as text, are probably not meant in bytes


@dataclass(frozen=True)
class Form:
    """The format of shards: "tar", "mds", "tfrecord", "lmdb" or "parquet", and its settings."""

    to: str
    mds: MdsSettings | None = None
    keep_keys: bool = False


def wanted_shards(
    to: str,
    shard_bytes: int | str | None,
    samples_per_shard: int | None,
    compression: str | None,
    hashes: Sequence[str] | None,
    keep_keys: bool,
    shuffle: bool,
) -> tuple[dict[str, int | None], Form]:
    """Returns the shard size and the format."""
    if to not in FORMATS:
        *first, last = (f'"{name}"' for name in FORMATS)
        raise ConfigError(f"pack: to must be {', '.join(first)} or {last}, not {to!r}")
    to = "tar" if to == "wds" else to  # WebDataset's shards are tar files
    limits = _limits(shard_bytes, samples_per_shard, _DEFAULT_SHARD_BYTES[to])
    arguments.flag("pack", "keep_keys", keep_keys)
    if (compression is not None or hashes is not None) and to != "mds":
        raise ConfigError('pack: compression and hashes require to="mds" (--to mds)')
    if keep_keys and to in ("tar", "lmdb"):
        raise ConfigError(
            'pack: keep_keys requires to="mds", "tfrecord" or "parquet" (--to); tar files and LMDB always store keys'
        )
    if to == "lmdb" and shuffle:
        raise ConfigError("pack: LMDB sorts samples by key, so shuffle has no effect; shuffle when reading")
    if to == "parquet":
        parquet_shard.pyarrow()
    if to != "mds":
        return limits, Form(to, None, keep_keys)
    sums = ("sha256",) if hashes is None else hashes
    return limits, Form(to, MdsSettings.checked(compression, sums, limits["shard_bytes"]), keep_keys)


def _limits(shard_bytes: int | str | None, samples_per_shard: int | None, default: int) -> dict[str, int | None]:
    if shard_bytes is not None and samples_per_shard is not None:
        raise ConfigError("pack: pass shard_bytes or samples_per_shard, not both")
    if samples_per_shard is not None:
        return {
            "shard_bytes": None,
            "samples_per_shard": arguments.integer("pack", "samples_per_shard", samples_per_shard, 1),
        }
    size = default if shard_bytes is None else arguments.byte_count("pack", "shard_bytes", shard_bytes)
    if isinstance(shard_bytes, str) and shard_bytes.strip().isdecimal() and size < _SMALLEST_BARE_BYTES:
        raise ConfigError(
            f'pack: a shard size of "{size}" is {size} bytes, about one shard per sample; add the unit: '
            f'"{size}G" or "{size}M", or "{size}B" if bytes are meant'
        )
    return {"shard_bytes": size, "samples_per_shard": None}
