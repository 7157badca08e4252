# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter: ``%load_ext feedline``, and ``%%feedline`` in front of a cell says where its time goes."""
