# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter support: after ``%load_ext feedline``, a cell that starts with ``%%feedline`` shows where its
time goes.
"""
