# SPDX-License-Identifier: Apache-2.0
"""Datasets in LeRobot's formats v3.0 and v2.1: recordings of robots."""
