# SPDX-License-Identifier: Apache-2.0
"""Understands users' own dataset classes from their source."""
