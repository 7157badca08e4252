# SPDX-License-Identifier: Apache-2.0
"""The same with one thread, and another core is free."""

from photos import photos
from work import gpu_step, workers

import feedline

if __name__ == "__main__":
    data = feedline.open(photos(64, 1024)).resize((64, 64))
    with data.loader(batch_size=8, num_workers=workers(1)) as loader:
        for _epoch in range(8):
            for _batch in loader:
                gpu_step(3)
