# SPDX-License-Identifier: Apache-2.0
"""A batch is a list of graphs with many small tensors each, all sent separately."""

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


class Graphs(Dataset):
    def __len__(self):
        return 64 * 60

    def __getitem__(self, index):
        nodes = torch.full((20, 8), float(index))
        return {"nodes": nodes, "edges": nodes[:, :2], "degree": nodes.sum(1), "label": torch.tensor(index)}


def keep(graphs):
    return [{name: value.clone() for name, value in graph.items()} for graph in graphs]


def pack(graphs):
    return {name: torch.stack([graph[name] for graph in graphs]) for name in graphs[0]}


if __name__ == "__main__":
    args = arguments()
    loader = DataLoader(Graphs(), batch_size=64, num_workers=2, collate_fn=pack if args.fixed else keep)
    train(loader, 0.01)
