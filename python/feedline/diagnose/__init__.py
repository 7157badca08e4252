# SPDX-License-Identifier: Apache-2.0
"""Implementation of ``feedline diagnose``, which watches a training script and reports where its time goes and why.

This package is imported by the command line and by the probe in watched processes, but never by ``import feedline``.
"""
