# SPDX-License-Identifier: Apache-2.0
"""Rewrites datasets as tar or MDS shards, for ``feedline pack``."""

from .merging import Merged, merge_index
from .packer import Report, pack, shard_count
from .transcoders import Check, RestartMarkers, Transcoder

__all__ = ["Check", "Merged", "Report", "RestartMarkers", "Transcoder", "merge_index", "pack", "shard_count"]
