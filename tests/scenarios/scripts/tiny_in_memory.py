# SPDX-License-Identifier: Apache-2.0
"""Rows that lie in memory, 32 to a batch: workers hand over what the loop's process makes sooner by itself."""

import torch


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.rows = torch.arange(count * 16.0).reshape(count, 16)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], index % 10


if __name__ == "__main__":
    for _epoch in range(2):
        for _rows, _kinds in torch.utils.data.DataLoader(Rows(32_000), batch_size=32, num_workers=2):
            pass
