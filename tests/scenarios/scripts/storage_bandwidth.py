# SPDX-License-Identifier: Apache-2.0
"""Large samples on a disk that gives 24 MB/s, and each is new to the page cache."""

import os
import tempfile
from pathlib import Path

import torch
from work import Samples, gpu_step, mended

SAMPLE_BYTES = 512 << 10
KEPT = mended("storage_bandwidth") or mended("small_files")  # in the page cache


class Files:
    """Made in `folder`; reading one takes it out of the page cache again, as in a set that is larger than memory."""

    def __init__(self, folder, count, size):
        self.paths = [Path(folder, f"{number:05}.bin") for number in range(count)]
        for path in self.paths:
            path.write_bytes(os.urandom(size))
        os.sync()
        for path in self.paths:
            with open(path, "rb") as file:
                self._drop(file)

    def _drop(self, file):
        if not KEPT:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def __call__(self, index):
        with open(self.paths[index], "rb", buffering=0) as file:
            content = file.read()
            self._drop(file)
        return torch.tensor(content[0])


if __name__ == "__main__":
    files = Files(tempfile.mkdtemp(), 320, SAMPLE_BYTES)  # left there: whoever started this script removes it
    for _batch in torch.utils.data.DataLoader(Samples(320, files), batch_size=8, num_workers=3, shuffle=True):
        gpu_step(1)
