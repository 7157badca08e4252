# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on the packed paragraphs of a book, with a checkpoint that resumes on any number of ranks.

    torchrun --nproc-per-node 2 examples/pretrain/pretrain.py --folder run   # a minute on two cores; Ctrl-C or kill it
    python examples/pretrain/pretrain.py --folder run                        # resumes, here with one rank

The book is Ambrose Bierce's "The Devil's Dictionary" (1911, in the public domain), from Debian's package dict-devil;
`--text FILE` uses another. FOLDER contains the token files, the checkpoint and losses.jsonl, with one line per step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import zlib
from pathlib import Path
from typing import Any

import book
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import feedline
from feedline.tokenizing import tokenize

END = 256  # ends a document; the other tokens are bytes
VOCABULARY = 257
CONTEXT, WIDTH, HEADS, LAYERS = 128, 64, 4, 3
GLOBAL_BATCH, PEAK_RATE, WARMUP = 8, 3e-3, 40  # rows of all ranks together


class ByteTokenizer:
    """A token per byte. `feedline tokenize` uses the tokenizers of other libraries in the same way."""

    vocab_size, eos_token_id = VOCABULARY, END

    def encode(self, text: str) -> list[int]:
        return list(text.encode())


class Block(nn.Module):
    """Causal attention, followed by two layers for each position; both have residual connections."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.queries_keys_values(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.layers(self.before_layers(x))


class Gpt(nn.Module):
    """Maps (batch, length) int64 tokens, positions and documents to (batch, length, VOCABULARY) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        # a position attends to the earlier positions of its own document
        same = documents[:, None, :, None] == documents[:, None, None, :]
        mask = same & torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        hidden = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return functional.linear(self.norm(hidden), self.tokens.weight)


def sum_of_losses(model: Gpt, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the sum of the losses, and the number of labels."""
    logits = model(batch.input_ids, batch.position_ids, batch.document_ids)
    losses = functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=-100, reduction="sum")
    return losses, (batch.labels != -100).sum()


def sum_over_ranks(*values: torch.Tensor) -> None:
    for value in values if dist.is_initialized() else ():
        dist.all_reduce(value)


def rate_at(step: int, steps: int) -> float:
    """Returns the learning rate: a linear warm-up, then a cosine decay."""
    return PEAK_RATE * min(step / WARMUP, 0.55 + 0.45 * math.cos(math.pi * step / steps))


def write_tokens(text: str, folder: Path) -> None:
    """Writes train.bin, train.idx, held_out.bin and held_out.idx. Every tenth paragraph is held out."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]
    for name, chosen in (
        ("train", [one for i, one in enumerate(paragraphs) if i % 10]),
        ("held_out", paragraphs[::10]),
    ):
        lines = folder / f"{name}.jsonl"
        lines.write_text("".join(json.dumps({"text": paragraph}) + "\n" for paragraph in chosen))
        tokenize(lines, folder / name, tokenizer=ByteTokenizer(), append_eod=True, num_workers=1)


def packed(index: Path) -> feedline.PackedSequences:
    return feedline.open(index).pack_sequences(CONTEXT, labels="next_token")


@torch.no_grad()
def held_out_loss(model: Gpt, index: Path) -> float:
    sums = [sum_of_losses(model, batch) for batch in packed(index).loader(GLOBAL_BATCH, rank=0, world_size=1)]
    return sum(loss.item() for loss, _ in sums) / sum(count.item() for _, count in sums)


@torch.no_grad()
def continued(model: Gpt, start: bytes, length: int) -> str:
    """Returns text that the model generates after `start`."""
    generator, tokens = torch.Generator().manual_seed(0), list(start)
    for _ in range(length):
        recent = torch.tensor([tokens[-CONTEXT:]])
        logits = model(recent, torch.arange(recent.shape[1])[None], torch.zeros_like(recent))[0, -1]
        tokens.append(int(torch.multinomial((logits / 0.7).softmax(0), 1, generator=generator)))
        if tokens[-1] == END:
            break
    return bytes(token for token in tokens if token != END).decode(errors="replace")


def rows_of_all_ranks(batch: Any) -> list[int]:
    """Returns a checksum of each row of the global batch, in ascending order."""
    mine = [zlib.crc32(row.numpy().tobytes()) for row in batch.input_ids]
    if not dist.is_initialized():
        return sorted(mine)
    parts: list[list[int]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(parts, mine)
    return sorted(checksum for part in parts for checksum in part)


def train(options: argparse.Namespace, rank: int, ranks: int) -> None:
    checkpoint = options.folder / "checkpoint.pt"
    torch.manual_seed(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1, betas=(0.9, 0.95))
    # the global batch, and therefore the training, does not depend on the number of ranks
    loader = packed(options.folder / "train.idx").loader(
        GLOBAL_BATCH // ranks, shuffle=True, seed=1, drop_last=True, epochs=math.inf
    )
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_step = saved["step"]
        if rank == 0:
            print(f"resuming after step {first_step}, with {ranks} rank{'s' if ranks > 1 else ''}")

    started = time.perf_counter()
    with loader, (options.folder / "losses.jsonl").open("a", buffering=1) as log:
        for step, batch in zip(range(first_step + 1, options.steps + 1), loader, strict=False):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, options.steps)
            optimizer.zero_grad()
            loss, labels = sum_of_losses(model, batch)
            loss.backward()
            total = loss.detach()
            sum_over_ranks(total, labels)
            for parameter in model.parameters():
                if parameter.grad is not None:
                    sum_over_ranks(parameter.grad)
                    parameter.grad /= labels
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rows = rows_of_all_ranks(batch)
            if rank > 0:
                continue
            print(json.dumps({"step": step, "loss": (total / labels).item(), "rows": rows}), file=log)
            if step % options.checkpoint_steps == 0 or step == options.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "loader": loader.state_dict()}, checkpoint.with_suffix(".part"))
                checkpoint.with_suffix(".part").replace(checkpoint)
                rate = (step - first_step) * GLOBAL_BATCH * CONTEXT / (time.perf_counter() - started)
                print(f"step {step:4}: loss {(total / labels).item():.3f}, {rate:,.0f} tokens/s", flush=True)
    if rank == 0:
        held_out = held_out_loss(model, options.folder / "held_out.idx")
        print(f"held-out loss {held_out:.3f} (all tokens equally likely: {math.log(VOCABULARY):.3f})")
        print(continued(model, b"TRUTH, n.  ", 200))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--text", type=Path, help="another text to train on")
    parser.add_argument("--steps", type=int, default=300, help="of the whole training")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    options = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if GLOBAL_BATCH % ranks:
        parser.error(f"{ranks} ranks do not divide the global batch of {GLOBAL_BATCH} rows")
    if ranks > 1:
        dist.init_process_group("gloo")
    if rank == 0:
        options.folder.mkdir(parents=True, exist_ok=True)
        if not (options.folder / "held_out.idx").exists():
            text = options.text.read_bytes() if options.text else book.devils_dictionary()
            write_tokens(text.decode(errors="replace"), options.folder)
    if ranks > 1:
        dist.barrier()
    train(options, rank, ranks)
    if ranks > 1:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
