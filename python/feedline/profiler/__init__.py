# SPDX-License-Identifier: Apache-2.0
"""Profiles a command, for ``feedline diagnose`` and ``feedline tune``."""
