# SPDX-License-Identifier: Apache-2.0
"""Reads an environment's files. Does not import from the environment or start programs."""
