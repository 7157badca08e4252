# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --machine``: measures the machine without running a loader."""
