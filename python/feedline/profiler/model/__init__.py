# SPDX-License-Identifier: Apache-2.0
"""Predicts the gain of a change: pure functions of measured times."""
