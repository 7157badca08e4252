# SPDX-License-Identifier: Apache-2.0
"""Neighbourhoods of a graph, of different sizes: a pool of threads per sample gathers them, and whole graphs are
joined edge by edge where batches are made.
"""

from multiprocessing.pool import ThreadPool

import numpy as np
import torch
from planting import amount, planted

NODES, DEGREE, SEEDS = 40_000, 12, 5
NEIGHBOURS = np.random.default_rng(6).integers(0, NODES, (NODES, DEGREE))
FEATURES = torch.rand(NODES, 16)


def around(node):
    """Returns edges within two steps of a node; the number of edges of the first step that are kept depends on the
    node.
    """
    first = NEIGHBOURS[node][: 4 + node % 7]
    return [(node, int(near)) for near in first] + [(int(near), int(far)) for near in first for far in NEIGHBOURS[near]]


class Neighbourhoods(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        seeds = [(index * 613 + seed * 7919) % NODES for seed in range(SEEDS)]
        if not planted("nested_pool"):
            return np.array([edge for seed in seeds for edge in around(seed)]), index % 3
        with ThreadPool(SEEDS) as pool:
            return np.array([edge for edges in pool.map(around, seeds) for edge in edges]), index % 3


def join(samples):
    """Returns one graph of all: nodes get new numbers, in the order in which they occur."""
    labels = torch.tensor([label for _, label in samples])
    edges = np.concatenate([edges for edges, _ in samples])
    graph = np.repeat(np.arange(len(samples)), [len(edges) for edges, _ in samples])
    if not planted("collate"):
        nodes, numbered = np.unique(edges, return_inverse=True)
        return FEATURES[nodes], torch.from_numpy(numbered.reshape(-1, 2)), torch.from_numpy(graph), labels
    number, sources, targets, owners, met = {}, [], [], [], {}
    for (source, target), owner in zip(edges, graph, strict=True):
        for node in (source, target):
            if int(node) not in number:
                number[int(node)] = len(number)
        sources.append(number[int(source)])
        targets.append(number[int(target)])
        owners.append(int(owner))
        met[int(target)] = met.get(int(target), 0) + 1
    assert sum(met.values()) == len(edges)
    return FEATURES[list(number)], torch.tensor([sources, targets]).T, torch.tensor(owners), labels


class Convolution(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.judge = torch.nn.Linear(16, 8), torch.nn.Linear(8, 3)

    def forward(self, features, edges, graph, graphs):
        messages = self.lift(features)[edges[:, 1]].relu()
        return self.judge(torch.zeros(graphs, 8).index_add(0, graph, messages))


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = Convolution()
    optimizer = torch.optim.Adam(model.parameters())
    loader = torch.utils.data.DataLoader(Neighbourhoods(amount(4200, 24)), 12, num_workers=2, collate_fn=join)
    for features, edges, graph, label in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features, edges, graph, len(label)), label).backward()
        optimizer.step()
