# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader, whose threads decode large images all the time."""

from photos import photos
from work import enough, gpu_step, mended

import feedline

if __name__ == "__main__":
    folder = photos(64, 1024)
    data = feedline.open(folder)
    if mended("cpu_decode"):
        data = feedline.pack_pixels(data, f"{folder}.pixels")
    data = data.resize((64, 64))
    with data.loader(batch_size=8, num_workers=2) as loader:
        for _epoch in range(enough(14)):
            for _batch in loader:
                gpu_step(1)
