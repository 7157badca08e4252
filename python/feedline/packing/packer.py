# SPDX-License-Identifier: Apache-2.0
"""Packing: samples in their order, through the transcoders, into shards."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .. import _engine
from ..data import arguments
from ..data.sources import annotations_of, warn_of_merged_folders, with_settings
from ..errors import ConfigError, DataError, StorageError
from ..machine import limits as host_limits
from ..machine.storage import local_path
from .layouts import Layout, MdsLayout, ShardWriter, TarLayout, pattern_of
from .manifest import NAME, UNFINISHED_NAME, Manifest, Part, Shard, Skipped, part_in, part_name
from .mds_columns import Columns, Content
from .mds_shard import DEFAULT_SHARD_BYTES, MdsSettings
from .names import text
from .places import Place, place_of
from .plan import ends_by_bytes, ends_by_samples, in_threads
from .transcoders import Check, Transcoder

_DEFAULT_SHARD_BYTES = {"tar": 1_000_000_000, "mds": DEFAULT_SHARD_BYTES}
_SMALLEST_BARE_BYTES = 1_000_000  # a smaller number without its unit, as text, was hardly meant in bytes
_ORDER_CHUNK = 1 << 16  # positions of the order that are asked for at a time
_AHEAD_PER_THREAD = 4  # samples that are read before the shard's writer wants them
_MOST_UNREADABLE = 1000  # samples that are tried before the columns of a dataset are given up


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
    """What a shard takes of a sample; or why there is none."""

    position: int
    key: str
    content: Content
    files: int = 0
    rewritten: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    error: Exception | None = None


class _Source:
    """The samples of a dataset, in the order in which they are packed. Used by several threads at once."""

    def __init__(
        self, dataset: _engine.Dataset, layout: Layout, transcoders: Sequence[Transcoder], shuffle: bool, seed: int
    ) -> None:
        self.dataset = self._dataset = dataset
        self.layout = layout
        self.keeps_sizes = all(isinstance(transcoder, Check) for transcoder in transcoders)
        self._transcoders = transcoders
        self._shuffle, self._seed = shuffle, seed

    def __len__(self) -> int:
        return len(self._dataset)

    def order(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(position, index in the dataset) from position ``first`` to before ``end``."""
        for begin in range(first, end, _ORDER_CHUNK):
            count = min(_ORDER_CHUNK, end - begin)
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
        key = self.layout.key(stored_key, files[0][0])
        kept = _transcoded(key, files, self._transcoders)
        return _Packed(
            position,
            key,
            self.layout.content(key, label, kept),
            files=len(files),
            rewritten=sum(content != stored for (_, content), (_, stored) in zip(kept, files, strict=True)),
            bytes_before=sum(len(stored) for _, stored in files),
            bytes_after=sum(len(content) for _, content in kept),
        )

    def planned_bytes(self, index: int) -> int:
        """What the sample takes of a shard, as it is stored."""
        stored_key, label, files = self._dataset.file_sizes(index)
        key = self.layout.key(stored_key, files[0][0])
        return self.layout.planned(key, label, [(text(extension).lower(), size) for extension, size in files])


def _transcoded(key: str, files: Sequence[tuple[bytes, bytes]], transcoders: Sequence[Transcoder]) -> Content:
    """The files of a sample, with their extensions, behind all transcoders."""
    kept = []
    for stored_extension, content in files:
        extension = text(stored_extension).lower()
        try:
            for transcoder in transcoders:
                extension, content = transcoder(extension, content)
        except DataError as error:
            raise DataError(f"{error} (sample {key}.{extension})", key=key, stage=error.stage) from None
        kept.append((extension, content))
    return kept


def _columns_of(dataset: _engine.Dataset, transcoders: Sequence[Transcoder], with_key: bool) -> Columns:
    """Those of the first sample that can be read. Raises what it raises where none can."""
    first: Exception | None = None
    for index in range(min(len(dataset), _MOST_UNREADABLE)):
        try:
            stored_key, label, files = dataset.files(index)
            return Columns.of_sample(label, _transcoded(text(stored_key), files, transcoders), with_key)
        except (DataError, StorageError) as error:
            first = first or error
    assert first is not None
    raise first


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
    to: Literal["tar", "mds"] = "tar",
    compression: str | None = None,
    hashes: Sequence[str] | None = None,
    keep_keys: bool = False,
    jobs: int | None = None,
    shard_range: tuple[int, int] | None = None,
    spool: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    crowd: str | None = None,
) -> Report:
    """Writes a dataset as tar shards in WebDataset's layout, or as MDS.

    The shards' bytes depend on the arguments and the samples alone. A call that was interrupted, even by a power cut,
    is continued by another one with the same arguments; ``on_error`` and ``num_workers`` may differ.

    Args:
        source: what :func:`feedline.open` opens: a folder, or tars. Of class folders each sample becomes the image and
            ``.cls``, its class as a number, and each shard has the classes' names. Of a folder whose files are found by
            patterns each file of a sample is kept, called ``KEY.FIELD.EXTENSION``: ``masks/{key}.png`` becomes
            ``0004.masks.png``. Of tars all members of a sample are kept, and the names that such shards have.
        output: a folder, made if it is not there, in one that is; or ``s3://bucket/prefix``, ``gs://bucket/prefix``.
            Besides the shards and their indexes it gets ``feedline-pack.json``; of a bucket last of all.
        format: as in :func:`feedline.open`, but ``"numpy"`` and ``"pixels"``; by default what the source is.
        fields: as of :func:`feedline.open`: the patterns of a folder; of tars that are not images and labels any field
            that their samples have.
        shard_bytes: the size that no shard exceeds, but one with a single sample; also as text, such as ``"500 MB"``,
            which needs its unit below a million. 1 GB by default; of MDS 64 MiB, before compression.
        samples_per_shard: a number of samples for each shard instead.
        shuffle: in a random order that depends on ``seed`` alone.
        transcoders: what happens to each file, one after the other.
        on_error: what a sample that cannot be read, or is found damaged, means. ``"skip"`` leaves it out and lists it.
        num_workers: threads; ``"auto"`` takes one per usable CPU.
        to: ``"tar"``, or ``"mds"``: MosaicML streaming's dataset of version 2. The first sample says which columns all
            have; one with others is an error of that sample.
        compression: of MDS: ``"zstd"``, ``"gz"`` or ``"bz2"``, with a level as in ``"zstd:7"`` or without one.
        hashes: of MDS: checksums of shards in the index, by the names of hashlib and xxhash; ``["sha256"]`` by default.
        keep_keys: of MDS: a column ``__key__`` with the samples' keys, which MDS has no place for.
        jobs: another name of ``num_workers``.
        shard_range: ``(a, b)``: only the shards a to b-1 of those that :func:`shard_count` counts, for one of many
            workers; :func:`merge_index` makes one dataset of all ranges.
        spool: for a bucket: a local folder where two shards at a time wait; by default that for temporary files.
        progress: called as ``progress(done, total)`` in samples.
        images, split, crowd: of annotated images, as of :func:`feedline.open`. Each number of the fields becomes a
            ``.npy`` member, of MDS a column; masks that are drawn of outlines cannot be packed.

    Raises:
        ConfigError: other arguments than those that packing was begun with, or a folder that holds something else.
        DataError: a damaged sample, two samples with one key, or a finished shard that has changed since.
        StorageError, OSError: a file cannot be read, or the output cannot be written, as when the disk is full, the
            bucket is not there or the keys may not write to it.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f'pack: on_error must be "raise" or "skip", not {on_error!r}')
    limits, settings = _wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys)
    arguments.flag("pack", "shuffle", shuffle)
    arguments.integer("pack", "seed", seed, low=0, high=2**64 - 1)
    if jobs is not None:
        num_workers = arguments.integer("pack", "jobs", jobs, low=1)
    elif num_workers != "auto":
        arguments.integer("pack", "num_workers", num_workers, low=1)
    place = place_of(arguments.output_path("pack", "output", output, urls=True), spool)
    if place.is_remote:
        _check_is_ours(place)  # before the source is opened, which may take long
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    named = with_settings(format, annotations_of("pack", images, split, crowd))
    packed_source, wanted = _opened(source, named, fields, limits, shuffle, seed, transcoders, settings, keep_keys)
    dataset = packed_source.dataset
    folder = Path(place.shown)
    root = Path(local_path(os.fspath(source)))
    if not place.is_remote and root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"pack: {folder} lies in the source, of which it would become a part; choose another folder")
    work = _Work(0, 0, len(dataset), None, None)
    if shard_range is not None:
        work = _work_of(packed_source, wanted, shard_range, threads)
    own = (UNFINISHED_NAME if place.is_remote else NAME) if work.part is None else part_name(*shard_range or ())
    with place.opened(own) as shards:
        whole = _check_is_ours(place)
        if whole is not None:
            whole.expect(wanted, place.shown)
        if whole is not None and (whole.complete or work.part is not None):
            return _of_whole(whole, place, work)
        _check_parts(place, own, work.part)
        manifest = Manifest.load(place, own)
        was_begun = manifest is not None
        if manifest is None:
            shown = dataset.source if "://" in os.fspath(source) else os.fspath(source)  # URLs without their secrets
            manifest = Manifest(wanted, shown, list(dataset.classes), part=work.part)
        manifest.expect(wanted, place.shown)
        place.verify(manifest.shards, manifest.marks)
        done = len(manifest.shards)
        if was_begun:  # of the two that may have been under way
            place.clear([packed_source.layout.shard_name(work.number + done + ahead) for ahead in (0, 1)])
        if not manifest.complete:
            tell = progress or (lambda done, total: None)
            _write_shards(packed_source, place, shards, own, manifest, work, on_error, threads, tell)
    return _report(manifest, place, done)


def shard_count(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    shard_bytes: int | str | None = None,
    samples_per_shard: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    transcoders: Sequence[Transcoder] = (),
    num_workers: int | Literal["auto"] = "auto",
    to: Literal["tar", "mds"] = "tar",
    compression: str | None = None,
    hashes: Sequence[str] | None = None,
    keep_keys: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    crowd: str | None = None,
) -> int:
    """How many shards :func:`pack` would write, for ``shard_range``. Looks at sizes alone, and reads no sample.

    Raises ConfigError where the sizes are only known once the samples are coded: with ``shard_bytes`` and restart
    markers, or arrays in MDS.
    """
    limits, settings = _wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys)
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    named = with_settings(format, annotations_of("pack", images, split, crowd))
    packed_source, wanted = _opened(source, named, fields, limits, shuffle, seed, transcoders, settings, keep_keys)
    return len(_ends(packed_source, wanted, threads))


@dataclass(frozen=True)
class _Work:
    """What a call packs: from ``number``, the first shard, and ``first``, its first position, to before ``end``."""

    number: int
    first: int
    end: int
    ends: list[int] | None  # of each shard, where they are planned
    part: Part | None


def _opened(
    source: str | os.PathLike[str],
    format: str | None,
    fields: str | Sequence[str] | None,
    limits: dict[str, int | None],
    shuffle: bool,
    seed: int,
    transcoders: Sequence[Transcoder],
    settings: MdsSettings | None,
    with_key: bool,
) -> tuple[_Source, dict[str, Any]]:
    dataset = _engine.open(os.fspath(source), format or "", arguments.field_specs("pack", fields), "", listing_age_s=0)
    warn_of_merged_folders("pack", dataset, callers=2)
    layout: Layout = TarLayout(dataset)
    if settings is not None:
        layout = MdsLayout(_columns_of(dataset, transcoders, with_key), settings)
    wanted: dict[str, Any] = {
        "fingerprint": f"{dataset.fingerprint:016x}",
        "samples": len(dataset),
        "shuffle": shuffle,
        "seed": seed if shuffle else None,
        "transcoders": [transcoder.description for transcoder in transcoders],
        **limits,
        **layout.arguments,
    }
    return _Source(dataset, layout, transcoders, shuffle, seed), wanted


def _ends(source: _Source, wanted: dict[str, Any], threads: int) -> list[int]:
    if wanted["samples_per_shard"] is not None:
        return ends_by_samples(len(source), wanted["samples_per_shard"])
    if not source.keeps_sizes:
        raise ConfigError(
            "pack: a range of shards by size takes sizes that are known before, and restart markers change them; give "
            "samples_per_shard (--samples-per-shard)"
        )
    indices = (index for _, index in source.order(0, len(source)))
    sizes = in_threads(source.planned_bytes, indices, threads)
    return ends_by_bytes(sizes, wanted["shard_bytes"], source.layout.front())


def _work_of(source: _Source, wanted: dict[str, Any], shard_range: tuple[int, int], threads: int) -> _Work:
    first, end = shard_range
    ends = _ends(source, wanted, threads)
    if not 0 <= first < end or first >= len(ends):
        raise ConfigError(
            f"pack: shard_range {first}:{end} has none of the {len(ends)} shards of {wanted['samples']:,} samples; "
            f"ranges go from 0:1 to {len(ends) - 1}:{len(ends)}"
        )
    begin = ends[first - 1] if first else 0
    last = min(end, len(ends))  # the last worker's share may be the smaller one
    return _Work(first, begin, ends[last - 1], ends[first:last], Part(first, end, len(ends)))


def _check_is_ours(place: Place) -> Manifest | None:
    """The whole dataset's manifest, if there is one. Raises ConfigError where something else lies there."""
    names = place.names()
    if NAME in names:
        return Manifest.load(place, NAME)
    manifests = [name for name in names if name == UNFINISHED_NAME or part_in(name)]
    if not manifests and any(not name.startswith("feedline-pack.") for name in names):
        raise ConfigError(f"pack: {place.shown} is not empty, and nothing was packed into it; choose another folder")
    return None


def _check_parts(place: Place, own: str, part: Part | None) -> None:
    """Ranges do not overlap, and stand beside no packing of the whole."""
    names = place.names()
    others = {name: found for name in names if name != own and (found := part_in(name))}
    if part is None and others:
        raise ConfigError(
            f"pack: {place.shown} was begun in ranges of shards ({min(others)}); go on with --shard-range, or put them "
            "together with feedline merge-index"
        )
    if part is not None and UNFINISHED_NAME in names:
        raise ConfigError(f"pack: {place.shown} was begun as a whole; go on without --shard-range")
    for name, (first, end) in sorted(others.items()):
        if part is not None and first < part.end and part.first < end:
            raise ConfigError(
                f"pack: the shards {part.first}:{part.end} and {first}:{end}, of which {place.shown}/{name} tells, "
                "overlap; give each worker the same range again, or ranges that touch"
            )


def _of_whole(whole: Manifest, place: Place, work: _Work) -> Report:
    """What is there, and needs nothing any more."""
    if not whole.complete:
        raise ConfigError(f"pack: {place.shown} was begun as a whole; go on without --shard-range")
    place.verify(whole.shards, {})
    if work.part is not None:
        whole = replace(whole, shards=whole.shards[work.part.first : work.part.end])
    return _report(whole, place, len(whole.shards))


def _wanted_shards(
    to: str,
    shard_bytes: int | str | None,
    samples_per_shard: int | None,
    compression: str | None,
    hashes: Sequence[str] | None,
    keep_keys: bool,
) -> tuple[dict[str, int | None], MdsSettings | None]:
    """How large shards get, and of MDS how they are stored."""
    if to not in _DEFAULT_SHARD_BYTES:
        raise ConfigError(f'pack: to must be "tar" or "mds", not {to!r}')
    limits = _limits(shard_bytes, samples_per_shard, _DEFAULT_SHARD_BYTES[to])
    arguments.flag("pack", "keep_keys", keep_keys)
    if to == "mds":
        sums = ("sha256",) if hashes is None else hashes
        return limits, MdsSettings.checked(compression, sums, limits["shard_bytes"])
    if compression is not None or hashes is not None or keep_keys:
        raise ConfigError('pack: compression, hashes and keep_keys are of MDS: give to="mds" (--to mds)')
    return limits, None


def _limits(shard_bytes: int | str | None, samples_per_shard: int | None, default: int) -> dict[str, int | None]:
    if shard_bytes is not None and samples_per_shard is not None:
        raise ConfigError("pack: give shard_bytes or samples_per_shard, not both")
    if samples_per_shard is not None:
        return {
            "shard_bytes": None,
            "samples_per_shard": arguments.integer("pack", "samples_per_shard", samples_per_shard, 1),
        }
    size = default if shard_bytes is None else arguments.byte_count("pack", "shard_bytes", shard_bytes)
    if isinstance(shard_bytes, str) and shard_bytes.strip().isdecimal() and size < _SMALLEST_BARE_BYTES:
        raise ConfigError(
            f'pack: a shard size of "{size}" is {size} bytes, a shard for nearly every sample; write the unit: '
            f'"{size}G" or "{size}M", or "{size}B" if bytes are meant'
        )
    return {"shard_bytes": size, "samples_per_shard": None}


def _write_shards(
    source: _Source,
    place: Place,
    folder: Path,
    own: str,
    manifest: Manifest,
    work: _Work,
    on_error: str,
    threads: int,
    progress: Callable[[int, int], None],
) -> None:
    writer = _Writer(source.layout, place, folder, own, manifest, work)
    first, total = manifest.end(work.first), work.end - work.first
    progress(first - work.first, total)
    try:
        manifest.save(place, own)
        for packed in _in_order(source, first, work.end, threads):
            if packed.error is not None:
                if on_error == "raise":
                    raise packed.error
                writer.skip(packed)
            else:
                writer.add(packed)
            progress(packed.position + 1 - work.first, total)
        writer.finish()
    except StorageError:
        raise
    except OSError as error:  # of the output: reading raises StorageError
        raise StorageError(
            f"pack: cannot write into {folder}: {error.strerror}. The finished shards are kept: the same call goes on "
            "behind them"
        ) from error
    finally:
        writer.abandon()


def _in_order(source: _Source, first: int, end: int, threads: int) -> Iterator[_Packed]:
    """Samples from position ``first`` on, read ahead by several threads."""
    waiting: deque[Future[_Packed]] = deque()
    with ThreadPoolExecutor(threads, "feedline-pack") as pool:
        try:
            for position, index in source.order(first, end):
                waiting.append(pool.submit(source.read, position, index))
                if len(waiting) > threads * _AHEAD_PER_THREAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Writer:
    """Fills one shard after the other. One is in the manifest once it is where it stays, and so are those before it."""

    def __init__(self, layout: Layout, place: Place, folder: Path, own: str, manifest: Manifest, work: _Work) -> None:
        self._layout, self._place, self._folder, self._own = layout, place, folder, own
        self._manifest = manifest
        self._work = work
        self._number = work.number + len(manifest.shards)
        self._first = manifest.end(work.first)
        self._file: ShardWriter | None = None
        self._keys: set[str] = set()
        self._last: Content = []  # of the shard
        self._now = Shard("", 0, 0, 0, 0, "", 0, 0, 0, 0)
        self._skipped: list[Skipped] = []  # since the last shard, which the manifest does not have yet
        self._sent: tuple[Future[str], Shard, list[Skipped]] | None = None

    def skip(self, packed: _Packed) -> None:
        self._skipped.append(Skipped(packed.position, packed.key, str(packed.error)))
        self._close_where_planned(packed.position + 1)

    def add(self, packed: _Packed) -> None:
        limit = self._manifest.arguments["shard_bytes"] if self._work.ends is None else None
        taken = self._layout.taken(packed.content)
        if self._file is not None and limit is not None and self._file.bytes + taken > limit:
            self._close_shard(packed.position)
        if self._file is None:
            self._file = self._layout.begin(self._folder / self._layout.shard_name(self._number))
            self._now = Shard(self._file.path.name, self._first, self._first, 0, 0, "", 0, 0, 0, 0)
            self._keys.clear()
        if self._layout.keys_differ and packed.key in self._keys:
            raise DataError(
                f"pack: two samples with the key '{packed.key}' would stand in one shard; give them different keys, or "
                "pack the tars they come from into folders of their own",
                key=packed.key,
            )
        self._keys.add(packed.key)
        self._last = packed.content
        self._file.take(packed.content)
        self._now = replace(
            self._now,
            samples=self._now.samples + 1,
            files=self._now.files + packed.files,
            rewritten=self._now.rewritten + packed.rewritten,
            bytes_before=self._now.bytes_before + packed.bytes_before,
            bytes_after=self._now.bytes_after + packed.bytes_after,
        )
        if self._work.ends is not None:
            self._close_where_planned(packed.position + 1)
        elif self._now.samples == self._manifest.arguments["samples_per_shard"]:
            self._close_shard(packed.position + 1)

    def finish(self) -> None:
        if self._file is not None:
            self._close_shard(self._work.end)
        self._settle()
        self._manifest.skipped += self._skipped
        self._manifest.complete = True
        if self._work.part is None:
            self._layout.complete(self._place, self._manifest)
        if self._own != UNFINISHED_NAME:
            self._manifest.save(self._place, self._own)
            return
        self._manifest.marks = {}
        self._manifest.save(self._place, NAME)
        self._place.remove(UNFINISHED_NAME)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.discard()
            self._file = None

    def _close_where_planned(self, end: int) -> None:
        ends = self._work.ends
        if ends is None or end != ends[self._number - self._work.number]:
            return
        if self._file is None:
            raise DataError(
                f"pack: every sample of shard {self._number:06d} was skipped, and ranges of shards have no gaps; mend "
                f"the source. The last one: {self._skipped[-1].why}"
            )
        self._close_shard(end)

    def _close_shard(self, end: int) -> None:
        file = self._file
        assert file is not None
        digest = file.commit()
        self._file = None
        if self._place.is_remote:
            os.utime(file.path, ns=(1, 1))  # the index has it, and is the same whenever it is made
        self._layout.finished(file.path, self._last)
        self._settle()
        finished = replace(self._now, end=end, bytes=file.bytes, sha256=digest, entry=file.entry)
        self._sent = (self._place.keep(file.path), finished, self._skipped)
        self._skipped = []
        self._number, self._first = self._number + 1, end
        if not self._place.is_remote:
            self._settle()

    def _settle(self) -> None:
        """Waits for the shard that is under way."""
        if self._sent is None:
            return
        kept, shard, skipped = self._sent
        mark = kept.result()
        self._sent = None
        if mark:
            self._manifest.marks[shard.name] = mark
        self._manifest.shards.append(shard)
        self._manifest.skipped += skipped
        self._manifest.save(self._place, self._own)


def _report(manifest: Manifest, place: Place, found: int) -> Report:
    def total(name: str) -> int:
        return sum(getattr(shard, name) for shard in manifest.shards)

    return Report(
        output=place.shown,
        samples=total("samples"),
        shards=len(manifest.shards),
        shards_found=found,
        bytes=total("bytes"),
        files=total("files"),
        rewritten=total("rewritten"),
        bytes_before=total("bytes_before"),
        bytes_after=total("bytes_after"),
        skipped=list(manifest.skipped),
        pattern=pattern_of(place, manifest.arguments, manifest.shards),
    )
