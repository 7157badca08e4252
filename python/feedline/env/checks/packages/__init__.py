# SPDX-License-Identifier: Apache-2.0
"""Checks of installed packages and their files."""
