# SPDX-License-Identifier: Apache-2.0
"""Positions within an epoch, and progress across epochs."""
