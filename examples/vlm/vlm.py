# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny Qwen2-VL on packed conversations about photos, with a checkpoint that resumes on any number of ranks.

    torchrun --nproc-per-node 2 examples/vlm/vlm.py --folder run   # a minute on two cores; Ctrl-C or kill it
    python examples/vlm/vlm.py --folder run                        # resumes, here with one rank

The photos are made, and the model's weights are random, so nothing is downloaded. FOLDER contains the conversations,
the model, the checkpoint and losses.jsonl, with one line per step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import zlib
from pathlib import Path
from typing import Any

import documents
import torch
import torch.distributed as dist
import transformers
from torch import nn

import feedline

LENGTH, GLOBAL_BATCH = 256, 4  # tokens per row; rows of all ranks together
MAX_PIXELS = 16 * 28 * 28  # so that an image has at most 16 tokens
PEAK_RATE, WARMUP = 3e-3, 10


def conversations(folder: Path) -> feedline.Dataset:
    chats = feedline.open(folder / "chats.jsonl", fields=["messages", "images"])
    return chats.tokenize(folder / "model", messages="messages", images="images")


def rate_at(step: int, steps: int) -> float:
    """Returns the learning rate: a linear warm-up, then a cosine decay."""
    return PEAK_RATE * min(step / WARMUP, 0.55 + 0.45 * math.cos(math.pi * step / steps))


def sum_over_ranks(*values: torch.Tensor) -> None:
    for value in values if dist.is_initialized() else ():
        dist.all_reduce(value)


def rows_of_all_ranks(batch: dict[str, Any], image_token: int) -> list[int]:
    """Returns a checksum of each row of the global batch and its images, in ascending order."""
    mine, begin = [], 0
    for row in batch["input_ids"].view(-1, LENGTH):
        end = begin + 4 * int((row == image_token).sum())  # an image token has four patches
        patches = batch["pixel_values"][begin:end] if end > begin else torch.empty(0)
        mine.append(zlib.crc32(patches.numpy().tobytes(), zlib.crc32(row.numpy().tobytes())))
        begin = end
    if not dist.is_initialized():
        return sorted(mine)
    parts: list[list[int]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(parts, mine)
    return sorted(checksum for part in parts for checksum in part)


@torch.no_grad()
def answer(model: Any, sample: Any, tokenizer: Any) -> str:
    """Returns the model's answer to a conversation's question."""
    tokens = torch.from_numpy(sample.input_ids[: int(sample.loss_mask.argmax())])[None]
    images = {name: torch.from_numpy(getattr(sample, name)) for name in ("pixel_values", "image_grid_thw")}
    kinds = (tokens == model.config.image_token_id).int()
    made = model.generate(
        input_ids=tokens, mm_token_type_ids=kinds, **images, max_new_tokens=40, do_sample=False, use_cache=False,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    text: str = tokenizer.decode(made[0, tokens.shape[1] :], skip_special_tokens=True)
    return text


def train(options: argparse.Namespace, rank: int, ranks: int) -> None:
    checkpoint = options.folder / "checkpoint.pt"
    transformers.set_seed(1)
    model = documents.new_model(options.folder / "model")
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1, betas=(0.9, 0.95))
    # rank 0 makes the tokens from the texts and the headers of the images, the others wait; later runs open the tokens
    chats = conversations(options.folder)
    packed = chats.pack_sequences(LENGTH, long="truncate")
    # the global batch, and therefore the training, does not depend on the number of ranks
    loader = packed.loader(
        GLOBAL_BATCH // ranks, shuffle=True, seed=1, drop_last=True, epochs=math.inf, preset="transformers"
    )
    first_step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first_step = saved["step"]
        if rank == 0:
            print(f"resuming after step {first_step}, with {ranks} rank{'s' if ranks > 1 else ''}", flush=True)

    with loader, (options.folder / "losses.jsonl").open("a", buffering=1) as log:
        for step, batch in zip(range(first_step + 1, options.steps + 1), loader, strict=False):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, options.steps)
            optimizer.zero_grad()
            labels = (batch["labels"][:, 1:] != -100).sum()
            total = model(**batch, use_cache=False).loss * labels  # of the labels of this rank
            total.backward()
            loss = total.detach()
            sum_over_ranks(loss, labels)
            for parameter in model.parameters():
                if parameter.grad is not None:
                    sum_over_ranks(parameter.grad)
                    parameter.grad /= labels
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rows = rows_of_all_ranks(batch, model.config.image_token_id)
            if rank > 0:
                continue
            print(json.dumps({"step": step, "loss": (loss / labels).item(), "rows": rows}), file=log)
            if step % options.checkpoint_steps == 0 or step == options.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "loader": loader.state_dict()}, checkpoint.with_suffix(".part"))
                checkpoint.with_suffix(".part").replace(checkpoint)
                print(f"step {step:4}: loss {(loss / labels).item():.3f}", flush=True)
    if rank == 0:
        print(packed.explain().splitlines()[0])
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder / "model")
        for sample in (chats[0], chats[1]):
            truth = tokenizer.decode(sample.input_ids[sample.loss_mask], skip_special_tokens=True)
            print(f"{documents.QUESTION} {answer(model.eval(), sample, tokenizer)!r}, correct is {truth!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--conversations", type=int, default=500)
    parser.add_argument("--steps", type=int, default=200, help="of the whole training")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    options = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if GLOBAL_BATCH % ranks:
        parser.error(f"{ranks} ranks do not divide the global batch of {GLOBAL_BATCH} rows")
    if ranks > 1:
        dist.init_process_group("gloo")
    if rank == 0 and not (options.folder / "model" / "preprocessor_config.json").exists():
        documents.write_documents(options.folder, options.conversations, seed=0)
        documents.write_processor(options.folder / "model", MAX_PIXELS)
    if ranks > 1:
        dist.barrier()
    train(options, rank, ranks)
    if ranks > 1:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
