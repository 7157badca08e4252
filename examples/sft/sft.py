# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a tiny Qwen2 on packed chats with transformers' Trainer, and resumes exactly on any number of ranks.

    torchrun --nproc-per-node 2 examples/sft/sft.py --folder run   # a minute on two cores; Ctrl-C or kill it
    python examples/sft/sft.py --folder run                        # resumes, here with one rank

The chats are made, and the model's weights are random, so nothing is downloaded. `--trl` uses TRL's SFTTrainer. FOLDER
contains the chats, the model, checkpoints, and losses.jsonl, with one line per step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chats
import torch
import torch.distributed as dist
import transformers

import feedline

LENGTH, GLOBAL_BATCH = 256, 8  # tokens per row; rows of all ranks together
_STATE = "loader.json"


class PackedBatches:
    """Batches for Trainer. It has neither `set_epoch` nor a length, because the loader's state has the epoch."""

    def __init__(self, loader: feedline.PackedLoader) -> None:
        self.loader = loader
        self.rows: list[int] = []  # checksums of the last batch's rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.loader:
            self.rows = [zlib.crc32(row.numpy().tobytes()) for row in batch["input_ids"].view(-1, LENGTH)]
            yield batch


class Packed:
    """A mixin for Trainer and its subclasses: their batches are packed rows, which are already divided among ranks."""

    def get_train_dataloader(self) -> Any:
        return self.batches

    def use(self, batches: PackedBatches) -> None:
        self.batches = batches


class PackedTrainer(Packed, transformers.Trainer):
    pass


class Progress(transformers.TrainerCallback):
    """Saves the loader's state with each checkpoint, and logs the loss and the rows of each step."""

    def __init__(self, folder: Path, batches: PackedBatches) -> None:
        self.log, self.batches = folder / "losses.jsonl", batches
        self.rows: list[int] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        parts = [self.batches.rows]
        if dist.is_initialized():
            parts = [[] for _ in range(dist.get_world_size())]
            dist.all_gather_object(parts, self.batches.rows)
        self.rows = sorted(checksum for part in parts for checksum in part)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if state.is_world_process_zero and "loss" in logs:
            with self.log.open("a") as file:
                line = {"step": state.global_step, "loss": float(logs["loss"]), "rows": self.rows}
                file.write(json.dumps(line) + "\n")
            if state.global_step % 20 == 0:
                print(f"step {state.global_step:4}: loss {float(logs['loss']):.3f}", flush=True)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # the state is the same on all ranks; the checkpoint is complete when this file exists
        if state.is_world_process_zero:
            path = Path(args.output_dir) / f"checkpoint-{state.global_step}" / _STATE
            path.with_suffix(".part").write_text(json.dumps(self.batches.loader.state_dict()))
            path.with_suffix(".part").replace(path)


def last_checkpoint(folder: Path) -> Path | None:
    found = [path.parent for path in folder.glob(f"checkpoint-*/{_STATE}")]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def make_trainer(options: argparse.Namespace, model: Any, tokenizer: Any, batches: PackedBatches, ranks: int) -> Any:
    arguments: dict[str, Any] = {
        "output_dir": str(options.folder),
        "per_device_train_batch_size": GLOBAL_BATCH // ranks,
        "max_steps": options.steps,
        "save_steps": options.checkpoint_steps,
        "learning_rate": 3e-3,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 10,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "ignore_data_skip": True,  # the loader resumes by itself
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "seed": 1,
    }
    callbacks = [Progress(options.folder, batches)]
    trainer: Any
    if options.trl:
        trainer = trl_trainer(model, tokenizer, arguments, callbacks)
    else:
        trainer = PackedTrainer(model, transformers.TrainingArguments(**arguments), callbacks=callbacks)
    trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
    trainer.use(batches)
    return trainer


def trl_trainer(model: Any, tokenizer: Any, arguments: dict[str, Any], callbacks: list[Any]) -> Any:
    import datasets
    import trl

    class PackedSftTrainer(Packed, trl.SFTTrainer):
        pass

    unused = datasets.Dataset.from_dict({"input_ids": [[0, 0]], "labels": [[0, 0]]})  # SFTTrainer needs a dataset
    config = trl.SFTConfig(**arguments, dataset_kwargs={"skip_prepare_dataset": True}, packing=False, max_length=None)
    return PackedSftTrainer(model, config, train_dataset=unused, processing_class=tokenizer, callbacks=callbacks)


def answer(model: Any, tokenizer: Any, question: str) -> str:
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    made = model.generate(**prompt, max_new_tokens=24, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    text: str = tokenizer.decode(made[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    return text


def train(options: argparse.Namespace, rank: int, ranks: int) -> None:
    model_folder = options.folder / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    dataset = feedline.open(options.folder / "chats.jsonl", fields=["messages"])
    # rank 0 tokenizes the chats, the others wait; later runs open the tokens
    packed = dataset.tokenize(model_folder, messages="messages").pack_sequences(LENGTH)
    # the global batch, and therefore the training, does not depend on the number of ranks
    loader = packed.loader(
        GLOBAL_BATCH // ranks,
        shuffle=True,
        seed=1,
        drop_last=True,
        epochs=math.inf,
        preset="transformers",
    )
    batches = PackedBatches(loader)
    trainer = make_trainer(options, model, tokenizer, batches, ranks)
    checkpoint = last_checkpoint(options.folder)
    if checkpoint is not None:
        loader.load_state_dict(json.loads((checkpoint / _STATE).read_text()))
        if rank == 0:
            step = checkpoint.name.rpartition("-")[2]
            print(f"resuming after step {step}, with {ranks} rank{'s' if ranks > 1 else ''}", flush=True)
    with loader:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if rank == 0:
        print(packed.explain().splitlines()[0])
        for question in ("What comes after Tuesday?", "What comes before August?"):
            print(f"{question} {answer(model.eval(), tokenizer, question)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("run"))
    parser.add_argument("--chats", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=200, help="of the whole training")
    parser.add_argument("--checkpoint-steps", type=int, default=50)
    parser.add_argument("--trl", action="store_true", help="use TRL's SFTTrainer")
    options = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if GLOBAL_BATCH % ranks:
        parser.error(f"{ranks} ranks do not divide the global batch of {GLOBAL_BATCH} rows")
    if ranks > 1:
        dist.init_process_group("gloo")
    if rank == 0:
        options.folder.mkdir(parents=True, exist_ok=True)
        if not (options.folder / "model" / "model.safetensors").exists():
            chats.write_chats(options.folder / "chats.jsonl", options.chats, seed=0)
            chats.write_model(options.folder / "model", options.folder / "chats.jsonl")
    if ranks > 1:
        dist.barrier()
    train(options, rank, ranks)
    if ranks > 1:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
