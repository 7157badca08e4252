# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter: ``%load_ext feedline``, then ``%%feedline`` before a cell shows where its time goes."""
