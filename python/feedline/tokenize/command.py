# SPDX-License-Identifier: Apache-2.0
"""Writes the texts or conversations of a source as token files for Megatron."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..cluster import ray_tasks
from ..data import arguments
from ..data.dataset import Dataset
from ..data.sources import open as open_source
from ..data.text.token_functions import token_function
from ..errors import ConfigError, Error, StorageError
from ..machine import limits as host_limits
from . import part_files, workers
from .documents import Documents, Lines, Part, Samples, Wanted, lines_of
from .megatron_files import smallest_type
from .part_files import Job, PartReport, Skipped, TokenFunction
from .state import Output, expect_same

_WHERE = "tokenize"


class Report(NamedTuple):
    """The contents of the output."""

    output: str  # the files' path without .bin and .idx, as Megatron's --data-path expects it
    documents: int
    tokens: int
    dtype: str
    bytes: int  # of all files
    empty: int  # documents without tokens, which are not in the output
    parts: int
    parts_found: int  # parts that an earlier call had finished
    skipped: list[Skipped]


def tokenize(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset,
    output: str | os.PathLike[str],
    *,
    tokenizer: Any,
    field: str | None = None,
    messages: str | None = None,
    tools: str | None = "tools",
    chat_template: str | os.PathLike[str] | None = None,
    template_arguments: Mapping[str, Any] | None = None,
    max_length: int | None = None,
    format: str | None = None,
    append_eod: bool = False,
    eod: str | int | None = None,
    add_special_tokens: bool = True,
    on_error: Literal["raise", "skip"] = "raise",
    num_workers: int | Literal["auto"] = "auto",
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    on: str | None = None,
) -> Report:
    """Writes texts or conversations as Megatron's token files: ``OUTPUT.bin`` and ``OUTPUT.idx``, index version 1.

    Each document is a sequence, in the source's order; documents without tokens are left out and counted. The dtype is
    uint16 if all ids of the vocabulary fit, and int32 otherwise. For conversations (``messages=``),
    ``OUTPUT.loss_mask`` has a byte per token: 1 for the tokens of assistant messages, otherwise 0.
    :func:`feedline.open` of ``OUTPUT.idx`` reads it as the field ``loss_mask``; Megatron does not read it.

    The bytes depend only on the source, the tokenizer and the arguments. After an interruption, even a power loss,
    another call with the same arguments resumes after the parts that were finished, which are in the folder
    ``OUTPUT.tokenize.unfinished``; ``num_workers`` may differ. The folder needs as much space as the output, and is
    removed when the output is complete. ``OUTPUT.tokenize.json`` describes the output.

    Args:
        source: JSONL files (``.jsonl``, ``.ndjson``, also with ``.gz``, ``.bz2`` or ``.zst``): a path, URL, pattern,
            folder or list. They are read line by line, and large files in parallel if they are not compressed. Or any
            other source for :func:`feedline.open`, or an opened dataset, with its operations.
        output: path of the files without ``.bin`` and ``.idx``, in an existing local folder.
        tokenizer: as for :meth:`Dataset.tokenize`.
        field: field, column, key or tar member with the text, by default ``"text"``; ``"meta.text"`` is a key of an
            object in a line.
        messages: the field with conversations, instead of texts. In sources other than JSONL, the field must be JSON.
        tools, chat_template, template_arguments, max_length: as for :meth:`Dataset.tokenize`.
        format: as in :func:`feedline.open`, for a source that is not JSONL.
        append_eod, eod, add_special_tokens: as for :meth:`Dataset.tokenize`.
        on_error: handling of a document that cannot be read, has no text, or is refused by the tokenizer. ``"skip"``
            leaves the document out and lists it in the report.
        num_workers: number of processes; ``"auto"`` uses one per usable CPU. With 1, the calling process does the work.
            Processes are spawned: scripts must call this function under ``if __name__ == "__main__":``.
        jobs: another name for ``num_workers``.
        progress: function that is called as ``progress(done, total)``; both are numbers of parts.
        on: ``"ray"`` or ``"ray://HOST:PORT"`` makes parts as tasks of a Ray cluster, with one CPU each; this process
            joins them. All nodes need the same version of Feedline and the same paths.

    Raises:
        ConfigError: an argument is wrong or differs from that of the interrupted call, the source has changed since, or
            the output exists and has other contents.
        DataError: a document is bad, or no document has tokens.
        StorageError, OSError: the source cannot be read, or the output cannot be written.
        WorkerDiedError: a worker process was killed.
    """
    skips = arguments.choice(_WHERE, "on_error", on_error, ("raise", "skip")) == "skip"
    if jobs is not None:
        num_workers = arguments.integer(_WHERE, "jobs", jobs, low=1, high=arguments.MOST_WORKERS)
    is_auto = isinstance(num_workers, str) and num_workers == "auto"
    count = host_limits.usable_cpus() if is_auto else arguments.worker_count(_WHERE, num_workers, low=1)
    if on is not None:
        ray_tasks.checked_address(_WHERE, on)
    if progress is not None and not callable(progress):
        raise ConfigError(f"{_WHERE}: progress must be a function of two numbers, not {progress!r:.200}")
    files = Output(arguments.output_path(_WHERE, "output", output))
    function = token_function(
        _WHERE,
        tokenizer,
        field,
        messages=messages,
        tools=tools,
        chat_template=chat_template,
        template_arguments=template_arguments,
        max_length=max_length,
        append_eod=append_eod,
        eod=eod,
        add_special_tokens=add_special_tokens,
    )
    documents = _documents(source, format, Wanted(function.field, function.has_masks, function.tools))
    described = {"source": documents.shown, **function.identity(), "on_error": on_error}
    return write(documents, function, function.tokenizer.size, files, described, skips, count, progress, on)


def write(
    documents: Documents,
    function: TokenFunction,
    vocabulary: int | None,
    files: Output,
    arguments: Mapping[str, Any],
    skips: bool,
    num_workers: int,
    progress: Callable[[int, int], None] | None = None,
    on: str | None = None,
) -> Report:
    """Writes the tokens of documents, or returns the report of an earlier call with the same arguments.

    Args:
        vocabulary: one more than the largest token id, if it is known.
        arguments: JSON values that determine the output, except for the documents.
        skips: whether bad documents are left out.
    """
    dtype = smallest_type(vocabulary)
    if dtype is None:
        raise ConfigError(f"{_WHERE}: the tokenizer has {vocabulary:,} ids, more than int32 holds")
    wanted = {**arguments, "source_fingerprint": documents.fingerprint}
    done = files.description()
    parts = documents.parts()
    if done is not None:
        expect_same(done["arguments"], wanted, f"{files.bin} was written", "or choose another name")
        files.clear()
        skipped = [Skipped(**one) for one in done["skipped"]]
        counts = done["documents"], done["tokens"], done["dtype"], sum(done["bytes"].values()), done["empty"]
        return Report(str(files.prefix), *counts, len(parts), len(parts), skipped)
    try:
        with files.locked():
            files.begin(wanted)
            found = {part.number: one for part in parts if (one := part_files.finished(files.folder, part.number))}
            missing = [part for part in parts if part.number not in found]
            job = Job(documents, function, dtype, skips, str(files.folder))
            made = workers.made(job, missing, num_workers) if on is None else _made_on(on, job, missing)
            reports = _all_made(made, dict(found), len(parts), progress)
            if not any(report.tokens for report in reports):
                raise part_files.no_tokens(documents.shown, function.field)
            files.publish(wanted, reports, dtype)
            files.clear()
    except Error:
        raise
    except OSError as error:
        raise StorageError(
            f"{_WHERE}: cannot write {files.prefix}: {error.strerror or error}. Finished parts are reused "
            "if you repeat the call",
            errno=error.errno,
            shard=str(files.prefix),
        ) from error
    return Report(
        output=str(files.prefix),
        documents=sum(report.documents for report in reports),
        tokens=sum(report.tokens for report in reports),
        dtype=dtype.name,
        bytes=sum(files.sizes().values()),
        empty=sum(report.empty for report in reports),
        parts=len(parts),
        parts_found=len(found),
        skipped=[one for report in reports for one in report.skipped],
    )


def _made_on(on: str, job: Job, parts: Sequence[Part]) -> Iterator[PartReport]:
    return (report for _, report in ray_tasks.run(_WHERE, on, Job.make, job, parts))


def _all_made(
    made: Iterator[PartReport],
    reports: dict[int, PartReport],
    total: int,
    progress: Callable[[int, int], None] | None,
) -> list[PartReport]:
    """Makes the missing parts, and returns the reports of all parts in order."""
    tell = progress or (lambda done, total: None)
    tell(len(reports), total)
    for report in made:
        reports[report.number] = report
        tell(len(reports), total)
    return [reports[number] for number in sorted(reports)]


def _documents(source: Any, format: str | None, wanted: Wanted) -> Documents:
    if isinstance(source, Dataset):
        return Samples(source, wanted)
    names = lines_of(source) if format is None else None
    if names is None:
        return Samples(_opened(source, format, wanted), wanted)
    shown = os.fspath(source) if isinstance(source, str | os.PathLike) else "::".join(map(os.fspath, source))
    missing = next((name for name in names if "://" not in name and not os.path.exists(name)), None)
    if missing is not None:
        raise StorageError(f"{_WHERE}: no such file or folder: {missing}", shard=missing)
    return Lines(shown, names, wanted)


def _opened(source: Any, format: str | None, wanted: Wanted) -> Dataset:
    kind = "json" if wanted.is_chat else "text"
    dataset = open_source(source, format=format, fields=(f"{wanted.field}:{kind}",))
    if wanted.tools is None or wanted.tools not in (column.name for column in dataset.unopened):
        return dataset
    return open_source(source, format=format, fields=(f"{wanted.field}:json", f"{wanted.tools}:json"), missing="none")
