# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader, whose threads decode large images all the time."""

from photos import photos
from work import gpu_step

import feedline

if __name__ == "__main__":
    data = feedline.open(photos(64, 1024)).resize((64, 64))
    with data.loader(batch_size=8, num_workers=2) as loader:
        for _epoch in range(14):
            for _batch in loader:
                gpu_step(1)
