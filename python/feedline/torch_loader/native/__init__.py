# SPDX-License-Identifier: Apache-2.0
"""Iterators that execute a loader's plan with the engine."""
