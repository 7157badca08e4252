# SPDX-License-Identifier: Apache-2.0
"""The public functions and classes of ``feedline pack``."""

from .pack.merging import Merged, merge_index
from .pack.packer import Report, pack, shard_count
from .pack.transcoders import Check, RestartMarkers, Transcoder
from .pack.zarr_volumes import VolumeReport, pack_volumes

__all__ = [
    "Check",
    "Merged",
    "Report",
    "RestartMarkers",
    "Transcoder",
    "VolumeReport",
    "merge_index",
    "pack",
    "pack_volumes",
    "shard_count",
]
