# SPDX-License-Identifier: Apache-2.0
"""Datasets in LeRobot's formats v3.0, v2.1 and v2.0: recordings of robots."""
