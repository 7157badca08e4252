# SPDX-License-Identifier: Apache-2.0
"""Causes in the limits and environment variables of processes."""
