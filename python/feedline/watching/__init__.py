# SPDX-License-Identifier: Apache-2.0
"""Watching a command: what ``feedline diagnose`` and ``feedline tune`` share."""
