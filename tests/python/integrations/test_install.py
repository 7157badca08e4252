# SPDX-License-Identifier: Apache-2.0
"""`feedline.integrations`: loaders that frameworks create are Feedline's while it is installed, and the frameworks' own
afterwards.
"""

from __future__ import annotations

import pytest
from tiny_training import Points
from torch.utils.data import DataLoader as TorchLoader

import feedline
from feedline.integrations.replaced import Replaced


def test_accelerate_keeps_our_class_and_our_arguments_and_gives_its_names_back():
    accelerate = pytest.importorskip("accelerate")
    from feedline.integrations import accelerate as ours

    names = ("DataLoader", "prepare_data_loader", "skip_first_batches")
    before = [getattr(accelerate.data_loader, name) for name in names]
    given = {"seed": 7, "on_error": "skip", "lower": "never", "central_batching": True, "stall_timeout": 9.0}
    with ours.install(), ours.install():
        accelerator = accelerate.Accelerator(cpu=True)
        prepared = accelerator.prepare(feedline.DataLoader(Points(), 8, shuffle=True, **given))
        rest = accelerate.skip_first_batches(prepared, 2)
        of_torch = accelerator.prepare(TorchLoader(Points(), 8))
        for loader in (prepared, rest):
            assert isinstance(loader.base_dataloader, feedline.DataLoader)
            assert {name: getattr(loader.base_dataloader, name) for name in given} == given
        assert isinstance(of_torch.base_dataloader, feedline.DataLoader) and of_torch.base_dataloader.seed is None
        orders = [[batch["index"].tolist() for batch in loader] for loader in (prepared, feedline_order(given))]
        assert orders[0] == orders[1]
    assert [getattr(accelerate.data_loader, name) for name in names] == before
    assert accelerate.accelerator.prepare_data_loader is before[1]


def feedline_order(given):
    return feedline.DataLoader(Points(), 8, shuffle=True, **given)


def test_trainer_makes_and_prepares_loaders_of_ours(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import torch

    from feedline.integrations import transformers as ours

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    with ours.install():
        trainer = transformers.Trainer(torch.nn.Linear(4, 1), arguments, train_dataset=Points(), eval_dataset=Points())
        for loader in (trainer.get_train_dataloader(), trainer.get_eval_dataloader()):
            assert isinstance(loader.base_dataloader, feedline.DataLoader)
    assert transformers.trainer.DataLoader is TorchLoader


def test_ignite_makes_loaders_of_ours():
    distributed = pytest.importorskip("ignite.distributed")
    from feedline.integrations import ignite as ours

    with ours.install():
        assert type(distributed.auto_dataloader(Points(), batch_size=8)) is feedline.DataLoader
    assert type(distributed.auto_dataloader(Points(), batch_size=8)) is TorchLoader


def test_ray_rebuilds_loaders_as_ours():
    pytest.importorskip("ray.train.torch")
    from ray.train.torch import train_loop_utils

    from feedline.integrations import ray as ours

    with ours.install():
        assert train_loop_utils.DataLoader is feedline.DataLoader
    assert train_loop_utils.DataLoader is TorchLoader


def test_a_name_that_was_not_there_is_not_there_again():
    import types

    module = types.ModuleType("framework")
    replaced = Replaced([(module, "DataLoader", 1)])
    assert module.DataLoader == 1
    replaced.uninstall()
    replaced.uninstall()
    assert not hasattr(module, "DataLoader")


@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_continues_after_an_epochs_end_with_the_next_ones_order(tmp_path, workers):
    """Without the callback, the order of epoch 0 is repeated, because Lightning does not load the loader's state
    there.
    """
    pytest.importorskip("lightning")
    import lightning_runs
    from lightning.pytorch.callbacks import ModelCheckpoint

    from feedline.integrations.lightning import FollowEpochs

    def fit(epochs, folder, **more):
        module = lightning_runs.Regression()
        saves = ModelCheckpoint(dirpath=tmp_path / folder, save_last=True, save_top_k=0, save_on_train_epoch_end=True)
        trainer = lightning_runs.lightning.Trainer(
            accelerator="cpu", max_epochs=epochs, logger=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=[saves, FollowEpochs()],
        )  # fmt: skip
        loader = feedline.DataLoader(Points(), 16, shuffle=True, seed=3, num_workers=workers)
        trainer.fit(module, loader, **more)
        return module.samples

    whole = fit(3, "whole")
    assert len(whole) == 12 and whole[:4] != whole[4:8] != whole[8:]
    assert fit(1, "first") == whole[:4]
    assert fit(3, "resumed", ckpt_path=str(tmp_path / "first" / "last.ckpt")) == whole[4:]
