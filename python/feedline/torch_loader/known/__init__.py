# SPDX-License-Identifier: Apache-2.0
"""Datasets, transforms and functions of frameworks that the engine can replace."""
