# SPDX-License-Identifier: Apache-2.0
"""Positions, and progress that outlives an epoch."""
