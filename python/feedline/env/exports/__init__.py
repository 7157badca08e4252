# SPDX-License-Identifier: Apache-2.0
"""Exports environments to the formats of other tools, one module per family."""
