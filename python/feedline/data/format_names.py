# SPDX-License-Identifier: Apache-2.0
"""The names accepted by ``format=`` and ``--format``. Imports nothing, so that the command line lists them quickly."""

FORMATS = (
    "folder", "tar", "tfrecord", "arrow", "parquet", "mds", "litdata", "lmdb", "numpy", "table", "coco", "voc", "yolo",
    "pixels",
)  # fmt: skip
