# SPDX-License-Identifier: Apache-2.0
"""Workers share one lock, which a process beside them holds most of the time; then each reads a small cached file."""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import torch
from work import Samples, gpu_step


def hold(lock):
    while os.getppid() != 1:
        with lock:
            time.sleep(0.020)
        time.sleep(0.001)  # long enough for whoever waits


class Read:
    def __init__(self, lock):
        self.lock, self.path = lock, Path(tempfile.mkdtemp(), "sample.bin")
        self.path.write_bytes(os.urandom(12 << 10))

    def __call__(self, index):
        with self.lock:
            content = self.path.read_bytes()
        return torch.tensor(content[index])


if __name__ == "__main__":
    lock = multiprocessing.Lock()
    multiprocessing.Process(target=hold, args=(lock,), daemon=True).start()
    for _batch in torch.utils.data.DataLoader(Samples(320, Read(lock)), batch_size=4, num_workers=2):
        gpu_step(2)
