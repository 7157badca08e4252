# SPDX-License-Identifier: Apache-2.0
"""Makes environments from snapshots and locks, lists them, and removes them."""
