# SPDX-License-Identifier: Apache-2.0
"""Checked arguments: shard sizes, and MDS storage settings."""

from __future__ import annotations

from collections.abc import Sequence

from ..data import arguments
from ..errors import ConfigError
from .mds_shard import DEFAULT_SHARD_BYTES, MdsSettings

_DEFAULT_SHARD_BYTES = {"tar": 1_000_000_000, "mds": DEFAULT_SHARD_BYTES}
_SMALLEST_BARE_BYTES = 1_000_000  # smaller numbers without a unit, as text, are probably not meant in bytes


def wanted_shards(
    to: str,
    shard_bytes: int | str | None,
    samples_per_shard: int | None,
    compression: str | None,
    hashes: Sequence[str] | None,
    keep_keys: bool,
) -> tuple[dict[str, int | None], MdsSettings | None]:
    """Returns the shard size, and the MDS storage settings."""
    if to not in _DEFAULT_SHARD_BYTES:
        raise ConfigError(f'pack: to must be "tar" or "mds", not {to!r}')
    limits = _limits(shard_bytes, samples_per_shard, _DEFAULT_SHARD_BYTES[to])
    arguments.flag("pack", "keep_keys", keep_keys)
    if to == "mds":
        sums = ("sha256",) if hashes is None else hashes
        return limits, MdsSettings.checked(compression, sums, limits["shard_bytes"])
    if compression is not None or hashes is not None or keep_keys:
        raise ConfigError('pack: compression, hashes and keep_keys require to="mds" (--to mds)')
    return limits, None


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
