# SPDX-License-Identifier: Apache-2.0
"""Checks of torch, its libraries and the GPU driver."""
