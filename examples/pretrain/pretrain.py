# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on the bytes of a book, from a token file, with a checkpoint that resumes to the same losses.

    python examples/pretrain/pretrain.py --folder run                    # a minute on two cores; Ctrl-C or kill it
    python examples/pretrain/pretrain.py --folder run                    # resumes from the last checkpoint

The book is Ambrose Bierce's "The Devil's Dictionary" (1911, in the public domain) from Debian's package dict-devil;
`--text FILE` reads another text. Writes the tokens, the checkpoint and losses.jsonl, with a line per step, to FOLDER.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import book
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import feedline

VOCABULARY = 256  # a token is a byte
CONTEXT, WIDTH, HEADS, LAYERS = 64, 128, 4, 4
BATCH, PEAK_RATE, WARMUP = 16, 2e-3, 40


class Block(nn.Module):
    """Causal attention, followed by two layers for each position; both have residual connections."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.queries_keys_values(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.layers(self.before_layers(x))


class Gpt(nn.Module):
    """Maps (batch, length) int64 tokens to (batch, length, VOCABULARY) logits of each next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.blocks(self.tokens(x) + self.positions(torch.arange(x.shape[1])))
        return functional.linear(self.norm(hidden), self.tokens.weight)


def loss_of(model: Gpt, batch: Any) -> torch.Tensor:
    return functional.cross_entropy(model(batch.x).flatten(0, 1), batch.y.flatten())


def rate_at(step: int, steps: int) -> float:
    """Returns the learning rate: a linear warm-up, then a cosine decay."""
    return PEAK_RATE * min(step / WARMUP, 0.55 + 0.45 * math.cos(math.pi * step / steps))


def write_tokens(text: bytes, folder: Path) -> None:
    """Writes train.bin, and held_out.bin with the last tenth of the text."""
    tokens = np.frombuffer(text, np.uint8)
    cut = len(tokens) * 9 // 10
    tokens[:cut].tofile(folder / "train.bin")
    tokens[cut:].tofile(folder / "held_out.bin")


def windows(path: Path, stride: int) -> feedline.Dataset:
    return feedline.tokens(path, window=CONTEXT, stride=stride, dtype="uint8", vocabulary=VOCABULARY, check=True)


@torch.no_grad()
def held_out_loss(model: Gpt, path: Path) -> float:
    losses = [loss_of(model, batch).item() for batch in windows(path, CONTEXT).loader(64, drop_last=False)]
    return sum(losses) / len(losses)


@torch.no_grad()
def continued(model: Gpt, start: bytes, length: int) -> str:
    """Returns text that the model generates after `start`."""
    generator, tokens = torch.Generator().manual_seed(0), list(start)
    for _ in range(length):
        logits = model(torch.tensor([tokens[-CONTEXT:]]))[0, -1]
        tokens.append(int(torch.multinomial((logits / 0.7).softmax(0), 1, generator=generator)))
    return bytes(tokens).decode(errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--text", type=Path, help="train on this text instead")
    parser.add_argument("--steps", type=int, default=300, help="number of steps of the complete training")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.pt"
    if not (options.folder / "held_out.bin").exists():
        write_tokens(options.text.read_bytes() if options.text else book.devils_dictionary(), options.folder)

    torch.manual_seed(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1, betas=(0.9, 0.95))
    # a sample can start at any position; an epoch contains each once
    loader = windows(options.folder / "train.bin", stride=1).loader(
        BATCH, shuffle=True, seed=1, drop_last=True, epochs=math.inf
    )
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_step = saved["step"]
        print(f"resuming after step {first_step}")

    started = time.perf_counter()
    with loader, (options.folder / "losses.jsonl").open("a", buffering=1) as losses:
        for step, batch in zip(range(first_step + 1, options.steps + 1), loader, strict=False):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, options.steps)
            loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            print(json.dumps({"step": step, "loss": loss.item(), "samples": loader.last_samples}), file=losses)
            if step % options.checkpoint_steps == 0 or step == options.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "loader": loader.state_dict()}, checkpoint.with_suffix(".part"))
                checkpoint.with_suffix(".part").replace(checkpoint)
                rate = (step - first_step) * BATCH * CONTEXT / (time.perf_counter() - started)
                print(f"step {step:4}: loss {loss.item():.3f}, {rate:,.0f} tokens/s", flush=True)
    print(f"held-out loss {held_out_loss(model, options.folder / 'held_out.bin'):.3f} (by chance: {math.log(256):.3f})")
    print(continued(model, b"TRUTH, n.  ", 300))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
