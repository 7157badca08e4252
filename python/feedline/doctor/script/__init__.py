# SPDX-License-Identifier: Apache-2.0
"""A training script, read by its syntax tree: nothing of it is run or imported."""
