# SPDX-License-Identifier: Apache-2.0
"""Causes in memory, shared memory and swap."""
