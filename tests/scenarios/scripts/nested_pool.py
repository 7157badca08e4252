# SPDX-License-Identifier: Apache-2.0
"""A pool of threads inside each worker, made anew for every sample."""

from multiprocessing.pool import ThreadPool

import torch
from work import Samples, burn, gpu_step, mended


def read(index):
    if mended("nested_pool"):
        burn(3)
    else:
        with ThreadPool(3) as pool:
            pool.map(burn, [1, 1, 1])
    return torch.tensor(index)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Samples(240, read), batch_size=8, num_workers=2)
    for _batch in loader:
        gpu_step(1)
