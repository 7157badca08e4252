# SPDX-License-Identifier: Apache-2.0
"""Readers for lock files and environment files, one module per family. All readers return a Listing."""
