# SPDX-License-Identifier: Apache-2.0
"""Reads and digests every sample of a part in several threads."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .. import _engine
from ..errors import DataError, StorageError
from ..findings import Finding
from .integer_files import IntegerFiles, integer_files_of
from .report import found_error

DIGEST_BYTES = 16
_PER_TASK = 32


@dataclass
class Seen:
    """Results of reading. `digests` and `indices` contain the digest and the index of each readable sample."""

    samples: int = 0
    stored_bytes: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    digests: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.samples += other.samples
        self.stored_bytes += other.stored_bytes
        self.labels += other.labels
        self.digests += other.digests
        self.indices += other.indices
        self.findings += other.findings


def read_all(
    dataset: _engine.Dataset,
    indices: range,
    *,
    shard: str,
    decode: bool,
    pool: ThreadPoolExecutor,
) -> Seen:
    """Reads the samples of `dataset` with these indices."""

    decoded = None
    if decode:
        decoded = dataset.collate("list", [])  # rows of any size
        if any(role == "video" for _, role, *_ in dataset.roles()):
            decoded = decoded.with_operation("frames", [], {"frames": [0, -1]})
    integers = integer_files_of(dataset)

    def read(begin: int) -> Seen:
        seen = Seen()
        for index in indices[begin : begin + _PER_TASK]:
            _read(dataset, decoded, integers, index, shard, seen)
        return seen

    seen = Seen()
    for part in _in_order(pool, read, range(0, len(indices), _PER_TASK)):
        seen.add(part)
    return seen


def _in_order(pool: ThreadPoolExecutor, work: Callable[[int], Seen], tasks: range) -> Iterator[Seen]:
    """Runs the tasks; an interruption cancels those that have not started."""
    futures = [pool.submit(work, begin) for begin in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _read(
    dataset: _engine.Dataset,
    decoded: _engine.Dataset | None,
    integers: IntegerFiles,
    index: int,
    shard: str,
    seen: Seen,
) -> None:
    try:
        _, label, files = dataset.files(index)
    except (DataError, StorageError) as error:
        seen.findings.append(found_error("unreadable_sample", error, shard=shard, key=dataset.key(index)))
        return
    seen.samples += 1
    seen.stored_bytes += sum(len(content) for _, content in files)
    word = label_word(dataset.classes, label, files, integers)
    if word is not None:
        seen.labels[word] += 1
    seen.digests.append(digest(files, integers))
    seen.indices.append(index)
    if decoded is not None:
        try:
            decoded.sample(index, 0, 0)
        except (DataError, StorageError) as error:
            seen.findings.append(found_error("undecodable_sample", error, shard=shard, key=dataset.key(index)))


def digest(files: list[tuple[bytes, bytes]], integers: IntegerFiles) -> bytes:
    """Returns the digest of a sample's files without its label and ID, or of all files if all of them are integers."""
    content_files = [file for file in files if not integers.is_label_or_id(file[0])]
    if all(integers.is_integer(extension) for extension, _ in content_files):
        content_files = files
    made = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for extension, content in content_files:
        made.update(b"%b %d\n" % (extension.lower(), len(content)))
        made.update(content)
    return made.digest()


def label_word(
    classes: list[str], label: int | None, files: list[tuple[bytes, bytes]], integers: IntegerFiles
) -> str | None:
    """Returns the name of a sample's class, or its number if the class has no name; None if the sample has no label."""
    if label is None:
        texts = [content for extension, content in files if extension.lower() in integers.labels]
        if not texts:
            return None
        try:
            label = int(texts[0])
        except ValueError:
            return None  # inspect reports it
    return classes[label] if 0 <= label < len(classes) else str(label)
