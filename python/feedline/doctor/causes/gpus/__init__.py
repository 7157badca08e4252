# SPDX-License-Identifier: Apache-2.0
"""Causes in the machine's GPUs: their memory, clocks, links and drivers."""
