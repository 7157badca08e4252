# SPDX-License-Identifier: Apache-2.0
"""Verifies one part: a shard, or some thousand samples of a folder. Its result is one line of a journal."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .. import _engine
from ..data.source_spec import SourceSpec
from ..errors import ConfigError, DataError, StorageError
from ..findings import Finding
from ..machine.storage import local_path
from ..pack.sums import Sum, sha256_of_stored
from .report import finding_as_dict, finding_of, found, found_error
from .samples import Seen, read_all

INDEX_FOLDER, INDEX_SUFFIX = ".feedline", ".feedline-index"  # suffixes of an index next to its shard


@dataclass
class Result:
    """Result of a part. `stamp` changes if the verified data changes."""

    name: str
    stamp: list[int]
    format: str = ""
    total: int = 0  # its samples, including those that cannot be read
    samples: int = 0
    stored_bytes: int = 0
    compared: bool = False  # compared with a manifest's checksum
    labels: dict[str, int] = field(default_factory=dict)
    digests: bytes = b""
    indices: list[int] | None = None  # indices of the samples with digests; None: all, in order
    findings: list[Finding] = field(default_factory=list)
    found: bool = False  # in a journal

    def take(self, seen: Seen, indices: range) -> None:
        self.total += len(indices)
        self.samples, self.stored_bytes, self.labels = seen.samples, seen.stored_bytes, dict(seen.labels)
        self.digests = b"".join(seen.digests)
        self.indices = None if seen.indices == list(indices) else seen.indices
        self.findings += seen.findings

    def is_unreadable(self) -> bool:
        """Returns whether some data could not be read, which may succeed later."""
        return any(finding.code in ("unreadable_shard", "unreadable_sample") for finding in self.findings)

    def line(self) -> dict[str, Any]:
        stored = {name: value for name, value in vars(self).items() if name != "found"}
        return stored | {
            "digests": base64.b64encode(self.digests).decode(),
            "findings": [finding_as_dict(finding) for finding in self.findings],
        }

    @staticmethod
    def of_line(line: dict[str, Any]) -> Result:
        taken = line | {
            "digests": base64.b64decode(line["digests"]),
            "findings": [finding_of(one) for one in line["findings"]],
        }
        return Result(**taken, found=True)

    def index_of(self, digest: int, first: int) -> int:
        """Returns the sample's index in the part, from the index of its digest."""
        return first + digest if self.indices is None else self.indices[digest]


class Work(NamedTuple):
    """Verification settings for parts."""

    spec: SourceSpec  # the whole source
    shown: str  # the source, without secrets of URLs
    cache: dict[str, Any]  # options of open
    decode: bool
    pool: ThreadPoolExecutor

    def open(self, name: str, index: str | None = None) -> _engine.Dataset:
        """Opens one shard as a dataset; `index` is a folder for a new index, to be used instead of the stored index."""
        shard = self.spec._replace(source=name)
        if index is not None:
            shard = shard._replace(index_directory=index)
        # a stored index of another version is rebuilt and is not a finding
        return shard.open(**self.cache, listing_age=0)


class _TemporaryFolderError(StorageError):
    """The folder of a new index cannot be written: not an error of the shard."""


def verify_shard(work: Work, name: bytes, stored: _engine.StoredObject, stamp: list[int], wanted: Sum | None) -> Result:
    """Verifies one shard. Errors that the shard causes are not raised, but returned as findings.

    Raises StorageError if the folder for temporary files cannot be written.
    """
    shown = os.fsdecode(name)
    result = Result(shown, stamp)
    try:
        if wanted is not None:
            _compare(result, stored, wanted)
        inspected = work.spec._replace(source=shown).inspect()
        result.format = inspected.format
        result.findings += findings_of_inspection(inspected)
        if result.format == "numpy":  # opening it already compares everything; rows are not files
            result.total = result.samples = inspected.samples
            result.stored_bytes, result.indices = inspected.bytes, []
        elif all(finding.severity != "error" for finding in result.findings) or inspected.samples:
            _read_shard(work, result)
        stored.check_unchanged()
    except _TemporaryFolderError:
        raise
    except StorageError as error:
        result.findings.append(found_error("unreadable_shard", error, shard=shown))
    except (ConfigError, DataError) as error:
        if all(finding.severity != "error" for finding in result.findings):  # else already reported
            result.findings.append(found_error("does_not_open", error, shard=shown))
    return result


def _compare(result: Result, stored: _engine.StoredObject, wanted: Sum) -> None:
    result.compared = True
    if stored.size != wanted.bytes:
        text = f"{result.name} has {stored.size:,} bytes, but had {wanted.bytes:,} when it was packed"
        result.findings.append(found("checksum_differs", "error", text, shard=result.name))
        return
    sha256 = sha256_of_stored(stored)
    if sha256 != wanted.sha256:
        text = f"{result.name} has the SHA-256 {sha256}, but had {wanted.sha256} when it was packed"
        result.findings.append(found("checksum_differs", "error", text, shard=result.name))


def findings_of_inspection(inspected: _engine.Inspection) -> list[Finding]:
    return [
        found(one.code, one.severity, one.text, shard=one.shard, key=one.key)
        for one in inspected.findings
        if one.severity != "note"  # files that a reader leaves out on purpose
    ]


def _read_shard(work: Work, result: Result) -> None:
    checked = work.open(result.name)
    if result.format in ("tar", "tfrecord", "lmdb"):
        _compare_index(work, result, checked)
    indices = range(len(checked))
    seen = read_all(checked, indices, shard=result.name, decode=work.decode, pool=work.pool)
    result.take(seen, indices)


def _compare_index(work: Work, result: Result, checked: _engine.Dataset) -> None:
    """Compares the index with which `checked` was opened to a new index."""
    shard = Path(local_path(result.name))
    stored = shard.parent / INDEX_FOLDER / (shard.name + INDEX_SUFFIX)
    with _temporary_folder() as folder:
        opened = work.open(result.name, str(folder))
        same = opened.fingerprint == checked.fingerprint
        made = list(folder.rglob("*" + INDEX_SUFFIX))
        if same and len(made) == 1 and not work.spec.index_directory and stored.is_file():
            same = made[0].read_bytes() == _contents(stored)
    if not same:
        text = f"the stored index of {result.name} does not match its contents"
        result.findings.append(found("index_differs", "error", text, shard=result.name))


def _contents(index: Path) -> bytes:
    try:
        return index.read_bytes()
    except OSError as error:
        raise StorageError(
            f"the stored index cannot be read: {error.strerror}", errno=error.errno, shard=str(index)
        ) from None


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(prefix="feedline-verify-", ignore_cleanup_errors=True) as folder:
            try:
                yield Path(folder)
            except StorageError as error:
                if str(error.shard or "").startswith(folder):
                    raise _cannot_write(error) from None
                raise
    except StorageError:
        raise
    except OSError as error:
        raise _cannot_write(error) from None


def _cannot_write(error: OSError) -> _TemporaryFolderError:
    reason = os.strerror(error.errno or errno.EIO)
    return _TemporaryFolderError(
        f"verify: cannot write an index into {tempfile.gettempdir()}: {reason}; set TMPDIR to a folder with enough "
        "space",
        errno=error.errno,
    )


def verify_slice(work: Work, dataset: _engine.Dataset, name: str, indices: range, stamp: list[int]) -> Result:
    """Verifies some samples of a folder."""
    result = Result(name, stamp, dataset.format)
    seen = read_all(dataset, indices, shard="", decode=work.decode, pool=work.pool)
    result.take(seen, indices)
    return result


def inspect_whole(spec: SourceSpec) -> tuple[str, list[Finding]]:
    """Returns the format and the findings of a source that is one folder. Raises an error if the source cannot be
    inspected.
    """
    inspected = spec.inspect()
    return inspected.format, findings_of_inspection(inspected)
