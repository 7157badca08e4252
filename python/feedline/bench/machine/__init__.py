# SPDX-License-Identifier: Apache-2.0
"""The machine by itself, without a loader: what ``feedline bench --machine`` measures."""
