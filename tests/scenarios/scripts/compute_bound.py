# SPDX-License-Identifier: Apache-2.0
"""A model that takes its time, on data that is there at once."""

import torch
from work import burn

if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.randn(2560, 16), torch.randn(2560, 1))
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        burn(15)
