# SPDX-License-Identifier: Apache-2.0
"""Reads the machine's properties and this process's resource limits for all other modules."""
