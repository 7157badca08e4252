# SPDX-License-Identifier: Apache-2.0
"""Computes figures for verdicts from recordings."""
