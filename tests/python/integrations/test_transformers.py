# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer. It creates its loaders itself, and Accelerate recreates them: both classes must be
replaced.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset

WHY = "is not installed (tools/test --integrations installs it)"
transformers = pytest.importorskip("transformers", reason=f"Transformers {WHY}")
accelerate = pytest.importorskip("accelerate", reason=f"Accelerate, which Trainer needs, {WHY}")

from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments  # noqa: E402

import feedline  # noqa: E402


class Sentences(Dataset):
    """Generated words; the class is that of the first word."""

    def __len__(self):
        return 50

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        words = torch.randint(0, 32, (6,), generator=generator)
        return {"input_ids": words, "attention_mask": torch.ones(6, dtype=torch.long), "labels": int(words[0]) % 2}


class OwnLoaderTrainer(Trainer):
    """The way in the documentation of Trainer: overrides the method that creates the loader."""

    def get_train_dataloader(self):
        loader = feedline.DataLoader(
            self.train_dataset,
            batch_size=self.args.train_batch_size,
            sampler=self._get_train_sampler(),
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
        )
        return self.accelerator.prepare(loader)


def tiny_model():
    torch.manual_seed(3)
    return BertForSequenceClassification(
        BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )


def train(folder, trainer_class=Trainer, resume=None, **more):
    """Returns the losses of every step, the last evaluation's loss, and the class of the loader that Accelerate
    created.
    """
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to=[], num_train_epochs=2, per_device_train_batch_size=8,
        per_device_eval_batch_size=8, logging_steps=1, learning_rate=1e-2, seed=11, disable_tqdm=True,
        save_strategy="steps", save_steps=4, **more,
    )  # fmt: skip
    trainer = trainer_class(tiny_model(), arguments, train_dataset=Sentences(), eval_dataset=Sentences())
    trainer.train(resume_from_checkpoint=resume)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    evaluated = trainer.evaluate()["eval_loss"]
    return losses, evaluated, type(trainer.get_eval_dataloader().base_dataloader)


@pytest.fixture
def ours_everywhere(monkeypatch):
    monkeypatch.setattr(transformers.trainer, "DataLoader", feedline.DataLoader)
    monkeypatch.setattr(accelerate.data_loader, "DataLoader", feedline.DataLoader)


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    """Losses with torch's loader, which depend on persistent workers, because the model's dropout then draws other
    numbers.
    """
    runs = {}

    def run(**options):
        key = str(options) if options.get("dataloader_persistent_workers") else ""
        if key not in runs:
            folder = tmp_path_factory.mktemp("stock")
            losses, evaluated, kind = train(folder, **options)
            assert kind is TorchLoader and len(losses) == 14 and evaluated < losses[0]
            runs[key] = folder, losses, evaluated
        return runs[key]

    return run


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_trainer_gives_the_same_losses_with_both_names_changed(stock, request, tmp_path, workers, persistent):
    options = {"dataloader_num_workers": workers, "dataloader_persistent_workers": persistent}
    expected = stock(**options)[1:]
    request.getfixturevalue("ours_everywhere")
    assert train(tmp_path, **options) == (*expected, feedline.DataLoader)


@pytest.mark.parametrize("workers", [0, 2])
def test_trainer_with_its_loader_method_overridden_gives_the_same_losses(stock, tmp_path, workers):
    _, *expected = stock()
    assert [*train(tmp_path, OwnLoaderTrainer, dataloader_num_workers=workers)[:2]] == expected


def test_trainer_resumes_from_a_checkpoint_to_the_same_losses(stock, request, tmp_path):
    """The checkpoint is from a run with torch's loader, in the middle of an epoch."""
    folder, *expected = stock()
    request.getfixturevalue("ours_everywhere")
    assert [*train(tmp_path, resume=str(folder / "checkpoint-4"))[:2]] == expected


def test_what_it_logs_has_the_loaders_numbers_next_to_the_loss(tmp_path):
    from feedline.integrations import transformers as ours

    log, logged = Trainer.log, []

    class Tracker(transformers.TrainerCallback):
        def on_log(self, arguments, state, control, logs=None, **more):
            logged.append(dict(logs))

    arguments = TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], num_train_epochs=1, per_device_train_batch_size=8,
        logging_steps=2, save_strategy="no", dataloader_num_workers=1, disable_tqdm=True,
    )  # fmt: skip
    with ours.install(stats=True), ours.install(stats=True):
        Trainer(tiny_model(), arguments, train_dataset=Sentences(), callbacks=[Tracker()]).train()
    rows = [row for row in logged if "loss" in row]
    assert [row["data/batches"] for row in rows] == sorted(row["data/batches"] for row in rows) and len(rows) == 3
    assert all(row["data/batches_per_s"] > 0 and 0 <= row["data/wait_share"] <= 1 for row in rows)
    assert Trainer.log is log
