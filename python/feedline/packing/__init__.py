# SPDX-License-Identifier: Apache-2.0
"""Datasets written again as tar shards: what ``feedline pack`` does."""

from .packer import Report, pack
from .transcoders import Check, RestartMarkers, Transcoder

__all__ = ["Check", "Report", "RestartMarkers", "Transcoder", "pack"]
