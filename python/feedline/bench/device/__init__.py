# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --device``: measures the bandwidth to a GPU, and how much of the copying overlaps with the training
step.
"""
