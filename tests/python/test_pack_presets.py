# SPDX-License-Identifier: Apache-2.0
"""`loader(preset=)` of packed sequences: the fields, dtypes and shapes of each trainer, made from the same rows as the
default form.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packed_runs import rows_of, written

import feedline

torch = pytest.importorskip("torch")

LENGTH = 24
LENGTHS = np.random.default_rng(8).integers(1, 40, 60).tolist()  # some documents are split


def batches(tmp_path: Path, preset: Any, labels: Any, multiple: int = 1) -> list[tuple[Any, Any]]:
    """Each batch in the preset's form, with the batch of NumPy arrays that has the same rows."""
    dataset = written(tmp_path, LENGTHS)
    options: dict[str, Any] = {"batch_size": 3, "shuffle": True, "seed": 5}
    packed = dataset.pack_sequences(LENGTH, pad_to_multiple_of=multiple)
    plain = dataset.pack_sequences(LENGTH, labels=labels, pad_to_multiple_of=multiple)
    with packed.loader(preset=preset, **options) as loader, plain.loader(output="numpy", **options) as rows:
        return list(zip(loader, rows, strict=True))


def check(tensor: Any, expected: Any, dtype: Any = torch.int64) -> None:
    assert tensor.dtype == dtype
    assert tensor.tolist() == np.asarray(expected).tolist()


def test_transformers(tmp_path: Path) -> None:
    for batch, rows in batches(tmp_path, "transformers", "input_ids"):
        for name in ("input_ids", "labels", "position_ids"):
            check(batch.pop(name), getattr(rows, name).reshape(1, -1))
        lengths = np.diff(rows.cu_seqlens)
        check(batch.pop("seq_idx"), np.repeat(np.arange(len(lengths)), lengths)[None], torch.int32)
        for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
            check(batch.pop(name), rows.cu_seqlens, torch.int32)
        assert batch == {"max_length_q": rows.max_seqlen, "max_length_k": rows.max_seqlen}
        assert type(batch["max_length_q"]) is int


def test_torchtitan(tmp_path: Path) -> None:
    for (inputs, labels), rows in batches(tmp_path, "torchtitan", "next_token"):
        assert [*inputs] == ["input", "positions"]
        check(inputs["input"], rows.input_ids)
        check(inputs["positions"], rows.position_ids)
        check(labels, rows.labels)
        # the trainer finds documents by their first position
        (starts,) = np.nonzero(rows.position_ids.reshape(-1) == 0)
        assert [*starts, labels.numel()] == rows.cu_seqlens.tolist()


def test_megatron(tmp_path: Path) -> None:
    for batch, rows in batches(tmp_path, "megatron", "next_token"):
        check(batch.pop("tokens"), rows.input_ids)
        check(batch.pop("position_ids"), rows.position_ids)
        check(batch.pop("loss_mask"), rows.labels != -100, torch.float32)
        check(batch.pop("labels"), np.maximum(rows.labels, 0))
        ends, longest = batch.pop("cu_seqlens"), batch.pop("max_seqlen")
        assert not batch
        assert ends.shape == (len(rows.input_ids), LENGTH + 1)
        for row, pieces in enumerate(rows_of(rows, labels_of=next_tokens)):
            lengths = [len(piece) for piece in pieces]
            lengths += [LENGTH - sum(lengths)] if sum(lengths) < LENGTH else []
            expected = np.cumsum([0, *lengths]).tolist()
            check(ends[row], expected + [LENGTH] * (LENGTH + 1 - len(expected)), torch.int32)
            check(longest[row], max(lengths), torch.int32)


@pytest.mark.parametrize("multiple", [1, 4])
def test_thd(tmp_path: Path, multiple: int) -> None:
    for batch, rows in batches(tmp_path, "thd", "next_token", multiple):
        check(batch.pop("tokens"), rows.input_ids.reshape(1, -1))
        check(batch.pop("position_ids"), rows.position_ids.reshape(1, -1))
        check(batch.pop("loss_mask"), rows.labels.reshape(1, -1) != -100, torch.float32)
        check(batch.pop("labels"), np.maximum(rows.labels.reshape(1, -1), 0))
        parameters = batch.pop("packed_seq_params")
        assert not batch
        real = []
        for pieces in rows_of(rows, multiple, next_tokens):
            stored = sum(-(-len(piece) // multiple) * multiple for piece in pieces)
            real += [len(piece) for piece in pieces] + ([LENGTH - stored] if stored < LENGTH else [])
        assert parameters.pop("qkv_format") == "thd"
        for name in ("q", "kv"):
            check(parameters.pop(f"cu_seqlens_{name}"), np.cumsum([0, *real]), torch.int32)
            assert parameters.pop(f"max_seqlen_{name}") == rows.max_seqlen
            if multiple > 1:
                check(parameters.pop(f"cu_seqlens_{name}_padded"), rows.cu_seqlens, torch.int32)
        assert not parameters
        assert all(length % multiple == 0 for length in np.diff(rows.cu_seqlens))


def next_tokens(piece: tuple[int, ...]) -> list[int]:
    """Labels of a piece: tokens are numbered, and the last one of a document has none."""
    last = {end - 1 for end in np.cumsum(LENGTHS).tolist()}
    return [-100 if token in last else token + 1 for token in piece]


def test_padded_documents_are_packed_by_their_padded_lengths(tmp_path: Path) -> None:
    packed = written(tmp_path, LENGTHS).pack_sequences(LENGTH, pad_to_multiple_of=8)
    counts = packed.count()
    assert counts["tokens"] == sum(LENGTHS)
    assert counts["fill"] == sum(LENGTHS) / (counts["packs"] * LENGTH)
    with packed.loader(2, output="numpy", uneven="exact") as loader:
        assert "documents padded to multiples of 8" in loader.explain()
        pieces = [piece for batch in loader for row in rows_of(batch, 8) for piece in row]
    assert sorted(itertools.chain.from_iterable(pieces)) == list(range(sum(LENGTHS)))


def test_a_preset_changes_neither_packs_nor_states(tmp_path: Path) -> None:
    packed = written(tmp_path, LENGTHS).pack_sequences(LENGTH)
    with packed.loader(2, shuffle=True, preset="transformers") as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        expected = [batch["input_ids"].view(2, -1).tolist() for batch in itertools.islice(iterator, 3)]
    for preset in (None, "transformers", "torchtitan"):
        with packed.loader(2, shuffle=True, preset=preset) as loader:  # type: ignore[arg-type]
            loader.load_state_dict(state)
            found = [tokens_of(batch).view(2, -1).tolist() for batch in itertools.islice(loader, 3)]
        assert found == expected


def tokens_of(batch: Any) -> Any:
    if isinstance(batch, dict):
        return batch["input_ids"]
    return batch[0]["input"] if isinstance(batch[0], dict) else batch.input_ids


def test_refusals(tmp_path: Path) -> None:
    dataset = written(tmp_path, [7, 4, 9])
    packed = dataset.pack_sequences(16)
    with pytest.raises(feedline.ConfigError, match=r"preset must be one of 'transformers', .*, not 'trl'"):
        packed.loader(1, preset="trl")  # type: ignore[arg-type]
    with pytest.raises(feedline.ConfigError, match="preset='thd' needs output='torch', not 'numpy'"):
        packed.loader(1, preset="thd", output="numpy")
    shifted = dataset.pack_sequences(16, labels="next_token")
    with pytest.raises(feedline.ConfigError, match="preset='transformers' needs labels='input_ids'"):
        shifted.loader(1, preset="transformers")
    with pytest.raises(feedline.ConfigError, match="length=16 is not a multiple of pad_to_multiple_of=3"):
        dataset.pack_sequences(16, pad_to_multiple_of=3)
