# SPDX-License-Identifier: Apache-2.0
"""Computes the metrics for verdicts from recordings."""
