# SPDX-License-Identifier: Apache-2.0
"""Rewrites datasets as tar or MDS shards, for ``feedline pack``."""
