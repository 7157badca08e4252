# SPDX-License-Identifier: Apache-2.0
"""``feedline tune``: compares a loader's settings and selects those that are faster.

This package is imported by the command line and, in the processes that it starts, by the probe; never by ``import
feedline``.
"""
