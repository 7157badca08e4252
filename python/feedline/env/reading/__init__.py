# SPDX-License-Identifier: Apache-2.0
"""Reads an environment's files. Imports nothing from it and starts no program."""
