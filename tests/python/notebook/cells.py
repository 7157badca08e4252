# SPDX-License-Identifier: Apache-2.0
"""Cells of a notebook: a loader whose samples wait, and a loop over it."""

SETUP = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Waits(Dataset):
    def __len__(self): return 60
    def __getitem__(self, i):
        time.sleep(0.004)
        return torch.tensor(i)
loader = DataLoader(Waits(), batch_size=4)
"""
LOOP = "seen = []\nfor batch in loader: seen.extend(batch.tolist())"
