# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader on storage that answers late, and without the memory to read ahead of its threads."""

from photos import photos, slow_storage
from work import gpu_step, workers

import feedline

if __name__ == "__main__":
    slow_storage(15)
    data = feedline.open(photos(64, 96)).random_crop(64)
    with data.loader(batch_size=8, num_workers=workers(2), memory_budget="400 KB") as loader:
        for _epoch in range(6):
            for _batch in loader:
                gpu_step(2)
