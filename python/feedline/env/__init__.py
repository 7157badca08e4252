# SPDX-License-Identifier: Apache-2.0
"""Checks, describes and rebuilds Python environments: ``feedline env``."""
