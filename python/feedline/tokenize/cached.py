# SPDX-License-Identifier: Apache-2.0
"""Tokens of a dataset in the user's cache folder: written once by one process, then read by all.

:meth:`Dataset.pack_sequences` needs the lengths of all documents, which are unknown until they are tokenized.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _engine
from ..data.dataset import Dataset
from ..data.map.mapping import BadField, UnusableFunction
from ..data.mixtures import mix
from ..data.sources import open as open_source
from ..data.text.tokenizing import IDS, MASK, ChatTokens, TextTokens, Tokens
from ..data.vision.chats import ImageChatTokens
from ..data.vision.packed_images import MixedImages, PackedImages
from ..errors import ConfigError, DataError, StorageError
from ..machine import limits as host_limits
from .command import write
from .documents import Document, Part, part_size, parts_of
from .progress_line import ProgressLine
from .state import Output

_WHERE = "pack_sequences"
_VERSION = 1  # of the tokens: another number ignores existing entries
_POLL_S = 0.1
_IN_MEMORY = ("arrays", "rows", "table")  # their fingerprints depend on all values
_AT_ONCE = 256  # samples
_log = logging.getLogger("feedline")
_ADVICE = ", or leave out the sample with on_error"


class Stored(NamedTuple):
    """The token files of a dataset, and the images of its documents, if it has any."""

    engine: _engine.Dataset
    images: PackedImages | MixedImages | None


def stored(dataset: Dataset, field: str | None, options: Mapping[str, Any], *, skips: bool) -> Stored:
    """Returns the token files of a dataset whose only function is that of :meth:`Dataset.tokenize`, for packing with
    ``options``. If ``skips``, refused samples are documents without tokens.

    Raises:
        ConfigError: the tokens cannot be cached, because changes of a function or of the samples would not be noticed.
        DataError: a sample is refused.
        StorageError: the cache folder cannot be written.
    """
    function = _function_of(dataset)
    if field not in (None, IDS):
        raise ConfigError(f"{_WHERE}: tokenize() makes the field {IDS!r}; omit field={field!r}")
    length = None
    if isinstance(function, ImageChatTokens):
        _check_images(dataset, options)
        length = options["length"] if options["long"] == "truncate" else None
    if dataset.format == "mix":
        return _stored_mixture(dataset, function, options, skips=skips)
    documents = _Tokenized(dataset, function, length, skips)
    arguments = {"version": _VERSION, **function.identity(), **({"truncate": length} if length else {})}
    arguments |= {"on_error": "skip"} if skips else {}
    key = {**arguments, "source_fingerprint": documents.fingerprint}
    try:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{_WHERE}: the variables of the chat template are not JSON ({error}), so the tokens cannot be cached; "
            f"{_write_first(dataset, function)}"
        ) from None
    entry = _cache_folder(dataset, function) / digest[:32]
    files = Output(str(entry / "train"))
    if not _is_complete(files):
        with _storage_errors(dataset, function, files):
            entry.mkdir(parents=True, exist_ok=True)
            with _only_writer(entry / "lock", dataset.source):
                if not _is_complete(files):
                    try:
                        _fill(files, documents, function, arguments)
                    except DataError as error:
                        raise _with_advice(error) from error.__cause__
    elif files.folder.exists():
        files.clear()  # left by a process that was killed after it had written the tokens
    engine = open_source(str(files.idx))._engine
    if not isinstance(function, ImageChatTokens):
        return Stored(engine, None)
    return Stored(engine, PackedImages(function, dataset._preceding, files.images))


def _stored_mixture(
    dataset: Dataset, function: TextTokens | ChatTokens, options: Mapping[str, Any], *, skips: bool
) -> Stored:
    """Returns the mixture of the token files of its datasets."""
    mixed, *calls = dataset._calls
    if mixed.name != "data.mixtures:mix" or calls[0].name != "map":  # tokenize() calls map()
        raise ConfigError(
            f"{_WHERE}: {calls[0].name} is not supported between mix() and tokenize(); apply it to each dataset "
            "before mix()"
        )
    (parts,) = mixed.arguments
    found = []
    for part in parts:
        of_part = function.for_dataset(part) if isinstance(function, ImageChatTokens) else function
        tokenized = part.map(of_part)
        tokenized._preceding = part
        found.append(stored(tokenized, None, options, skips=skips))
    mixture = {name: value for name, value in mixed.options.items() if value is not None}
    engine = mix([Dataset(one.engine, part._origin) for one, part in zip(found, parts, strict=True)], **mixture)._engine
    images = [one.images for one in found if one.images is not None]
    return Stored(engine, MixedImages(images, [len(part) for part in parts]) if images else None)


def _check_images(dataset: Dataset, options: Mapping[str, Any]) -> None:
    if options["long"] == "split" or options["method"] == "concat":
        given = 'long="split"' if options["long"] == "split" else 'method="concat"'
        raise ConfigError(
            f'{_WHERE}: {given} would cut images; pass long="truncate", which cuts before an image that does not fit, '
            'or long="drop", with method="best_fit"'
        )
    if dataset._preceding is None:
        raise ConfigError(f"{_WHERE}: call it directly after tokenize(), without another operation between them")


def _fill(files: Output, documents: _Tokenized, function: Any, arguments: dict[str, Any]) -> None:
    files.remove()  # damaged ones
    with ProgressLine(f"tokenizing {documents.shown}", "samples", documents.samples) as line:
        documents.read_samples = line.add
        size = function.tokenizer.size
        report = write(documents, _AsRead(function), size, files, arguments, skips=False, num_workers=1)
        line.end(f"{report.tokens:,} tokens, stored in {files.prefix.parent} for later runs")


def _is_complete(files: Output) -> bool:
    try:
        return files.description() is not None
    except (DataError, ConfigError):  # files have been damaged or removed
        return False


def _function_of(dataset: Dataset) -> TextTokens | ChatTokens:
    """Returns the function of `tokenize`, if the tokens depend only on the samples and this function."""
    steps = dataset._chain.steps if dataset._chain is not None else ()
    functions = [step.function for step in steps]
    found = next((one for one in functions if isinstance(one, TextTokens | ChatTokens)), None)
    if found is None:
        raise ConfigError(
            f"{_WHERE}: the results of map have unknown lengths; write the tokens in advance: call "
            "tokenize(), or feedline.tokenizing.tokenize(), or store the lists as a table"
        )
    advice = _write_first(dataset, found)
    if len(functions) > 1:
        other = next(str(step) for step in steps if step.function is not found)
        raise ConfigError(
            f"{_WHERE}: changes of the code of {other} would not be noticed, so the tokens cannot be cached; {advice}"
        )
    if not found.tokenizer.digest_is_exact:
        raise ConfigError(
            f"{_WHERE}: changes of the tokenizer {found.tokenizer.library}, which is Python code, would not be "
            f"noticed, so its tokens cannot be cached; {advice}"
        )
    return found


def _write_first(dataset: Dataset, function: TextTokens | ChatTokens) -> str:
    """Returns advice to write the tokens to a path that the user chooses."""
    if function.has_images:
        return "write the samples to JSONL or Parquet files and open them, or use the tokenizer of a model's folder"
    fields = f"messages={function.field!r}" if function.has_masks else f"field={function.field!r}"
    return (
        f"write them with feedline.tokenizing.tokenize(dataset, OUT, tokenizer=..., {fields}), where dataset is the "
        "one before tokenize(), and pack feedline.open(OUT + '.idx')"
    )


# ---- the folder ----


def _cache_folder(dataset: Dataset, function: TextTokens | ChatTokens) -> Path:
    """Returns the folder of all entries, below the folder that the engine uses for indexes."""
    given, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if given.startswith("/"):
        return Path(given) / "feedline" / "tokens"
    if home:
        return Path(home) / ".cache" / "feedline" / "tokens"
    raise StorageError(
        f"{_WHERE}: the tokens have no cache folder: neither XDG_CACHE_HOME nor HOME is set; "
        f"{_elsewhere(dataset, function)}"
    )


def _elsewhere(dataset: Dataset, function: TextTokens | ChatTokens) -> str:
    set_folder = "set XDG_CACHE_HOME to a folder with enough space"
    return set_folder if function.has_images else f"{_command(dataset, function)}, or {set_folder}"


def _command(dataset: Dataset, function: TextTokens | ChatTokens) -> str:
    option = "--messages" if function.has_masks else "--field"
    return (
        f"run `feedline tokenize {dataset.source} OUT --tokenizer MODEL {option} {function.field}` first, and "
        "pack feedline.open('OUT.idx')"
    )


def _with_advice(error: DataError) -> DataError:
    """Replaces the advice for loaders, which can leave out samples."""
    error.message = error.message.replace(_ADVICE, "")
    error.message += '; to leave out such samples, pass on_error="skip" to pack_sequences'
    error.args = (error.message,)
    return error


@contextlib.contextmanager
def _storage_errors(dataset: Dataset, function: TextTokens | ChatTokens, files: Output) -> Iterator[None]:
    """Names the command that writes tokens elsewhere if the cache folder is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            files.remove()
            files.clear()
        if isinstance(error, StorageError) and not str(error.shard or "").startswith(str(files.prefix)):
            raise  # of the source
        raise StorageError(
            f"{_WHERE}: cannot store the tokens in {files.prefix.parent}: {os.strerror(error.errno or errno.EIO)}; "
            f"{_elsewhere(dataset, function)}",
            errno=error.errno,
            shard=str(files.prefix.parent),
        ) from error


@contextlib.contextmanager
def _only_writer(path: Path, shown: str) -> Iterator[None]:
    """Waits until no other process holds the lock, which is released when its holder ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with ProgressLine(f"waiting for the process that tokenizes {shown}") as line:
            while not _locked(handle):
                line.show()
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# ---- the samples ----


class _Tokenized:
    """The samples of a tokenized dataset. Threads make their tokens: tokenizers release the GIL."""

    def __init__(
        self, dataset: Dataset, function: TextTokens | ChatTokens, length: int | None = None, skips: bool = False
    ) -> None:
        self._dataset, self._function, self._skips = dataset, function, skips
        self._length = length  # at which conversations with images are truncated
        self.shown, self.samples = dataset.source, len(dataset)
        self.read_samples: Callable[[int], None] = lambda count: None
        self._per_part = part_size(self.samples)
        described = (dataset.fingerprint, _stamps(dataset, function), self._per_part)
        self.fingerprint = hashlib.sha256(repr(described).encode()).hexdigest()

    def parts(self) -> list[Part]:
        return parts_of(self.samples, self._per_part)

    def read(self, part: Part) -> Iterator[Document]:
        with concurrent.futures.ThreadPoolExecutor(host_limits.usable_cpus(), "feedline-tokens") as threads:
            for begin in range(part.begin, part.end, _AT_ONCE):
                some = range(begin, min(begin + _AT_ONCE, part.end))
                yield from threads.map(self._document, some)
                self.read_samples(len(some))

    def _document(self, index: int) -> Document:
        try:
            return self._made(index)
        except DataError as error:
            if not self._skips:
                raise
            _log.warning("sample %d is left out: %s", index, error)
            return Document("", Tokens(np.empty(0, np.int64), np.empty(0, bool), np.array([[0, -1]], np.int32)))

    def _made(self, index: int) -> Document:
        if isinstance(self._function, ImageChatTokens):
            return self._image_chat(index, self._function)
        sample = dict(self._dataset._engine.sample(index, 0, 0))
        return Document("", Tokens(sample[IDS], sample.get(MASK)))

    def _image_chat(self, index: int, function: ImageChatTokens) -> Document:
        """Reads only the headers of images."""
        assert self._dataset._preceding is not None
        sample = dict(self._dataset._preceding._engine.sample(index, 0, 0))
        try:
            tokens, inputs, lost = function.chat(sample, length=self._length)
        except BadField as error:
            raise self.error("", error.field, f"{error} [sample {index}]") from error.__cause__
        except UnusableFunction as error:
            raise ConfigError(f"{_WHERE}: {error}") from None
        rows = [*(one.size for one in inputs), (0, lost)]
        return Document("", tokens._replace(images=np.array(rows, np.int32)))

    def error(self, key: str, field: str, why: str) -> DataError:
        return DataError(f"{_WHERE}: field '{field}': {why} [dataset {self.shown}]", dataset=self.shown)


class _AsRead:
    """The tokens that the samples already have."""

    def __init__(self, function: TextTokens | ChatTokens) -> None:
        self.field, self.has_masks, self.has_images = function.field, function.has_masks, function.has_images

    def many(self, values: Sequence[Tokens]) -> Sequence[Tokens]:
        return values


def _files_below(root: str) -> Iterator[Path]:
    """Yields the files of a folder and of those that it links to; each folder once, as links may form a circle."""
    seen = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:
            folders.clear()
            continue
        seen.add(place)
        yield from (Path(folder, name) for name in names)


def _stamps(dataset: Dataset, function: TextTokens | ChatTokens) -> list[tuple[str, Any]]:
    """Returns sizes and times of the source's files, if the fingerprint does not depend on all values."""
    if dataset.format in _IN_MEMORY:
        return []
    source = dataset.source
    if "://" not in source and os.path.isdir(source):
        files = sorted(_files_below(source))
        found = ((str(file), file.stat()) for file in files if file.exists())
        return [(name, (one.st_size, one.st_mtime_ns)) for name, one in found if stat.S_ISREG(one.st_mode)]
    try:
        shards = _engine.StoredSource(source)
        objects = ((name, shards.object(name)) for name in shards.shards().names)
        return [(os.fsdecode(name), (one.size, one.stamp)) for name, one in objects]
    except (StorageError, ConfigError) as error:
        raise ConfigError(
            f"{_WHERE}: changes of {source} would not be noticed ({error}), so the tokens cannot be cached; "
            f"{_write_first(dataset, function)}"
        ) from None
