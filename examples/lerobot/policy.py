# SPDX-License-Identifier: Apache-2.0
"""Trains a small policy on a LeRobotDataset: from two camera frames, the next four actions; resumes after a kill.

    python examples/lerobot/policy.py --folder run   # half a minute on two cores; kill it, and run it again
    python examples/lerobot/policy.py --folder run --dataset pusht/   # another dataset

Without --dataset, the script simulates a robot and writes its recordings to FOLDER/dataset. FOLDER also contains the
checkpoint and losses.jsonl, with a line per step.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import robot
import torch
from torch import nn

import feedline

BATCH, CHUNK = 32, 4  # samples; actions that are predicted at once


class Policy(nn.Module):
    """Maps two frames, uint8 (batch, 2, 3, height, width), and a state to (batch, CHUNK, actions)."""

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.actions = actions
        self.frames = nn.Sequential(
            nn.Conv2d(6, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 5)), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Linear(32 * 20 + states, 128), nn.ReLU(), nn.Linear(128, CHUNK * actions))

    def forward(self, frames: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        seen = self.frames(frames.flatten(1, 2).float() / 255 - 0.5)
        return self.head(torch.cat([seen, state], 1)).unflatten(1, (CHUNK, self.actions))


def squares_of(policy: Policy, batch: Any, camera: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the sums of squared errors and of squared actions, without those after the end of an episode."""
    errors = policy(batch[camera], batch["observation.state"]) - batch["action"]
    is_real = ~batch["action_is_pad"][:, :, None]
    return (errors**2 * is_real).sum(), (batch["action"] ** 2 * is_real).sum()


def opened(folder: Path, camera: str) -> feedline.Dataset:
    fps = json.loads((folder / "meta" / "info.json").read_text())["fps"]
    windows = {camera: [-1 / fps, 0.0], "action": [i / fps for i in range(CHUNK)]}
    keys = [camera, "observation.state", "action", "episode_index", "index"]
    return feedline.open(folder, fields=keys, delta_timestamps=windows)


@torch.no_grad()
def held_out_loss(policy: Policy, dataset: feedline.Dataset, camera: str) -> float:
    sums = [squares_of(policy, batch, camera) for batch in dataset.loader(BATCH)]
    return sum(error.item() for error, _ in sums) / sum(action.item() for _, action in sums)


def train(options: argparse.Namespace, dataset: feedline.Dataset, held_out: feedline.Dataset, camera: str) -> None:
    checkpoint = options.folder / "checkpoint.pt"
    torch.manual_seed(1)
    policy = Policy(dataset.schema["observation.state"].shape[0], dataset.schema["action"].shape[-1])
    optimizer = torch.optim.AdamW(policy.parameters(), 2e-3)
    loader = dataset.loader(BATCH, shuffle=True, seed=1, drop_last=True, epochs=math.inf)
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        policy.load_state_dict(saved["policy"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_step = saved["step"]
        print(f"resuming after step {first_step}")
    with loader, (options.folder / "losses.jsonl").open("a", buffering=1) as log:
        for step, batch in zip(range(first_step + 1, options.steps + 1), loader, strict=False):
            optimizer.zero_grad()
            errors, actions = squares_of(policy, batch, camera)
            loss = errors / actions
            loss.backward()
            optimizer.step()
            print(json.dumps({"step": step, "loss": loss.item(), "rows": batch["index"].tolist()}), file=log)
            if step % options.checkpoint_steps == 0 or step == options.steps:
                state = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "loader": loader.state_dict()}, checkpoint.with_suffix(".part"))
                checkpoint.with_suffix(".part").replace(checkpoint)
                print(f"step {step:4}: loss {loss.item():.4f}", flush=True)
    print(f"held-out loss {held_out_loss(policy, held_out, camera):.4f} (no motion: 1)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--dataset", type=Path, help="a LeRobotDataset with the keys observation.state and action")
    parser.add_argument("--camera", default=robot.CAMERA)
    parser.add_argument("--episodes", type=int, default=60, help="to simulate")
    parser.add_argument("--steps", type=int, default=300, help="of the whole training")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    options = parser.parse_args()
    folder = options.dataset or options.folder / "dataset"
    if not (folder / "meta" / "info.json").exists() and options.dataset is None:
        robot.write(folder, options.episodes)
    dataset = opened(folder, options.camera)
    training, held_out = dataset.split(k_fold=10, fold=0, groups="episode_index")  # whole episodes are held out
    train(options, training, held_out, options.camera)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
