# SPDX-License-Identifier: Apache-2.0
"""What ``feedline tune`` does: measures a loader's settings beside each other, and keeps those that gain.

Imported by the command line and, in the processes that it starts, by the probe; never by ``import feedline``.
"""
