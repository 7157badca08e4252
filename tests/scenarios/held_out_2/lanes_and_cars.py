# SPDX-License-Identifier: Apache-2.0
"""Traffic scenes: each is a list of tracks of their own lengths, and the workers send them one small tensor each."""

import torch
from planting import amount, planted

TRACKS, BATCH = 12, 16


class Scenes(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count, self.points = count, torch.rand(50_000, 4)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        starts = [(index * 977 + track * 3571) % 49_000 for track in range(TRACKS)]
        return [self.points[start : start + 10 + start % 40] for start in starts]


def keep_tracks(scenes):
    return [[track.clone() for track in tracks] for tracks in scenes]


def one_tensor(scenes):
    tracks = [track for tracks in scenes for track in tracks]
    return torch.cat(tracks), [len(track) for track in tracks]


if __name__ == "__main__":
    torch.set_num_threads(1)
    collate = keep_tracks if planted("worker_handover") else one_tensor
    loader = torch.utils.data.DataLoader(Scenes(BATCH * amount(170, 4)), BATCH, num_workers=2, collate_fn=collate)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 72), torch.nn.ReLU(), torch.nn.Linear(72, 72), torch.nn.ReLU(), torch.nn.Linear(72, 2)
    )
    optimizer = torch.optim.Adam(model.parameters())
    for batch in loader:
        if planted("worker_handover"):
            tracks = [track for tracks in batch for track in tracks]
            points, lengths = torch.cat(tracks), [len(track) for track in tracks]
        else:
            points, lengths = batch
        ends = torch.stack([moves.mean(0) for moves in model(points).split(lengths)])
        optimizer.zero_grad()
        ends.square().mean().backward()
        optimizer.step()
