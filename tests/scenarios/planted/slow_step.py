# SPDX-License-Identifier: Apache-2.0
"""A small model on the CPU: the step takes nearly all of the time, the loader nothing."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from workload import arguments, train

if __name__ == "__main__":
    arguments()
    model = torch.nn.Sequential(torch.nn.Linear(784, 1500), torch.nn.ReLU(), torch.nn.Linear(1500, 10))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    torch.set_num_threads(1)
    x = torch.rand(512, 784)

    def step(seconds):
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()

    loader = DataLoader(TensorDataset(torch.rand(64 * 150, 784)), batch_size=64)
    train(loader, 0, work=step)
