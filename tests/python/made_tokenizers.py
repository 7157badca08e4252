# SPDX-License-Identifier: Apache-2.0
"""Tokenizers in Python with the interfaces of libraries, a trained one, and a reader of Megatron's files."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SPECIAL = ("<|end|>", "<|im_start|>", "<|im_end|>", "<|bos|>")
END, START, STOP, BOS = range(256, 260)

CHATML = """\
{%- if tools %}
<|im_start|>system
{{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}
<|im_start|>{{ message.role }}
{% if message.role == 'assistant' -%}
{% generation %}{{ message.content or '' }}{% for call in message.tool_calls or [] %}
{{- call.function | tojson }}{% endfor %}<|im_end|>{% endgeneration %}

{% else -%}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""
# The same text, without marks; Jinja removes the line break after a block.
UNMARKED = CHATML.replace("{% generation %}", "").replace("{% endgeneration %}\n", "")


class Encoding(NamedTuple):
    ids: list[int]
    offsets: list[tuple[int, int]]


class Bytes:
    """The interface of ``tokenizers.Tokenizer``: a token per byte of UTF-8, and special tokens. Like the library, it
    fails if two threads use one object, and it applies padding and truncation if they are set.
    """

    def __init__(self, extra: int = 0) -> None:
        self._extra = extra
        self._held = threading.Lock()
        self.padding: int | None = None
        self.truncation: int | None = None
        self.calls = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Bytes:
        own = Bytes(self._extra)
        own.padding, own.truncation = self.padding, self.truncation
        return own

    def __reduce__(self) -> tuple[Any, ...]:
        return Bytes, (self._extra,)

    def no_padding(self) -> None:
        self.padding = None

    def no_truncation(self) -> None:
        self.truncation = None

    def get_vocab(self) -> dict[str, int]:
        names = [f"<0x{byte:02X}>" for byte in range(256)] + list(SPECIAL) + [f"<x{i}>" for i in range(self._extra)]
        return {name: number for number, name in enumerate(names)}

    def token_to_id(self, token: str) -> int | None:
        return self.get_vocab().get(token)

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
        assert self._held.acquire(blocking=False), "Already borrowed"
        try:
            self.calls += 1
            return [self._encoded(text, add_special_tokens) for text in texts]
        finally:
            self._held.release()

    def _encoded(self, text: str, special: bool) -> Encoding:
        ids, offsets = ([BOS], [(0, 0)]) if special else ([], [])
        for found in re.finditer("|".join(map(re.escape, SPECIAL)) + "|.", text, re.DOTALL):
            piece = [256 + SPECIAL.index(found[0])] if found[0] in SPECIAL else list(found[0].encode())
            ids += piece
            offsets += [found.span()] * len(piece)
        if self.truncation is not None:
            ids = ids[: self.truncation]
        if self.padding is not None:
            ids += [0] * (self.padding - len(ids))
        return Encoding(ids, offsets)


class Words:
    """Only ``encode``: a token per word, its length; "bad" raises, "big" has an id outside of the vocabulary."""

    vocab_size: int | None = 1000
    eos_token_id = 999

    def encode(self, text: str) -> list[int]:
        if "bad" in text:
            raise KeyError("bad")
        return [5000 if word == "big" else len(word) for word in text.split()]


class Stops(Words):
    """Raises KeyboardInterrupt at the text `at`, and counts texts."""

    at = ""
    seen = 0

    def encode(self, text: str) -> list[int]:
        if text == self.at:
            raise KeyboardInterrupt
        Stops.seen += 1
        return super().encode(text)


class Dies(Words):
    """Kills its process at a text, if it is a worker process."""

    def encode(self, text: str) -> list[int]:
        if text.startswith("document 20 ") and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(text)


class Blocks(Words):
    """Prints a line at a text, and waits to be killed."""

    def encode(self, text: str) -> list[int]:
        if text.startswith("document 20 "):
            print("blocked", flush=True)
            signal.pause()
        return super().encode(text)


def text_of(ids: Sequence[int]) -> str:
    """Decodes ids of `Bytes`."""
    parts = [bytes([one]) if one < 256 else SPECIAL[one - 256].encode() for one in ids]
    return b"".join(parts).decode()


def trained(folder: Path) -> Any:
    """A byte-level BPE of the library ``tokenizers``, saved in a model's folder with `CHATML` as its template."""
    import pytest  # worker processes import this module

    tokenizers = pytest.importorskip("tokenizers")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(["the quick brown fox jumps over the lazy dog; it is what it is"] * 3, trainer)
    folder.mkdir(exist_ok=True)
    bpe.save(str(folder / "tokenizer.json"))
    config = {"eos_token": {"__type": "AddedToken", "content": "<|end|>"}, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": CHATML}))
    return bpe


class Stored(NamedTuple):
    dtype: str
    sequences: list[list[int]]
    document_indices: list[int]


def read_megatron(prefix: Path) -> Stored:
    """Reads both files by the format's description, and checks that nothing is left over."""
    index = prefix.with_name(prefix.name + ".idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\0\0", 1)
    dtype = {4: "<i4", 8: "<u2"}[code]
    assert len(index) == 34 + 12 * sequences + 8 * documents
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    offsets = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    tokens = prefix.with_name(prefix.name + ".bin").read_bytes()
    read = [np.frombuffer(tokens, dtype, length, at).tolist() for length, at in zip(lengths, offsets, strict=True)]
    assert len(tokens) == int(lengths.sum()) * np.dtype(dtype).itemsize
    return Stored(np.dtype(dtype).name, read, np.frombuffer(index, "<i8", documents, 34 + 12 * sequences).tolist())
