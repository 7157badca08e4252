# SPDX-License-Identifier: Apache-2.0
"""Packing: samples in their order, through the transcoders, into shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from ..data import arguments
from ..data.sources import annotations_of, with_settings
from ..errors import ConfigError
from ..machine import limits as host_limits
from ..machine.storage import local_path
from .layouts import pattern_of
from .manifest import NAME, UNFINISHED_NAME, Manifest, Part, Skipped, part_in, part_name
from .places import Place, place_of
from .settings import wanted_shards
from .source import opened
from .transcoders import Transcoder
from .work import Work, planned_ends, work_of
from .writing import write_shards


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
    limits, settings = wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys)
    arguments.flag("pack", "shuffle", shuffle)
    arguments.integer("pack", "seed", seed, low=0, high=2**64 - 1)
    if jobs is not None:
        num_workers = arguments.integer("pack", "jobs", jobs, low=1, high=arguments.MOST_WORKERS)
    elif num_workers != "auto":
        arguments.worker_count("pack", num_workers, low=1)
    place = place_of(arguments.output_path("pack", "output", output, urls=True), spool)
    if place.is_remote:
        _check_is_ours(place)  # before the source is opened, which may take long
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    named = with_settings(format, annotations_of("pack", images, split, crowd))
    packed_source, wanted = opened(source, named, fields, limits, shuffle, seed, transcoders, settings, keep_keys)
    dataset = packed_source.dataset
    folder = Path(place.shown)
    root = Path(local_path(os.fspath(source)))
    if not place.is_remote and root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"pack: {folder} lies in the source, of which it would become a part; choose another folder")
    work = Work(0, 0, len(dataset), None, None)
    if shard_range is not None:
        work = work_of(packed_source, wanted, shard_range, threads)
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
            write_shards(packed_source, place, shards, own, manifest, work, on_error, threads, tell)
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
    limits, settings = wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys)
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    named = with_settings(format, annotations_of("pack", images, split, crowd))
    packed_source, wanted = opened(source, named, fields, limits, shuffle, seed, transcoders, settings, keep_keys)
    return len(planned_ends(packed_source, wanted, threads))


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


def _of_whole(whole: Manifest, place: Place, work: Work) -> Report:
    """What is there, and needs nothing any more."""
    if not whole.complete:
        raise ConfigError(f"pack: {place.shown} was begun as a whole; go on without --shard-range")
    place.verify(whole.shards, {})
    if work.part is not None:
        whole = replace(whole, shards=whole.shards[work.part.first : work.part.end])
    return _report(whole, place, len(whole.shards))


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
