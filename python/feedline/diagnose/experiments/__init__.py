# SPDX-License-Identifier: Apache-2.0
"""Experiments that run after the script has ended."""
