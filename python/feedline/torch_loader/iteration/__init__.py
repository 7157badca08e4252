# SPDX-License-Identifier: Apache-2.0
"""Iterators of loaders, with and without workers."""
