# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader over compressed pages in random order, without room for the decompressed pages."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from work import enough, gpu_step, mended

import feedline
import feedline.testing

if __name__ == "__main__":
    path = Path(tempfile.gettempdir(), "feedline-scenario-blocks.parquet")
    if not path.exists():
        random = np.random.default_rng(0)
        table = pa.table({"text": [random.bytes(1000).hex() for _ in range(4000)]})
        unfinished = tempfile.mkstemp(dir=path.parent)[1]
        pq.write_table(table, unfinished, compression="zstd", row_group_size=200, use_dictionary=False)
        os.rename(unfinished, path)
    os.environ["XDG_CACHE_HOME"] = os.devnull
    feedline.testing.force(block_cache_bytes=1 << 20)
    data = feedline.open(path, fields=("text:text",))
    shuffle = "shards" if mended("compressed_blocks") else True
    with data.loader(batch_size=32, shuffle=shuffle, shuffle_window=2, num_workers=2) as loader:
        for _epoch in range(enough(2)):
            for _batch in loader:
                gpu_step(1)
