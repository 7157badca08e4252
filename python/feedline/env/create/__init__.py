# SPDX-License-Identifier: Apache-2.0
"""Creates environments from snapshots and locks, lists them, and removes them."""
