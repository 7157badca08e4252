# SPDX-License-Identifier: Apache-2.0
"""Feedline's drop-in loader around a dataset whose Python is slow."""

from cpu_transform import augment
from work import Samples, enough, gpu_step

import feedline

if __name__ == "__main__":
    loader = feedline.DataLoader(Samples(enough(640), augment), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(1)
