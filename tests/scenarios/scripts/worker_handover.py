# SPDX-License-Identifier: Apache-2.0
"""Annotations as nested lists and dicts: workers pack thousands of objects, the loop unpacks them."""

import torch
from work import Samples, gpu_step

ANNOTATION = {
    "boxes": [[float(i), i + 0.5, i + 1.5, i + 2.5] for i in range(400)],
    "names": [f"n{i}" for i in range(400)],
}


def read(index):
    return {name: [list(v) if isinstance(v, list) else v + "x" for v in values] for name, values in ANNOTATION.items()}


def as_it_is(samples):
    return samples * 6


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(1200, read), batch_size=16, num_workers=2, collate_fn=as_it_is)
    for _batch in loader:
        gpu_step(1)
