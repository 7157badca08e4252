# SPDX-License-Identifier: Apache-2.0
"""Windows of a memory-mapped recording, each turned into a log spectrum by NumPy in two workers."""

import tempfile

import numpy as np
import torch


class Recording(torch.utils.data.Dataset):
    def __init__(self, path):
        self.samples = np.memmap(path, dtype=np.int16, mode="r")

    def __len__(self):
        return 1200

    def __getitem__(self, index):
        window = self.samples[index * 500 : index * 500 + 40_000].astype(np.float64)
        frames = np.lib.stride_tricks.sliding_window_view(window, 512)[::64] * np.hanning(512)
        return torch.from_numpy(np.log1p(np.abs(np.fft.rfft(frames))).astype(np.float32))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.NamedTemporaryFile() as file:
        np.random.default_rng(0).integers(-9000, 9000, 700_000, dtype=np.int16).tofile(file.name)
        model = torch.nn.Linear(257, 8)
        optimizer = torch.optim.Adam(model.parameters())
        for batch in torch.utils.data.DataLoader(Recording(file.name), 16, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            model(batch.mean(1)).square().mean().backward()
            optimizer.step()
