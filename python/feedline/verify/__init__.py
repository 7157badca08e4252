# SPDX-License-Identifier: Apache-2.0
"""Verifies that a dataset is complete and readable, for ``feedline verify``."""
