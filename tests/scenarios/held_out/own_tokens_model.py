# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loader over a token file, and a slow language model."""

import tempfile

import numpy as np
import torch

import feedline

if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        np.random.default_rng(0).integers(0, 500, 200_000, dtype=np.uint16).tofile(file.name)
        model = torch.nn.Sequential(torch.nn.Embedding(500, 64), torch.nn.Linear(64, 256), torch.nn.Linear(256, 500))
        loader = feedline.tokens(file.name, window=128, dtype="uint16").loader(
            batch_size=8, shuffle=True, drop_last=True
        )
        for number, batch in enumerate(loader):
            x, y = batch[0], batch[1]
            logits = model(x.long())
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.long().flatten()).backward()
            if number == 120:
                break
