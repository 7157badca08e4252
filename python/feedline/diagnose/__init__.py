# SPDX-License-Identifier: Apache-2.0
"""What ``feedline diagnose`` does: watches a training script, and says where its time goes and why.

Imported by the command line and, in the watched processes, by the probe; never by ``import feedline``.
"""
