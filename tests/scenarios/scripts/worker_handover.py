# SPDX-License-Identifier: Apache-2.0
"""Annotations as nested lists and dicts: workers pack thousands of objects, the loop unpacks them."""

import numpy as np
import torch
from work import Samples, enough, gpu_step, mended

ANNOTATION = {
    "boxes": [[float(i), i + 0.5, i + 1.5, i + 2.5] for i in range(400)],
    "names": [f"n{i}" for i in range(400)],
}
ARRAYS = {name: np.array(values) for name, values in ANNOTATION.items()}


def read(index):
    lists = {name: [list(v) if isinstance(v, list) else v + "x" for v in vs] for name, vs in ANNOTATION.items()}
    return {name: array.copy() for name, array in ARRAYS.items()} if mended("worker_handover") else lists


def as_it_is(samples):
    return samples * 6


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(enough(1200), read), batch_size=16, num_workers=2, collate_fn=as_it_is)
    for _batch in loader:
        gpu_step(1)
