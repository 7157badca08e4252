# SPDX-License-Identifier: Apache-2.0
"""A part of the output: tokens, lengths and masks of its documents, and a description, which marks it as finished."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..data.map.mapping import BadField
from ..data.text.tokenizing import Tokens
from ..errors import DataError, Error
from ..pack.shard_file import AtomicFile, sha256_of, write_durably
from .documents import Document, Documents, Part
from .megatron_files import LONGEST, TokenType

_MOST_TEXTS = 256  # that are passed to the tokenizer in one call,
_MOST_CHARACTERS = 4 << 20  # and their total length, which bounds the memory


@dataclass(frozen=True)
class Skipped:
    """A document that was left out, with the reason."""

    key: str
    why: str


@dataclass(frozen=True)
class PartReport:
    """The contents of a finished part."""

    number: int
    documents: int
    tokens: int
    empty: int  # documents without tokens, which have no sequence
    tokens_sha256: str
    lengths_sha256: str
    skipped: list[Skipped] = field(default_factory=list)
    masks_sha256: str | None = None  # None: no loss masks
    images_sha256: str | None = None  # None: no images


class TokenFunction(Protocol):
    """Makes tokens of documents' values. Picklable, if several processes use it."""

    @property
    def field(self) -> str: ...  # for messages

    @property
    def has_masks(self) -> bool: ...

    @property
    def has_images(self) -> bool: ...

    def many(self, values: Any, /) -> Sequence[Tokens | Exception | None]:
        """Returns the tokens of each value, None if it has none, or why it is refused: BadField or another error."""


@dataclass(frozen=True)
class Job:
    """All that a worker needs to make a part. Picklable."""

    documents: Documents
    function: TokenFunction
    dtype: TokenType
    skips: bool  # whether bad documents are left out instead of raised
    folder: str

    def make(self, part: Part) -> PartReport:
        """Writes the files of a part. Raises DataError for a bad document if it is not skipped."""
        folder = Path(self.folder)
        paths = [tokens_path(folder, part.number), lengths_path(folder, part.number)]
        paths += [masks_path(folder, part.number)] if self.function.has_masks else []
        paths += [images_path(folder, part.number)] if self.function.has_images else []
        files: list[_Raw] = []
        documents = total = empty = 0
        skipped: list[Skipped] = []
        try:
            for path in paths:
                files.append(_Raw(path))
            for key, made in self._tokens(part, skipped):
                if made is None:
                    empty += 1
                    continue
                if len(made.ids) > LONGEST:
                    raise self._error(key, f"{len(made.ids):,} tokens exceed the format's limit")
                tokens, lengths, *others = files
                tokens.add(made.ids.astype(f"<{np.dtype(self.dtype.name).str[1:]}").tobytes())
                lengths.add(np.int32(len(made.ids)).astype("<i4").tobytes())
                if self.function.has_masks:
                    others[0].add(made.mask.astype(np.uint8).tobytes())
                if self.function.has_images:
                    others[-1].add(made.images.astype("<i4").tobytes())
                documents, total = documents + 1, total + len(made.ids)
            sums = [file.commit() for file in files]
        except BaseException:
            for file in files:
                file.discard()
            raise
        masks_sum = sums[2] if self.function.has_masks else None
        images_sum = sums[-1] if self.function.has_images else None
        report = PartReport(part.number, documents, total, empty, sums[0], sums[1], skipped, masks_sum, images_sum)
        write_durably(_report_path(folder, part.number), json.dumps(dataclasses.asdict(report)).encode())
        return report

    def _tokens(self, part: Part, skipped: list[Skipped]) -> Iterator[tuple[str, Tokens | None]]:
        """Yields (key, tokens), or (key, None) for a document without tokens, of all documents that are not skipped."""
        for batch in _batches(self.documents.read(part)):
            results = iter(self.function.many([document.value for document in batch if document.error is None]))
            for document in batch:
                made = document.error if document.error is not None else self._checked(document.key, next(results))
                if not isinstance(made, Exception):
                    yield document.key, made
                elif self.skips:
                    skipped.append(Skipped(document.key, str(made)))
                else:
                    raise made

    def _checked(self, key: str, made: Tokens | Exception | None) -> Tokens | Error | None:
        if made is None or isinstance(made, Error):
            return made
        if isinstance(made, Exception):
            error = self._error(key, str(made), made.field if isinstance(made, BadField) else None)
            error.__cause__ = made.__cause__
            return error
        highest = int(made.ids.max(initial=0))
        return (
            made
            if highest < self.dtype.size
            else self._error(key, f"the token id {highest} does not fit into {self.dtype.name}")
        )

    def _error(self, key: str, why: str, field: str | None = None) -> DataError:
        return self.documents.error(key, field or self.function.field, why)


class _Raw(AtomicFile):
    """A file of numbers."""

    def add(self, content: bytes) -> None:
        self._write(content)
        self.bytes += len(content)


def _batches(documents: Iterator[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.value) if isinstance(document.value, str) else 0
        if len(batch) == _MOST_TEXTS or characters >= _MOST_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def tokens_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.tokens"


def lengths_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.lengths"


def masks_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.masks"


def images_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.images"


def _report_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.json"


def finished(folder: Path, number: int) -> PartReport | None:
    """Returns the report of a part whose files are complete and unchanged; None if it has to be made."""
    try:
        content = json.loads(_report_path(folder, number).read_bytes())
        content["skipped"] = [Skipped(**one) for one in content["skipped"]]
        report = PartReport(**content)
        same = (
            sha256_of(tokens_path(folder, number)) == report.tokens_sha256
            and sha256_of(lengths_path(folder, number)) == report.lengths_sha256
            and (report.masks_sha256 is None or sha256_of(masks_path(folder, number)) == report.masks_sha256)
            and (report.images_sha256 is None or sha256_of(images_path(folder, number)) == report.images_sha256)
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return report if same and report.number == number else None


def no_tokens(shown: str, field: str) -> DataError:
    return DataError(
        f"tokenize: no document has tokens: every text of the field '{field}' is empty [dataset {shown}]", dataset=shown
    )
