# SPDX-License-Identifier: Apache-2.0
"""A part of the output: the tokens and lengths of its documents, and a description, which marks it as finished."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data.map.mapping import BadField
from ..data.text.libraries import Tokenizer
from ..data.text.tokenizing import checked, raised
from ..errors import DataError
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
    skipped: list[Skipped]


@dataclass(frozen=True)
class Job:
    """All that a worker needs to make a part. Picklable."""

    documents: Documents
    field: str
    tokenizer: Tokenizer
    dtype: TokenType
    end_id: int | None
    skips: bool  # whether bad documents are left out instead of raised
    folder: str

    def make(self, part: Part) -> PartReport:
        """Writes the files of a part. Raises DataError for a bad document if it is not skipped."""
        folder = Path(self.folder)
        tokens = _Raw(tokens_path(folder, part.number))
        lengths = _Raw(lengths_path(folder, part.number))
        documents = total = empty = 0
        skipped: list[Skipped] = []
        try:
            for key, ids in self._tokens(part, skipped):
                if ids is None:
                    empty += 1
                    continue
                if len(ids) > LONGEST:
                    raise self.documents.error(key, self.field, f"{len(ids):,} tokens exceed the format's limit")
                tokens.add(ids.astype(f"<{np.dtype(self.dtype.name).str[1:]}").tobytes())
                lengths.add(np.int32(len(ids)).astype("<i4").tobytes())
                documents, total = documents + 1, total + len(ids)
            report = PartReport(part.number, documents, total, empty, tokens.commit(), lengths.commit(), skipped)
        except BaseException:
            tokens.discard()
            lengths.discard()
            raise
        write_durably(_report_path(folder, part.number), json.dumps(dataclasses.asdict(report)).encode())
        return report

    def _tokens(self, part: Part, skipped: list[Skipped]) -> Iterator[tuple[str, Any]]:
        """Yields (key, ids), or (key, None) for a document without tokens, of all documents that are not skipped."""
        for batch in _batches(self.documents.read(part)):
            for document, ids in self._encoded(batch):
                if isinstance(ids, Exception):
                    if not self.skips:
                        raise ids
                    skipped.append(Skipped(document.key, str(ids)))
                else:
                    yield document.key, ids

    def _encoded(self, batch: Sequence[Document]) -> Iterator[tuple[Document, Any]]:
        texts = [document.text for document in batch if document.error is None]
        try:
            made: list[Any] = self.tokenizer.encode(texts) if texts else []
        except Exception:
            made = [self._alone(text) for text in texts]  # finds the text that it refuses
        results = iter(made)
        for document in batch:
            yield document, document.error if document.error is not None else self._checked(document, next(results))

    def _alone(self, text: str) -> Any:
        try:
            return self.tokenizer.encode([text])[0]
        except Exception as error:
            return error

    def _checked(self, document: Document, made: Any) -> Any:
        if isinstance(made, Exception):
            why = f"{self.tokenizer.library} raised {raised(made)}"
            return self.documents.error(document.key, self.field, why)
        if len(made) == 0:
            return None
        try:
            ids = checked(self.tokenizer, self.field, made, self.end_id)
        except BadField as error:
            return self.documents.error(document.key, self.field, str(error))
        if int(ids.max()) >= self.dtype.size:
            why = f"the token id {int(ids.max())} does not fit into {self.dtype.name}"
            return self.documents.error(document.key, self.field, why)
        return ids


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
        characters += len(document.text)
        if len(batch) == _MOST_TEXTS or characters >= _MOST_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def tokens_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.tokens"


def lengths_path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.lengths"


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
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return report if same and report.number == number else None


def no_tokens(shown: str, field: str) -> DataError:
    return DataError(
        f"tokenize: no document has tokens: every text of the field '{field}' is empty [dataset {shown}]", dataset=shown
    )
