# SPDX-License-Identifier: Apache-2.0
"""Causes in the machine's CPUs: their number, speed, load and threads."""
