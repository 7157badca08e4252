# SPDX-License-Identifier: Apache-2.0
"""Recognises transforms by exact type and determines the engine's operations for them."""
