# SPDX-License-Identifier: Apache-2.0
"""The names that ``format=`` and ``--format`` take; it imports nothing, so that the command line lists them at once."""

FORMATS = (
    "folder", "tar", "tfrecord", "arrow", "parquet", "mds", "litdata", "lmdb", "numpy", "table", "coco", "voc", "yolo",
    "pixels",
)  # fmt: skip
