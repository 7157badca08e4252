# SPDX-License-Identifier: Apache-2.0
"""Windows over one memory-mapped table of hourly load, detrended and differenced in a worker, in a container that may
use half a CPU.
"""

import numpy as np
import torch
from planting import amount, stored

SERIES, WINDOW, AHEAD = 12, 1344, 24
FEATURES = SERIES * (1 + 7 + 3)


def simulate(folder):
    hours = np.arange(120_000)[:, None]
    load = (
        40
        + 9 * np.sin(hours * (2 * np.pi / 24) + np.arange(SERIES))
        + np.random.default_rng(1).normal(0, 2, (len(hours), SERIES))
    )
    load.astype(np.float32).tofile(folder / "load.f32")


class Windows(torch.utils.data.Dataset):
    def __init__(self, folder, count):
        self.load = np.memmap(folder / "load.f32", dtype=np.float32, mode="r").reshape(-1, SERIES)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = index * 7919 % (len(self.load) - WINDOW - AHEAD)
        past = np.array(self.load[start : start + WINDOW], dtype=np.float64)
        ahead = self.load[start + WINDOW : start + WINDOW + AHEAD, 0].copy()
        at = np.arange(WINDOW)
        for degree in (1, 2, 3):
            past -= np.stack([np.polyval(np.polyfit(at, column, degree), at) for column in past.T], 1)
        features = [past[-168:].std(0), np.abs(np.fft.rfft(past, axis=0))[:56:8].ravel()]
        features += [past[lag:].mean(0) - past[:-lag].mean(0) for lag in (1, 24, 168)]
        return torch.from_numpy(np.concatenate(features).astype(np.float32)), torch.from_numpy(ahead)


if __name__ == "__main__":
    torch.set_num_threads(1)
    windows = Windows(stored("windows", simulate), amount(1200, 16))
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 96), torch.nn.ReLU(), torch.nn.Linear(96, AHEAD))
    loader = torch.utils.data.DataLoader(windows, batch_size=8, shuffle=True, num_workers=1)
    optimizer = torch.optim.Adam(model.parameters())
    for past, ahead in loader:
        loss = torch.nn.functional.l1_loss(model(past), ahead)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
