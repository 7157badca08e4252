# SPDX-License-Identifier: Apache-2.0
"""Packs samples, in order and converted by the transcoders, into shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .. import _engine
from ..cluster import ray_tasks
from ..data import arguments
from ..data.dataset import Dataset
from ..data.sources import annotations_of, opened_rows
from ..data.volumes import are_volumes
from ..errors import ConfigError
from ..machine import limits as host_limits
from ..machine.storage import local_path
from .destinations import Destination, destination_of
from .layouts import pattern_of
from .manifest import NAME, UNFINISHED_NAME, Manifest, Part, Skipped, part_in, part_name
from .on_cluster import pack_on
from .settings import wanted_shards
from .source import opened, prepared, spec_of
from .transcoders import Transcoder
from .work import Work, planned_ends, work_of
from .writing import write_shards


class Report(NamedTuple):
    """Contents of the output folder. ``bytes_before`` and ``bytes_after`` count the samples' own files."""

    output: str
    samples: int
    shards: int
    shards_found: int  # shards that an earlier call had finished
    bytes: int
    files: int
    rewritten: int
    bytes_before: int
    bytes_after: int
    skipped: list[Skipped]
    pattern: str  # for feedline.open and webdataset
    fields: list[str]  # for feedline.open, to read all columns; empty if it finds them by itself


def pack(
    source: str | os.PathLike[str] | _engine.Dataset,
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
    to: Literal["tar", "wds", "mds", "tfrecord", "lmdb", "parquet"] = "tar",
    compression: str | None = None,
    hashes: Sequence[str] | None = None,
    keep_keys: bool = False,
    jobs: int | None = None,
    shard_range: tuple[int, int] | None = None,
    spool: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    crowd: str | None = None,
    on: str | None = None,
) -> Report:
    """Writes a dataset as tar shards in WebDataset's layout, or as MDS, TFRecord, LMDB or Parquet files.

    The shards' bytes depend only on the arguments and the samples. After an interruption, even a power loss, another
    call with the same arguments resumes; ``on_error`` and ``num_workers`` may differ.

    Args:
        source: a source for :func:`feedline.open`, or an opened dataset: a folder, or tars. For class folders, each
            sample is stored as the image and ``.cls``, which contains the class number; each shard contains the class
            names. For a folder whose files are found by patterns, each file of a sample is stored as
            ``KEY.FIELD.EXTENSION``: ``masks/{key}.png`` becomes ``0004.masks.png``. For tars, all members of a sample
            and their names are preserved.
        output: a folder, which is created if its parent exists, or ``s3://bucket/prefix``, ``gs://bucket/prefix``.
            The manifest, ``feedline-pack.json``, is written next to the shards and their indexes; in a bucket, the
            manifest is written last.
        format: as in :func:`feedline.open`, except ``"numpy"`` and ``"pixels"``; by default the source's format.
        fields: as in :func:`feedline.open`: the patterns of a folder, or, for tars without images and labels, any field
            of their samples.
        shard_bytes: maximum size of a shard, except if it has a single sample, in bytes or as text such as ``"500
            MB"``; text for less than a million bytes requires a unit. The default is 1 GB; 64 MiB before compression
            for MDS, 500 MB of values for Parquet, and 1 TiB for LMDB.
        samples_per_shard: number of samples per shard, instead of a maximum size.
        shuffle: packs in a random order that depends only on ``seed``.
        transcoders: conversions that are applied to each file, in sequence.
        on_error: handling of a sample that cannot be read or is damaged. ``"skip"`` omits the sample and lists it in
            the report.
        num_workers: number of threads; ``"auto"`` uses one per usable CPU.
        to: ``"tar"`` or its other name ``"wds"``; ``"mds"``, MosaicML streaming's format, version 2; ``"tfrecord"``;
            ``"lmdb"``; or ``"parquet"``, which needs pyarrow. Except for tar files, the first sample defines the
            columns, and a sample with other columns raises an error.
        compression: MDS only: ``"zstd"``, ``"gz"`` or ``"bz2"``, optionally with a level as in ``"zstd:7"``.
        hashes: MDS only: names of the checksums of shards in the index, as in hashlib and xxhash; ``["sha256"]`` by
            default.
        keep_keys: for MDS, TFRecord and Parquet: adds a column ``__key__`` with the samples' keys, which these formats
            do not store otherwise.
        jobs: another name for ``num_workers``.
        shard_range: ``(a, b)`` packs only the shards a to b-1 of the :func:`shard_count` shards, as one of several
            workers; :func:`merge_index` merges all ranges into one dataset.
        spool: for a bucket, a local folder with space for two shards; by default the folder for temporary files.
        progress: function that is called as ``progress(done, total)``; both are numbers of samples, or of shards with
            ``on``.
        on: ``"ray"`` or ``"ray://HOST:PORT"`` packs ranges of shards as tasks of a Ray cluster, with ``num_workers``
            CPUs each (``"auto"``: 1), and merges them. The files are those of a local call. All nodes need the same
            version of Feedline and the same paths.
        images, split, config, crowd: as in :func:`feedline.open`. Each numeric field of annotated
            images becomes a ``.npy`` member, or a column in MDS; masks drawn from outlines cannot be packed.

    Raises:
        ConfigError: the arguments differ from those of the interrupted call, or the folder contains other files.
        DataError: a sample is damaged, two samples have the same key, or a finished shard has changed.
        StorageError, OSError: a file cannot be read, or the output cannot be written, for example because the disk is
            full or the bucket does not exist.
        WorkerDiedError: with ``on``, a task died repeatedly.
    """
    _check_source("pack", source)
    if on_error not in ("raise", "skip"):
        raise ConfigError(f'pack: on_error must be "raise" or "skip", not {on_error!r}')
    limits, form = wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys, shuffle)
    arguments.flag("pack", "shuffle", shuffle)
    arguments.integer("pack", "seed", seed, low=0, high=2**64 - 1)
    if jobs is not None:
        num_workers = arguments.integer("pack", "jobs", jobs, low=1, high=arguments.MOST_WORKERS)
    elif num_workers != "auto":
        arguments.worker_count("pack", num_workers, low=1)
    destination = destination_of(arguments.output_path("pack", "output", output, urls=True), spool)
    if on is not None:
        ray_tasks.checked_address("pack", on)
        if shard_range is not None or isinstance(source, _engine.Dataset):
            raise ConfigError("pack: on= needs the path or URL of a source, and does not support shard_range=")
        plan: dict[str, Any] = {"format": format, "fields": fields, "images": images, "split": split, "crowd": crowd}
        plan["config"] = config
        plan |= {"shard_bytes": shard_bytes, "samples_per_shard": samples_per_shard, "shuffle": shuffle, "seed": seed}
        plan |= {"transcoders": transcoders, "to": to, "compression": compression, "hashes": hashes}
        plan |= {"keep_keys": keep_keys}
        others: dict[str, Any] = {"on_error": on_error, "spool": spool}
        threads = 1 if num_workers == "auto" else num_workers
        packed: Report = pack_on(on, pack, shard_count, os.fspath(source), destination, plan, others, threads, progress)
        return packed
    if destination.is_remote:
        _check_is_ours(destination)  # before opening the source, which may be slow
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    if isinstance(source, _engine.Dataset):
        dataset, name = source, source.source
    else:
        name = os.fspath(source)
        dataset = _opened(source, format, fields, annotations_of("pack", images, split, crowd, config))
    packed_source, wanted = prepared(dataset, limits, shuffle, seed, transcoders, form)
    folder = Path(destination.shown)
    root = Path(local_path(name))
    if not destination.is_remote and root.is_dir() and folder.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"pack: {folder} is inside the source and would become part of it; choose another folder")
    work = Work(0, 0, len(dataset), None, None)
    if shard_range is not None:
        work = work_of(packed_source, wanted, shard_range, threads)
    own = (UNFINISHED_NAME if destination.is_remote else NAME) if work.part is None else part_name(*shard_range or ())
    with destination.opened(own) as shards:
        whole = _check_is_ours(destination)
        if whole is not None:
            whole.expect(wanted, destination.shown)
        if whole is not None and (whole.complete or work.part is not None):
            return _of_whole(whole, destination, work)
        _check_parts(destination, own, work.part)
        manifest = Manifest.load(destination, own)
        was_begun = manifest is not None
        if manifest is None:
            shown = dataset.source if "://" in name else name  # URLs without their secrets
            manifest = Manifest(wanted, shown, list(dataset.classes), part=work.part)
        manifest.expect(wanted, destination.shown)
        destination.verify(manifest.shards, manifest.marks)
        done = len(manifest.shards)
        if was_begun and not manifest.complete:  # of the two shards that may have been in progress
            begun = range(done, done + 2 if work.ends is None else min(done + 2, len(work.ends)))
            destination.clear([packed_source.layout.shard_name(work.number + number) for number in begun])
        if not manifest.complete:
            tell = progress or (lambda done, total: None)
            write_shards(packed_source, destination, shards, own, manifest, work, on_error, threads, tell)
    return _report(manifest, destination, done)


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
    to: Literal["tar", "wds", "mds", "tfrecord", "lmdb", "parquet"] = "tar",
    compression: str | None = None,
    hashes: Sequence[str] | None = None,
    keep_keys: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    crowd: str | None = None,
) -> int:
    """Returns the number of shards that :func:`pack` would write, for ``shard_range``. Only uses sizes and does not
    read samples.

    Raises ConfigError if the sizes are only known after encoding the samples: with ``shard_bytes`` and restart markers,
    or arrays in MDS.
    """
    _check_source("shard_count", source)
    limits, form = wanted_shards(to, shard_bytes, samples_per_shard, compression, hashes, keep_keys, shuffle)
    threads = host_limits.usable_cpus() if num_workers == "auto" else num_workers
    dataset = _opened(source, format, fields, annotations_of("pack", images, split, crowd, config))
    packed_source, wanted = prepared(dataset, limits, shuffle, seed, transcoders, form)
    return len(planned_ends(packed_source, wanted, threads))


def _check_source(where: str, source: Any) -> None:
    if isinstance(source, _engine.Dataset):
        return
    if source._has_volumes() if isinstance(source, Dataset) else are_volumes(source, False):
        raise ConfigError(
            f"{where}: the source has volumes, which become Zarr groups: feedline.packing.pack_volumes(source, output, "
            "patch=...), or feedline pack --to zarr --patch"
        )
    if not isinstance(source, str | os.PathLike):
        raise ConfigError(
            f"{where}: source must be a path or URL, not {type(source).__name__}; for a Dataset, pass the path that "
            "feedline.open() was given"
        )


def _opened(source: Any, format: Any, fields: Any, annotations: dict[str, str]) -> _engine.Dataset:
    if (manifest := opened_rows(source, format, fields, annotations)) is not None:
        manifest._refuse_parts("pack")
        return manifest._engine
    return opened(spec_of(source, format, fields, annotations))


def _check_is_ours(destination: Destination) -> Manifest | None:
    """Returns the manifest of the whole dataset, if it exists. Raises ConfigError if the folder contains other
    files.
    """
    names = destination.names()
    if NAME in names:
        return Manifest.load(destination, NAME)
    manifests = [name for name in names if name == UNFINISHED_NAME or part_in(name)]
    if not manifests and any(not name.startswith("feedline-pack.") for name in names):
        raise ConfigError(f"pack: {destination.shown} is not empty and was not created by pack; choose another folder")
    return None


def _check_parts(destination: Destination, own: str, part: Part | None) -> None:
    """Checks that ranges do not overlap and are not mixed with a whole dataset."""
    names = destination.names()
    others = {name: found for name in names if name != own and (found := part_in(name))}
    if part is None and others:
        raise ConfigError(
            f"pack: {destination.shown} was started with --shard-range ({min(others)}); resume with --shard-range, or "
            "merge them with feedline merge-index"
        )
    if part is not None and UNFINISHED_NAME in names:
        raise ConfigError(f"pack: {destination.shown} was started without --shard-range; resume without --shard-range")
    for name, (first, end) in sorted(others.items()):
        if part is not None and first < part.end and part.first < end:
            raise ConfigError(
                f"pack: the shards {part.first}:{part.end} and {first}:{end}, listed in {destination.shown}/{name}, "
                "overlap; give each worker the same range again, or adjacent ranges"
            )


def _of_whole(whole: Manifest, destination: Destination, work: Work) -> Report:
    """Returns the result for a dataset that is already complete."""
    if not whole.complete:
        raise ConfigError(f"pack: {destination.shown} was started without --shard-range; resume without --shard-range")
    destination.verify(whole.shards, {})
    if work.part is not None:
        whole = replace(whole, shards=whole.shards[work.part.first : work.part.end])
    return _report(whole, destination, len(whole.shards))


def _report(manifest: Manifest, destination: Destination, found: int) -> Report:
    def total(name: str) -> int:
        return sum(getattr(shard, name) for shard in manifest.shards)

    return Report(
        output=destination.shown,
        samples=total("samples"),
        shards=len(manifest.shards),
        shards_found=found,
        bytes=total("bytes"),
        files=total("files"),
        rewritten=total("rewritten"),
        bytes_before=total("bytes_before"),
        bytes_after=total("bytes_after"),
        skipped=list(manifest.skipped),
        pattern=pattern_of(destination, manifest.arguments, manifest.shards),
        fields=list(manifest.arguments.get("fields", ())),
    )
