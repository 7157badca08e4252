# SPDX-License-Identifier: Apache-2.0
"""Batches of packed sequences in the forms of trainers. No function waits for the batch's device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from .batches import Batch

if TYPE_CHECKING:
    from torch import Tensor

_IGNORED = -100


class _ImageFields(TypedDict, total=False):
    """Of a batch with images: see ImagePackedLoader."""

    pixel_values: Tensor
    image_grid_thw: Tensor
    image_sizes: Tensor


class TransformersBatch(_ImageFields):
    """Arguments of a model of transformers."""

    input_ids: Tensor
    labels: Tensor
    position_ids: Tensor
    seq_idx: Tensor
    cu_seq_lens_q: Tensor
    cu_seq_lens_k: Tensor
    max_length_q: int
    max_length_k: int


class TorchTitanInput(_ImageFields):
    """The first element of TorchTitan's batches."""

    input: Tensor
    positions: Tensor


class _MaskedBatch(_ImageFields):
    tokens: Tensor
    labels: Tensor
    loss_mask: Tensor
    position_ids: Tensor


class MegatronBatch(_MaskedBatch):
    """A batch of Megatron's ``GPTDataset`` with ``inter_document_masking``."""

    cu_seqlens: Tensor
    max_seqlen: Tensor


class ThdParameters(TypedDict):
    """Arguments of TransformerEngine's attention; the padded offsets only for padded documents."""

    qkv_format: str
    cu_seqlens_q: Tensor
    cu_seqlens_kv: Tensor
    max_seqlen_q: int
    max_seqlen_kv: int
    cu_seqlens_q_padded: NotRequired[Tensor]
    cu_seqlens_kv_padded: NotRequired[Tensor]


class ThdBatch(_MaskedBatch):
    """Inputs of a model with TransformerEngine's attention."""

    packed_seq_params: ThdParameters


@dataclass(frozen=True)
class PackPreset:
    """A trainer's form.

    Attributes:
        labels: the labels that it needs, as in :meth:`Dataset.pack_sequences`.
        form: converts a batch of tensors, which it may change. `padded`: whether documents are padded.
    """

    labels: str
    form: Callable[..., Any]


def _transformers(batch: Batch, *, padded: bool) -> TransformersBatch:
    """``DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)`` of transformers 5.23.0
    (``src/transformers/data/data_collator.py``).
    """
    import torch

    tokens, ends = batch.input_ids, batch.cu_seqlens
    numbers = torch.arange(len(ends) - 1, dtype=torch.int32, device=tokens.device)
    return {
        "input_ids": tokens.view(1, -1),
        "labels": batch.labels.view(1, -1),
        "position_ids": batch.position_ids.view(1, -1),
        "seq_idx": torch.repeat_interleave(numbers, ends.diff(), output_size=tokens.numel()).view(1, -1),
        "cu_seq_lens_q": ends,
        "cu_seq_lens_k": ends,
        "max_length_q": batch.max_seqlen,
        "max_length_k": batch.max_seqlen,
    }


def _torchtitan(batch: Batch, *, padded: bool) -> tuple[TorchTitanInput, Tensor]:
    """``packed_features_to_training_batch`` of TorchTitan b5bcd76 (``torchtitan/components/data/packing.py``)."""
    return {"input": batch.input_ids, "positions": batch.position_ids}, batch.labels


def _with_loss_mask(batch: Batch) -> _MaskedBatch:
    import torch

    mask = (batch.labels != _IGNORED).to(torch.float32)
    return {
        "tokens": batch.input_ids,
        "labels": batch.labels.clamp_(min=0),  # as cross-entropy of a divided vocabulary needs a token everywhere
        "loss_mask": mask,
        "position_ids": batch.position_ids,
    }


def _megatron(batch: Batch, *, padded: bool) -> MegatronBatch:
    """``GPTDataset`` with ``inter_document_masking`` (Megatron-LM d98e8a6, ``megatron/core/datasets/gpt_dataset.py``),
    collated: ``cu_seqlens`` has the offsets in each row, then the row's length up to ``length + 1`` entries.
    """
    import torch

    rows, length = batch.input_ids.shape
    starts = batch.cu_seqlens[:-1].to(torch.int64)
    row_of = starts // length
    first = torch.searchsorted(starts, torch.arange(rows, device=starts.device) * length)  # each row starts a segment
    ends = torch.full((rows, length + 1), length, dtype=torch.int32, device=starts.device)
    column = torch.arange(len(starts), device=starts.device) - first[row_of]
    ends[row_of, column] = (starts % length).to(torch.int32)
    longest = (batch.position_ids.amax(1) + 1).to(torch.int32)
    return {**_with_loss_mask(batch), "cu_seqlens": ends, "max_seqlen": longest}


def _thd(batch: Batch, *, padded: bool) -> ThdBatch:
    """The model's input with the arguments of TransformerEngine's ``DotProductAttention`` (d0067d0,
    ``transformer_engine/pytorch/attention``), which are the fields of Megatron's ``PackedSeqParams``.
    """
    import torch

    stored = batch.cu_seqlens
    real = stored
    if padded:
        is_real = torch.zeros(batch.document_ids.numel() + 1, dtype=torch.int32, device=stored.device)
        torch.cumsum(batch.document_ids.view(-1) >= 0, 0, dtype=torch.int32, out=is_real[1:])
        counts = is_real[stored].diff()
        counts = torch.where(counts > 0, counts, stored.diff())  # the padding of a row is a segment too
        real = torch.cat([stored[:1], counts.cumsum(0, dtype=torch.int32)])
    parameters: ThdParameters = {
        "qkv_format": "thd",
        "cu_seqlens_q": real,
        "cu_seqlens_kv": real,
        "max_seqlen_q": batch.max_seqlen,
        "max_seqlen_kv": batch.max_seqlen,
    }
    if padded:
        parameters |= {"cu_seqlens_q_padded": stored, "cu_seqlens_kv_padded": stored}
    masked: dict[str, Any] = {**_with_loss_mask(batch)}
    flat: Any = {name: tensor.view(1, -1) for name, tensor in masked.items()}
    made: ThdBatch = flat | {"packed_seq_params": parameters}
    return made


PRESETS = {
    "transformers": PackPreset("input_ids", _transformers),
    "torchtitan": PackPreset("next_token", _torchtitan),
    "megatron": PackPreset("next_token", _megatron),
    "thd": PackPreset("next_token", _thd),
}
