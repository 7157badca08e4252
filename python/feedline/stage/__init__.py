# SPDX-License-Identifier: Apache-2.0
"""Copies datasets to a local folder, for ``feedline stage``."""
