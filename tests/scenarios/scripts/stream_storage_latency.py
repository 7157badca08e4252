# SPDX-License-Identifier: Apache-2.0
"""A stream from storage that answers late, in two workers."""

import torch
from late_files import LateFiles
from work import gpu_step, workers


class Stream(torch.utils.data.IterableDataset):
    def __init__(self):
        self.files = [LateFiles(12, 32) for _ in range(4)]  # a set for each worker: they read in one order

    def __iter__(self):
        files = self.files[torch.utils.data.get_worker_info().id % len(self.files)]
        for number in range(240):
            yield files(number)


if __name__ == "__main__":
    for _batch in torch.utils.data.DataLoader(Stream(), batch_size=8, num_workers=workers(2)):
        gpu_step(2)
