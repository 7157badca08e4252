# SPDX-License-Identifier: Apache-2.0
"""Workers send lists of words; the loop counts them."""

import torch

TEXT = [f"word{number % 700}" for number in range(1200)]


class Documents(torch.utils.data.Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, index):
        return {"id": index, "words": [word + str(index % 10) for word in TEXT]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    counted = 0
    for batch in torch.utils.data.DataLoader(Documents(), batch_size=20, num_workers=2, collate_fn=list):
        counted += sum(len(document["words"]) for document in batch)
