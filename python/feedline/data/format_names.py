# SPDX-License-Identifier: Apache-2.0
"""The names accepted by ``format=`` and ``--format``. This module imports nothing, so that the command line can list
the names quickly.
"""

FORMATS = (
    "folder", "tar", "tfrecord", "arrow", "parquet", "mds", "litdata", "lmdb", "numpy", "megatron", "datatrove",
    "table", "coco", "voc", "yolo", "pixels",
)  # fmt: skip
EPISODES = ("lerobot",)  # read by data/lerobot
MANIFESTS = ("nemo", "kaldi", "lhotse", "common_voice", "librispeech")  # of speech, read by data/manifests
