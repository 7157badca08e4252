# SPDX-License-Identifier: Apache-2.0
"""Verifies each part, then runs the checks that require all parts."""

from __future__ import annotations

import functools
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from .. import _engine
from ..cluster import ray_tasks
from ..data import arguments, literals
from ..data.source_spec import SourceSpec
from ..data.sources import annotations_of, opened_rows, shown_source, spec_of
from ..data.storage import node_cache
from ..errors import ConfigError, DataError, StorageError
from ..findings import Finding
from ..machine import limits as host_limits
from ..pack.sums import Sums, folder_and_name, sums_of
from ..record.journal import Journal
from .cluster_parts import Cluster
from .duplicates import duplicates_in
from .integer_files import integer_files_of
from .orders import is_exact
from .parts import Result, Work, findings_of_inspection, inspect_whole, verify_shard, verify_slice
from .report import SampleLocation, Verification, found, found_error, sorted_findings
from .samples import label_word

_SLICE = 4_096  # samples of a folder per part
_MOST_RANKS = 65_536
_OPEN_SHARDS = 16


def verify(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    missing: literals.Missing = "error",
    index: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    decode: bool = False,
    world_size: int = 8,
    resume: str | os.PathLike[str] | None = None,
    num_workers: int | Literal["auto"] = "auto",
    progress: Callable[[int, int], None] | None = None,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    crowd: str | None = None,
    on: str | None = None,
) -> Verification:
    """Reads a dataset completely and reports errors.

    Inspects each shard, compares it with its checksum if `feedline pack` wrote a manifest, and compares its stored
    index with a new index. Reads all files of every sample. Finds samples with the same bytes, and checks the orders of
    `world_size` ranks.

    Args:
        source, format, fields, missing, index, cache, cache_limit, images, split, config, crowd: as in
            :func:`feedline.open`.
        decode: also decodes every field of every sample, as a loader does; of videos, the first and last frames.
        world_size: number of ranks that together must receive each sample once.
        resume: a file that records verified parts; an interrupted call resumes from it.
        num_workers: number of threads; "auto" uses one per usable CPU.
        progress: function that is called with the numbers of finished parts and of all parts; a part is a shard, or
            4,096 samples of a folder.
        on: ``"ray"`` or ``"ray://HOST:PORT"`` verifies parts as tasks of a Ray cluster, with ``num_workers`` CPUs each
            ("auto": 1). All nodes need the same version of Feedline and the same paths.

    Raises:
        ConfigError: an argument is wrong, or `resume` is the file of a different call; nothing is read.
        StorageError, DataError: nothing could be verified.
    """
    annotations = annotations_of("verify", images, split, crowd, config)
    if on is not None:
        ray_tasks.checked_address("verify", on)
    if (manifest := opened_rows(source, format, fields, annotations)) is not None:
        if on is not None:
            raise ConfigError(
                "verify: on= does not apply to manifests of speech and to files on the Hub; verify them without it"
            )
        return verify_dataset(
            manifest._engine, decode=decode, world_size=world_size, num_workers=num_workers, progress=progress
        )
    spec = spec_of(source, format, fields, index, missing, annotations=annotations)
    ranks = arguments.integer("verify", "world_size", world_size, 1, _MOST_RANKS)
    arguments.flag("verify", "decode", decode)
    threads = 1 if on is not None and num_workers == "auto" else _threads(num_workers)
    cached = node_cache.of_open(cache, cache_limit)
    stored = _engine.StoredSource(spec.source).shards()
    shown = shown_source(spec.source, stored)
    with ExitStack() as held:
        journal = held.enter_context(_journal(resume, shown, spec, decode)) if resume is not None else None
        pool = held.enter_context(ThreadPoolExecutor(threads, "feedline-verify"))
        work = Work(spec, shown, cached, decode, pool)
        cluster = Cluster(on, spec, shown, cached, decode, threads) if on is not None else None
        heard = progress or (lambda done, total: None)
        names = stored.names
        if len(names) == 1 and stored.is_folder(names[0]):
            return _Folder(work, journal, heard, ranks, cluster).verify()
        return _Shards(work, journal, heard, ranks, stored, cluster).verify()


def verify_dataset(
    dataset: _engine.Dataset,
    *,
    decode: bool = False,
    world_size: int = 8,
    num_workers: int | Literal["auto"] = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Reads the samples of an opened dataset completely and reports errors, like :func:`verify`.

    Shards are not compared with their checksums.
    """
    if dataset.format == "lerobot":
        folder = dataset.source.rstrip("/")
        raise ConfigError(
            f"verify: {folder!r} is a LeRobotDataset, whose samples are parts of files; verify the files: "
            f"feedline verify {shlex.quote(folder + '/data')}, and "
            f"feedline verify --decode {shlex.quote(folder + '/videos')}"
        )
    ranks = arguments.integer("verify", "world_size", world_size, 1, _MOST_RANKS)
    arguments.flag("verify", "decode", decode)
    threads = _threads(num_workers)
    with ThreadPoolExecutor(threads, "feedline-verify") as pool:
        spec = SourceSpec(dataset.source, dataset.format)
        work = Work(spec, dataset.source, {}, decode, pool)
        return _Opened(work, None, progress or (lambda done, total: None), ranks, dataset).verify()


def _threads(num_workers: Any) -> int:
    if num_workers == "auto":
        return host_limits.usable_cpus()
    return arguments.worker_count("verify", num_workers, low=1)


def _journal(resume: str | os.PathLike[str], shown: str, spec: SourceSpec, decode: bool) -> Journal:
    path = Path(arguments.output_path("verify", "resume", resume))
    head = {"feedline_verify": 2, "source": shown, "format": spec.format, "fields": list(spec.fields)}
    if spec.annotations:
        head["annotations"] = dict(spec.annotations)
    return Journal(path, {**head, "missing": spec.missing, "decode": decode}, "verify")


class _Verifier:
    """Common part of all kinds of sources."""

    def __init__(
        self,
        work: Work,
        journal: Journal | None,
        progress: Callable[[int, int], None],
        world_size: int,
        cluster: Cluster | None = None,
    ) -> None:
        self._work, self._journal, self._progress, self._cluster = work, journal, progress, cluster
        self._world_size = world_size
        lines = [Result.of_line(line) for line in journal.lines] if journal else []
        self._found = {result.name: result for result in lines}
        self._results: list[Result] = []

    def _known(self, name: str, stamp: list[int]) -> Result | None:
        """Returns an earlier call's result for the part, if the part is unchanged."""
        result = self._found.get(name)
        return result if result is not None and result.stamp == stamp else None

    def _add_all(self, made: Iterator[tuple[int, Result]], parts: int) -> None:
        """Adds the results of all parts, which may come in any order."""
        results: dict[int, Result] = {}
        for number, result in made:
            if self._journal is not None and not result.found and not result.is_unreadable():
                self._journal.append(result.line())
            results[number] = result
            self._progress(len(results), parts)
        self._results = [results[number] for number in range(parts)]

    def _report(
        self,
        format: str,
        whole: _engine.Dataset | None,
        findings: list[Finding],
        place_of: Callable[[int, int], SampleLocation],
    ) -> Verification:
        results = self._results
        labels: Counter[str] = Counter()
        for result in results:
            labels.update(result.labels)
        same = duplicates_in(results, place_of)
        exact = None
        if whole is not None:
            exact = is_exact(len(whole), whole.block_ends(), self._world_size)
        if exact is False:
            text = f"{self._world_size} ranks do not receive each of {len(whole or ()):,} samples once"
            findings.append(found("order_incomplete", "error", text))
        of_parts = [finding for result in results for finding in result.findings]
        return Verification(
            source=self._work.shown,
            format=format,
            shards=0 if isinstance(self, _Folder) else len(results),
            parts_found=sum(result.found for result in results),
            samples=sum(result.samples for result in results),
            bytes=sum(result.stored_bytes for result in results),
            decoded=self._work.decode,
            checksums=sum(result.compared for result in results),
            classes=dict(labels.most_common()),
            duplicate_samples=same.samples,
            duplicates=same.groups,
            world_size=self._world_size,
            order_exact=exact,
            findings=sorted_findings(findings + of_parts + same.findings),
        )


class _Folder(_Verifier):
    """A folder of samples, split into slices."""

    def verify(self) -> Verification:
        work = self._work
        format, findings = self._inspected()
        dataset = self._open()  # results so far
        parts = [range(begin, min(begin + _SLICE, len(dataset))) for begin in range(0, len(dataset), _SLICE)]
        stamp = [dataset.fingerprint, len(dataset)]
        known = {number: self._known(_slice_name(indices), stamp) for number, indices in enumerate(parts)}

        def made() -> Iterator[tuple[int, Result]]:
            yield from ((number, result) for number, result in known.items() if result is not None)
            missing = [number for number, result in known.items() if result is None]
            if self._cluster is not None:
                yield from self._cluster.slices(missing, [(parts[number], stamp) for number in missing])
                return
            for number in missing:
                yield number, verify_slice(work, dataset, _slice_name(parts[number]), parts[number], stamp)

        self._add_all(made(), len(parts))

        def place_of(part: int, number: int) -> SampleLocation:
            index = self._results[part].index_of(number, parts[part].start)
            return _place(dataset, "", index)

        return self._report(format, dataset, findings, place_of)

    def _inspected(self) -> tuple[str, list[Finding]]:
        return inspect_whole(self._work.spec)

    def _open(self) -> _engine.Dataset:
        return self._work.spec.open(**self._work.cache, listing_age=0)


class _Opened(_Folder):
    """Samples of an opened dataset."""

    def __init__(
        self,
        work: Work,
        journal: Journal | None,
        progress: Callable[[int, int], None],
        world_size: int,
        dataset: _engine.Dataset,
    ) -> None:
        super().__init__(work, journal, progress, world_size)
        self._dataset = dataset

    def _inspected(self) -> tuple[str, list[Finding]]:
        return self._dataset.format, findings_of_inspection(self._dataset.inspect())

    def _open(self) -> _engine.Dataset:
        return self._dataset


class _Shards(_Verifier):
    """Shards, each of which is opened separately, so that a damaged shard does not hide errors of others."""

    def __init__(
        self,
        work: Work,
        journal: Journal | None,
        progress: Callable[[int, int], None],
        world_size: int,
        stored: _engine.StoredSource,
        cluster: Cluster | None,
    ) -> None:
        super().__init__(work, journal, progress, world_size, cluster)
        self._stored = stored

    def verify(self) -> Verification:
        names = self._stored.names
        manifests = sums_of(self._stored, names)
        self._add_all(self._made(names, manifests), len(names))
        self._check_that_something_is_there()
        findings = _of_manifests(manifests, names)
        whole = self._whole(findings)

        opened = functools.lru_cache(_OPEN_SHARDS)(self._work.open)

        def place_of(part: int, number: int) -> SampleLocation:
            result = self._results[part]
            return _place(opened(result.name), result.name, result.index_of(number, 0))

        format = next((result.format for result in self._results if result.format), "")
        return self._report(format, whole, findings, place_of)

    def _made(self, names: Sequence[bytes], manifests: dict[bytes, Sums]) -> Iterator[tuple[int, Result]]:
        sent: list[tuple[int, tuple[Any, ...]]] = []  # to the cluster
        for number, name in enumerate(names):
            folder, last = folder_and_name(name)
            wanted = manifests[folder].shards.get(last) if folder in manifests else None
            shown = os.fsdecode(name)
            try:
                stored = self._stored.object(name)
            except StorageError as error:
                yield number, Result(shown, [], findings=[found_error("unreadable_shard", error, shard=shown)])
                continue
            stamp = [stored.size, stored.stamp]
            if (known := self._known(shown, stamp)) is not None:
                yield number, known
            elif self._cluster is not None:
                sent.append((number, (name, stamp, wanted)))
            else:
                yield number, verify_shard(self._work, name, stored, stamp, wanted)
        if self._cluster is not None:
            yield from self._cluster.shards([number for number, _ in sent], [item for _, item in sent])

    def _check_that_something_is_there(self) -> None:
        if any(result.samples for result in self._results):
            return
        if not any(result.stamp for result in self._results):
            self._stored.object(self._stored.names[0])  # its error is the most specific

    def _whole(self, findings: list[Finding]) -> _engine.Dataset | None:
        """Opens the source as one dataset, unless a shard is known to fail."""
        if any(not result.total for result in self._results):
            return None
        try:
            return self._work.spec.open(**self._work.cache)
        except (ConfigError, DataError, StorageError) as error:
            findings.append(found_error("does_not_open", error))
            return None


def _slice_name(indices: range) -> str:
    return f"{indices.start}:{indices.stop}"


def _of_manifests(manifests: dict[bytes, Sums], names: Sequence[bytes]) -> list[Finding]:
    findings = []
    given = set(map(folder_and_name, names))
    for folder, manifest in manifests.items():
        location = os.fsdecode(folder)
        if not manifest.complete:
            text = f"packing into {location} is unfinished: more samples remain to be packed"
            findings.append(found("packing_unfinished", "warning", text))
        left_out = [shard for shard in manifest.shards if (folder, shard) not in given]
        if left_out:
            text = f"{len(left_out):,} shards packed into {location} are not in the source: {left_out[0]}"
            findings.append(found("shards_left_out", "note", text + (" ..." if len(left_out) > 1 else "")))
    return findings


def _place(dataset: _engine.Dataset, shard: str, index: int) -> SampleLocation:
    _, label, files = dataset.files(index)
    return SampleLocation(
        shard, dataset.key(index), label_word(dataset.classes, label, files, integer_files_of(dataset))
    )
