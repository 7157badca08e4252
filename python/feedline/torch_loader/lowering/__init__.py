# SPDX-License-Identifier: Apache-2.0
"""Decides which parts of a loader run in the engine."""
