# SPDX-License-Identifier: Apache-2.0
"""Trains a small recogniser of spoken digits with CTC, on batches by duration; resumes after a kill.

    python examples/speech/speech.py --folder run   # a minute on two cores; kill it, and run it again

espeak-ng speaks the digits. FOLDER contains the files, their manifests, the checkpoint and losses.jsonl, with a line
per step.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import digits
import torch
from torch import nn
from torch.nn import functional

import feedline

RATE, WINDOW, HOP, BANDS, WIDTH = 8_000, 200, 80, 40, 64
BLANK, CLASSES = 0, 11  # class d + 1 is digit d
BATCH_S = 40  # the longest utterance of a batch times its rows, in seconds


class Recogniser(nn.Module):
    """Maps (batch, samples) to the logarithms of probabilities, (batch, steps of 80 ms, CLASSES)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bands", mel_bands())
        layers: list[nn.Module] = []
        for channels, stride in ((BANDS, 2), (WIDTH, 2), (WIDTH, 2), (WIDTH, 1)):
            layers += [nn.Conv1d(channels, WIDTH, 5, stride, 2), nn.BatchNorm1d(WIDTH), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Conv1d(WIDTH, CLASSES, 3, padding=1))

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(audio, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True).abs() ** 2
        features = (self.bands @ spectrum + 1e-6).log()
        features = features - features.mean(2, keepdim=True)
        return self.layers(features).mT.log_softmax(2)


def mel_bands() -> torch.Tensor:
    """Triangles that are evenly spaced on the mel scale: (BANDS, WINDOW // 2 + 1)."""
    most = 2595 * math.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, most, BANDS + 2) / 2595) - 1)
    bins = torch.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


def steps_of(samples: torch.Tensor) -> torch.Tensor:
    """The number of the recogniser's steps for numbers of samples."""
    return -(-(samples // HOP + 1) // 8)  # the layers halve the number of spectra three times


def classes_of(text: str) -> list[int]:
    return [int(digit) + 1 for digit in text.split()]


def opened(manifest: Path) -> feedline.Dataset:
    return feedline.open(manifest).audio(rate=RATE)


def loss_of(model: Recogniser, batch: Any) -> torch.Tensor:
    log_probabilities = model(batch.audio[:, 0])
    targets = [classes_of(text) for text in batch.text]
    lengths = torch.tensor([len(target) for target in targets])
    flat = torch.tensor([number for target in targets for number in target])
    return functional.ctc_loss(log_probabilities.transpose(0, 1), flat, steps_of(batch.audio_length), lengths, BLANK)


@torch.no_grad()
def recognised(model: Recogniser, batch: Any) -> list[list[int]]:
    """The most probable class of each step, without repetitions and blanks."""
    best = model(batch.audio[:, 0]).argmax(2)
    result = []
    for row, steps in zip(best, steps_of(batch.audio_length).tolist(), strict=True):
        merged = torch.unique_consecutive(row[:steps]).tolist()
        result.append([number for number in merged if number != BLANK])
    return result


def share_recognised(model: Recogniser, manifest: Path) -> float:
    """The share of utterances whose digits are all right."""
    model.eval()
    right = [
        found == classes_of(text)
        for batch in opened(manifest).loader(max_seconds=BATCH_S)
        for found, text in zip(recognised(model, batch), batch.text, strict=True)
    ]
    return sum(right) / len(right)


def train(options: argparse.Namespace) -> None:
    checkpoint = options.folder / "checkpoint.pt"
    torch.manual_seed(1)
    model = Recogniser()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    dataset = opened(options.folder / "speech" / "train.jsonl").speed_perturbation((0.9, 1.0, 1.1))
    loader = dataset.loader(max_seconds=BATCH_S, shuffle=True, seed=1, epochs=math.inf)
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_step = saved["step"]
        print(f"resuming after step {first_step}")
    with loader, (options.folder / "losses.jsonl").open("a", buffering=1) as log:
        for step, batch in zip(range(first_step + 1, options.steps + 1), loader, strict=False):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            print(json.dumps({"step": step, "loss": loss.item(), "texts": list(batch.text)}), file=log)
            if step % options.checkpoint_steps == 0 or step == options.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "loader": loader.state_dict()}, checkpoint.with_suffix(".part"))
                checkpoint.with_suffix(".part").replace(checkpoint)
                print(f"step {step:4}: loss {loss.item():.3f}, {len(batch.text)} utterances", flush=True)
    share = share_recognised(model, options.folder / "speech" / "held_out.jsonl")
    print(f"held-out utterances without an error: {share:.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--utterances", type=int, default=400, help="to speak")
    parser.add_argument("--steps", type=int, default=120, help="of the whole training")
    parser.add_argument("--checkpoint-steps", type=int, default=20)
    options = parser.parse_args()
    if not (options.folder / "speech" / "held_out.jsonl").exists():
        digits.write(options.folder / "speech", options.utterances)
    train(options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
