# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader, ahead of a model that takes its time."""

from photos import photos
from work import burn

import feedline

if __name__ == "__main__":
    data = feedline.open(photos(64, 160)).random_resized_crop(96).random_horizontal_flip()
    with data.loader(batch_size=8, shuffle=True) as loader:
        for _epoch in range(10):
            for _batch in loader:
                burn(25)
