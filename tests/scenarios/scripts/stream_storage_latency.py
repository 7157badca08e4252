# SPDX-License-Identifier: Apache-2.0
"""A stream from storage that answers late, in two workers."""

import time

import torch
from work import gpu_step, workers


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        for number in range(240):
            time.sleep(0.012)
            yield torch.tensor(number)


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Stream(), batch_size=8, num_workers=workers(2)):
        gpu_step(2)
