# SPDX-License-Identifier: Apache-2.0
"""Execution of plans by the engine."""
