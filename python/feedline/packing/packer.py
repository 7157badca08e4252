# SPDX-License-Identifier: Apache-2.0
"""Packing: samples in their order, through the transcoders, into shards."""

from __future__ import annotations

import fcntl
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .. import _engine
from ..data import arguments
from ..data.sources import warn_of_merged_folders
from ..errors import ConfigError, DataError, StorageError
from ..machine import limits as host_limits
from ..machine.storage import local_path
from .manifest import NAME, Manifest, Shard, Skipped
from .names import CLASS_NAMES_MEMBER, FolderKeys, class_names_text, text
from .shard_file import UNFINISHED, ShardFile, member_bytes
from .transcoders import Transcoder

_DEFAULT_SHARD_BYTES = 1_000_000_000
_SMALLEST_BARE_BYTES = 1_000_000  # a smaller number without its unit, as text, was hardly meant in bytes
_ORDER_CHUNK = 1 << 16  # positions of the order that are asked for at a time
_AHEAD_PER_THREAD = 4  # samples that are read before the shard's writer wants them


class Report(NamedTuple):
    """What stands in the output folder. ``bytes_before`` and ``bytes_after`` are of the samples' own files."""

    output: str
    samples: int
    shards: int
    shards_found: int  # of those, the ones that an earlier call had finished
    bytes: int
    files: int
    rewritten: int
    bytes_before: int
    bytes_after: int
    skipped: list[Skipped]
    pattern: str  # for feedline.open and webdataset


@dataclass(frozen=True)
class _Packed:
    """A sample as its members; or why there is none."""

    position: int
    key: str
    members: list[tuple[str, bytes]]
    files: int = 0
    rewritten: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    error: Exception | None = None

    def bytes(self) -> int:
        return sum(member_bytes(name, len(content)) for name, content in self.members)


class _Source:
    """The samples of a dataset, in the order in which they are packed. Used by several threads at once."""

    def __init__(self, dataset: _engine.Dataset, transcoders: Sequence[Transcoder], shuffle: bool, seed: int) -> None:
        self._dataset = dataset
        self._transcoders = transcoders
        self._folder_keys = FolderKeys(dataset) if dataset.format == "folder" else None
        self._shuffle, self._seed = shuffle, seed

    def __len__(self) -> int:
        return len(self._dataset)

    def order(self, first: int) -> Iterator[tuple[int, int]]:
        """(position, index in the dataset) from position ``first`` on."""
        for begin in range(first, len(self), _ORDER_CHUNK):
            count = min(_ORDER_CHUNK, len(self) - begin)
            indices = _engine.sample_order(
                samples=len(self),
                shard_ends=[],
                shuffle=self._shuffle,
                shard_window=0,
                seed=self._seed,
                epoch=0,
                begin=begin,
                count=count,
            )
            yield from zip(range(begin, begin + count), indices.tolist(), strict=True)

    def read(self, position: int, index: int) -> _Packed:
        """Everything about one sample that takes time. Errors of the sample come back in it."""
        try:
            return self._read(position, index)
        except (DataError, StorageError) as error:
            return _Packed(position, self._dataset.key(index), [], error=error)

    def _read(self, position: int, index: int) -> _Packed:
        stored_key, label, files = self._dataset.files(index)
        key = text(stored_key)
        if self._folder_keys is not None:
            key = self._folder_keys.key(key, text(files[0][0]))
        packed = _Packed(position, key, [])
        for stored_extension, content in files:
            extension, kept = text(stored_extension).lower(), content
            try:
                for transcoder in self._transcoders:
                    extension, kept = transcoder(extension, kept)
            except DataError as error:
                raise DataError(f"{error} (sample {key}.{extension})", key=key, stage=error.stage) from None
            packed.members.append((f"{key}.{extension}", kept))
            packed = replace(
                packed,
                files=packed.files + 1,
                rewritten=packed.rewritten + (kept != content),
                bytes_before=packed.bytes_before + len(content),
                bytes_after=packed.bytes_after + len(kept),
            )
        if label is not None:
            packed.members.append((f"{key}.cls", str(label).encode()))
        return packed


def pack(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    shard_bytes: int | str | None = None,
    samples_per_shard: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    transcoders: Sequence[Transcoder] = (),
    on_error: Literal["raise", "skip"] = "raise",
    num_workers: int | Literal["auto"] = "auto",
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Writes a dataset as tar shards in WebDataset's layout.

    The shards' bytes depend on the arguments and the samples alone. A call that was interrupted, even by a power cut,
    is continued by another one with the same arguments; ``on_error`` and ``num_workers`` may differ.

    Args:
        source: what :func:`feedline.open` opens: a folder, or tars. Of class folders each sample becomes the image and
            ``.cls``, its class as a number, and each shard has the classes' names. Of a folder whose files are found by
            patterns each file of a sample is kept, called ``KEY.FIELD.EXTENSION``: ``masks/{key}.png`` becomes
            ``0004.masks.png``. Of tars all members of a sample are kept, and the names that such shards have.
        output: a folder, made if it is not there, in one that is. Besides the shards and their indexes it gets
            ``feedline-pack.json``.
        format: ``"folder"`` or ``"tar"``; by default what the source is.
        fields: as of :func:`feedline.open`: the patterns of a folder; of tars that are not images and labels any field
            that their samples have.
        shard_bytes: the size that no shard exceeds, but one with a single sample; also as text, such as ``"500 MB"``,
            which needs its unit below a million. 1 GB by default.
        samples_per_shard: a number of samples for each shard instead.
        shuffle: in a random order that depends on ``seed`` alone.
        transcoders: what happens to each file, one after the other.
        on_error: what a sample that cannot be read, or is found damaged, means. ``"skip"`` leaves it out and lists it.
        num_workers: threads; ``"auto"`` takes one per usable CPU.
        jobs: another name of ``num_workers``.
        progress: called as ``progress(done, total)`` in samples.

    Raises:
        ConfigError: other arguments than those that packing was begun with, or a folder that holds something else.
        DataError: a damaged sample, two samples with one key, or a finished shard that has changed since.
        StorageError, OSError: a file cannot be read, or the output cannot be written, as when the disk is full.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f'pack: on_error must be "raise" or "skip", not {on_error!r}')
    limits = _limits(shard_bytes, samples_per_shard)
    arguments.flag("pack", "shuffle", shuffle)
    arguments.integer("pack", "seed", seed, low=0, high=2**64 - 1)
    if jobs is not None:
        num_workers = arguments.integer("pack", "jobs", jobs, low=1)
    elif num_workers != "auto":
        arguments.integer("pack", "num_workers", num_workers, low=1)
    arguments.output_path("pack", "output", output)
    dataset = _engine.open(os.fspath(source), format or "", arguments.field_specs("pack", fields), "")
    warn_of_merged_folders("pack", dataset)
    folder = Path(output)
    root = Path(local_path(os.fspath(source)))
    if root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"pack: {folder} lies in the source, of which it would become a part; choose another folder")
    wanted: dict[str, Any] = {
        "fingerprint": f"{dataset.fingerprint:016x}",
        "samples": len(dataset),
        "shuffle": shuffle,
        "seed": seed if shuffle else None,
        "transcoders": [transcoder.description for transcoder in transcoders],
        **limits,
    }
    with _alone_in(folder):
        manifest = Manifest.load(folder)
        if manifest is None:
            manifest = Manifest(wanted, os.fspath(source), list(dataset.classes))
        manifest.expect(wanted, folder)
        manifest.verify(folder)
        for leftover in folder.glob("*" + UNFINISHED):
            leftover.unlink()
        found = len(manifest.shards)
        if not manifest.complete:
            packed_source = _Source(dataset, transcoders, shuffle, seed)
            threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
            _write_shards(packed_source, folder, manifest, on_error, threads, progress or (lambda done, total: None))
    return _report(manifest, folder, found)


def _limits(shard_bytes: int | str | None, samples_per_shard: int | None) -> dict[str, int | None]:
    if shard_bytes is not None and samples_per_shard is not None:
        raise ConfigError("pack: give shard_bytes or samples_per_shard, not both")
    if samples_per_shard is not None:
        return {
            "shard_bytes": None,
            "samples_per_shard": arguments.integer("pack", "samples_per_shard", samples_per_shard, 1),
        }
    size = _DEFAULT_SHARD_BYTES if shard_bytes is None else arguments.byte_count("pack", "shard_bytes", shard_bytes)
    if isinstance(shard_bytes, str) and shard_bytes.strip().isdecimal() and size < _SMALLEST_BARE_BYTES:
        raise ConfigError(
            f'pack: a shard size of "{size}" is {size} bytes, a shard for nearly every sample; write the unit: '
            f'"{size}G" or "{size}M", or "{size}B" if bytes are meant'
        )
    return {"shard_bytes": size, "samples_per_shard": None}


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Makes the folder, and keeps other packing processes out of it; a process that dies lets go of it."""
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"pack: another process packs into {folder} at this moment") from None
    else:
        if not (folder / NAME).exists() and not all(path.name == NAME + UNFINISHED for path in folder.iterdir()):
            raise ConfigError(f"pack: {folder} is not empty, and nothing was packed into it; choose another folder")
        yield
    finally:
        os.close(handle)


def _write_shards(
    source: _Source,
    folder: Path,
    manifest: Manifest,
    on_error: str,
    threads: int,
    progress: Callable[[int, int], None],
) -> None:
    writer = _Writer(folder, manifest)
    first = manifest.end()
    progress(first, len(source))
    try:
        manifest.save(folder)
        for packed in _in_order(source, first, threads):
            if packed.error is not None:
                if on_error == "raise":
                    raise packed.error
                writer.skip(packed)
            else:
                writer.add(packed)
            progress(packed.position + 1, len(source))
        writer.finish(len(source))
    except StorageError:
        raise
    except OSError as error:  # of the output: reading raises StorageError
        raise StorageError(
            f"pack: cannot write into {folder}: {error.strerror}. The finished shards are kept: the same call goes on "
            "behind them"
        ) from error
    finally:
        writer.abandon()


def _in_order(source: _Source, first: int, threads: int) -> Iterator[_Packed]:
    """Samples from position ``first`` on, read ahead by several threads."""
    waiting: deque[Future[_Packed]] = deque()
    with ThreadPoolExecutor(threads, "feedline-pack") as pool:
        try:
            for position, index in source.order(first):
                waiting.append(pool.submit(source.read, position, index))
                if len(waiting) > threads * _AHEAD_PER_THREAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Writer:
    """Fills one shard after the other."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._manifest = manifest
        self._file: ShardFile | None = None
        self._keys: set[str] = set()
        self._extension = ""  # of a member of the shard
        self._now = Shard("", 0, 0, 0, 0, "", 0, 0, 0, 0)
        self._skipped: list[Skipped] = []  # since the last shard, which the manifest does not have yet

    def skip(self, packed: _Packed) -> None:
        self._skipped.append(Skipped(packed.position, packed.key, str(packed.error)))

    def add(self, packed: _Packed) -> None:
        limit = self._manifest.arguments["shard_bytes"]
        if self._file is not None and limit is not None and self._file.bytes + packed.bytes() > limit:
            self._close_shard(packed.position)
        if self._file is None:
            first = self._manifest.end()
            self._file = ShardFile(self._folder / f"{len(self._manifest.shards):06d}.tar")
            self._now = Shard(self._file.path.name, first, first, 0, 0, "", 0, 0, 0, 0)
            self._keys.clear()
            if self._manifest.classes:
                self._file.add(CLASS_NAMES_MEMBER, class_names_text(self._manifest.classes))
        if packed.key in self._keys:
            raise DataError(
                f"pack: two samples with the key '{packed.key}' would stand in one shard; give them different keys, or "
                "pack the tars they come from into folders of their own",
                key=packed.key,
            )
        self._keys.add(packed.key)
        self._extension = packed.members[0][0].removeprefix(f"{packed.key}.")
        for name, content in packed.members:
            self._file.add(name, content)
        self._now = replace(
            self._now,
            samples=self._now.samples + 1,
            files=self._now.files + packed.files,
            rewritten=self._now.rewritten + packed.rewritten,
            bytes_before=self._now.bytes_before + packed.bytes_before,
            bytes_after=self._now.bytes_after + packed.bytes_after,
        )
        if self._now.samples == self._manifest.arguments["samples_per_shard"]:
            self._close_shard(packed.position + 1)

    def finish(self, end: int) -> None:
        if self._file is not None:
            self._close_shard(end)
        self._manifest.skipped += self._skipped
        self._manifest.complete = True
        self._manifest.save(self._folder)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.discard()
            self._file = None

    def _close_shard(self, end: int) -> None:
        file = self._file
        assert file is not None
        digest = file.commit()
        self._file = None
        self._manifest.shards.append(replace(self._now, end=end, bytes=file.bytes, sha256=digest))
        self._manifest.skipped += self._skipped
        self._skipped = []
        self._manifest.save(self._folder)
        _engine.open(str(file.path), "tar", [f"{self._extension}:bytes"], "")  # which leaves an index beside the shard


def _report(manifest: Manifest, folder: Path, found: int) -> Report:
    def total(name: str) -> int:
        return sum(getattr(shard, name) for shard in manifest.shards)

    last = len(manifest.shards) - 1
    name = "000000.tar" if last <= 0 else f"{{000000..{last:06d}}}.tar"
    return Report(
        output=str(folder),
        samples=total("samples"),
        shards=len(manifest.shards),
        shards_found=found,
        bytes=total("bytes"),
        files=total("files"),
        rewritten=total("rewritten"),
        bytes_before=total("bytes_before"),
        bytes_after=total("bytes_after"),
        skipped=list(manifest.skipped),
        pattern=str(folder / name),
    )
