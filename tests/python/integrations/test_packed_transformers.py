# SPDX-License-Identifier: Apache-2.0
"""Packed batches in transformers' own code: its collator has the same fields, and a model has the same loss as for the
separate documents.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from packed_runs import written

import feedline

transformers = pytest.importorskip(
    "transformers", reason="Transformers is not installed (tools/test --integrations installs it)"
)

VOCABULARY = 64
LENGTHS = [9, 1, 30, 4, 12, 25, 2, 17, 40, 3, 8, 21]  # one is split


def documents(masked: bool) -> feedline.Dataset:
    rng = np.random.default_rng(4)
    columns = {"input_ids": rng.integers(0, VOCABULARY, sum(LENGTHS))}
    if masked:
        columns["loss_mask"] = rng.integers(0, 2, sum(LENGTHS)).astype(bool)
    return feedline.arrays(**{name: feedline.ragged(values, LENGTHS) for name, values in columns.items()})


def tiny_model(attention: str) -> Any:
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attn_implementation=attention,
    )  # fmt: skip
    return transformers.Qwen2ForCausalLM(config).eval()


def summed_loss(model: Any, **batch: Any) -> tuple[float, int]:
    """The sum of the losses of all labels, and their number. The model shifts labels."""
    count = int((batch["labels"][:, 1:] != -100).sum())
    with torch.no_grad():
        return (float(model(**batch, use_cache=False).loss) * count if count else 0.0), count


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_loss_of_a_packed_batch_is_that_of_its_documents(attention: str, masked: bool) -> None:
    model = tiny_model(attention)
    with documents(masked).pack_sequences(32).loader(3, shuffle=True, preset="transformers", uneven="exact") as loader:
        batches = list(loader)
    assert len(batches) > 1
    for batch in batches:
        packed, count = summed_loss(model, **batch)
        expected, labels = 0.0, 0
        for begin, end in itertools.pairwise(batch["cu_seq_lens_q"].tolist()):
            one = {name: batch[name][:, begin:end] for name in ("input_ids", "labels")}
            loss, number = summed_loss(model, **one)
            expected, labels = expected + loss, labels + number
        assert labels == count > 0
        assert abs(packed - expected) / count < 1e-5
        mixed = dict(batch, position_ids=torch.arange(batch["input_ids"].numel())[None])
        assert abs(summed_loss(model, **mixed)[0] - expected) / count > 1e-4  # so the check can fail


def test_a_batch_is_that_of_the_flattening_collator(tmp_path: Path) -> None:
    loader = written(tmp_path, LENGTHS).pack_sequences(32).loader(2, preset="transformers", uneven="exact")
    collate = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    with loader:
        for batch in loader:
            features = []
            for begin, end in itertools.pairwise(batch["cu_seq_lens_q"].tolist()):
                features.append({name: batch[name][0, begin:end] for name in ("input_ids", "labels")})
            expected = collate(features)
            assert batch.keys() == expected.keys()
            for name, value in expected.items():
                if isinstance(value, int):
                    assert batch[name] == value
                else:
                    assert batch[name].dtype == value.dtype
                    assert torch.equal(batch[name], value)
