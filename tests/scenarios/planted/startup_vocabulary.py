# SPDX-License-Identifier: Apache-2.0
"""worker_init_fn builds a vocabulary, again in each short epoch."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, burn, train

VOCABULARY = {}


class Texts(Dataset):
    def __len__(self):
        return 8 * 25

    def __getitem__(self, index):
        return torch.tensor([VOCABULARY.get(word, 0) for word in range(index, index + 128)])


def build_vocabulary(worker):
    burn(0.5)
    VOCABULARY.update((word, word % 1000) for word in range(50_000))


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(
        Texts(), batch_size=8, num_workers=2, worker_init_fn=build_vocabulary, persistent_workers=args.fixed
    )
    train(loader, 0.03, epochs=5)
