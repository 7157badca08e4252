# SPDX-License-Identifier: Apache-2.0
"""Checks of libraries that running processes have mapped."""
