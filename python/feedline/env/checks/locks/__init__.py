# SPDX-License-Identifier: Apache-2.0
"""Checks of locks and labels: whether the environment matches its description."""
