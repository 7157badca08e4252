# SPDX-License-Identifier: Apache-2.0
"""Remote shards of webdataset's pipelines, read by Feedline's client if their URLs have a prefix.

    wds.WebDataset("feedline.https://host/{000..146}.tar")          for   "https://host/{000..146}.tar"
    wds.WebDataset("feedline.pipe:curl -sf https://host/{0..9}.tar")       "pipe:curl -sf https://host/{0..9}.tar"

With lower="require" the loader reads all remote shards (`every` below) in this way, and no prefix is needed.

In each worker, this module replaces the stage that opens URLs; webdataset's own code reads the tars, and samples have
the URL without the prefix, as with curl. No command is run: only its URL is used, and options that could change the
bytes raise an error.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import importlib
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _engine
from ...errors import ConfigError

PREFIX = "feedline."
_NETWORK = ("http://", "https://", "s3://", "gs://", "pipe:")
_PIECE = 8 << 20  # bytes per request: at 50 ms and 1 Gbit/s, longer than two round trips
_AHEAD = 2  # requests per shard, so that one is in flight while the other is parsed

# Options of programs that print a URL, which do not change its bytes, with the number of arguments of each.
_CURL = {
    "-s": 0, "--silent": 0, "-S": 0, "--show-error": 0, "-f": 0, "--fail": 0, "-L": 0, "--location": 0, "-sS": 0,
    "-sf": 0, "-sL": 0, "-fsSL": 0, "-sSf": 0, "-sfL": 0, "-fsL": 0, "-sSfL": 0, "-sSL": 0, "-fs": 0, "-Ls": 0,
    "--retry": 1, "--retry-delay": 1, "--retry-max-time": 1, "--connect-timeout": 1, "--max-time": 1, "-m": 1,
    "--retry-all-errors": 0, "--retry-connrefused": 0, "--compressed": 0,
}  # fmt: skip
_AWS = {"--quiet": 0, "--only-show-errors": 0, "--no-progress": 0}
_Words = list[str]
_SHELL = "|;&<>$`\n\\*[]()~#"  # characters with a meaning for a shell


def plain_url(url: str) -> str:
    """The URL of a shard without the prefix, for webdataset and samples."""
    return url.removeprefix(PREFIX)


def is_asked_for(url: str, every: bool) -> bool:
    """Whether Feedline's client reads it. every: reads all that are remote, or read by a command."""
    return url.startswith((PREFIX, *_NETWORK) if every else PREFIX)


def location(url: str) -> str:
    """The location of a shard's bytes.

    Raises:
        ConfigError: it cannot be determined.
    """
    plain = plain_url(url)
    if not plain.startswith("pipe:"):
        return plain
    command = plain.removeprefix("pipe:").strip()
    words = _words(command)
    for program, found in (
        (["curl"], lambda rest: _one_url(rest, _CURL)),
        (["aws", "s3", "cp"], lambda rest: _one_url(rest, _AWS, behind="-")),
        (["gsutil", "cat"], lambda rest: _one_url(rest, {})),
        (["gsutil", "-q", "cat"], lambda rest: _one_url(rest, {})),
    ):
        if words[: len(program)] == program:
            source: str | None = found(words[len(program) :])
            if source is not None:
                return source
    asks, otherwise = f"{PREFIX}pipe:", f"remove {PREFIX!r}"
    if plain == url:
        asks, otherwise = 'lower="require" with pipe:', "use another lower="
    raise ConfigError(
        f"{asks} supports only `curl URL`, `aws s3 cp URL -` and `gsutil cat URL`, with options that do not change "
        f"the bytes, and without shell syntax; {otherwise} to have other commands run"
    )


def _words(command: str) -> _Words:
    """The words of a command; none if a shell would interpret it."""
    if any(sign in command for sign in _SHELL) and not _is_quoted(command):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _is_quoted(command: str) -> bool:
    """Whether all characters with a meaning for a shell are between single quotes."""
    outside = "".join(command.split("'")[::2])
    return command.count("'") % 2 == 0 and not any(sign in outside for sign in _SHELL + '"')


def _one_url(words: _Words, options: dict[str, int], behind: str | None = None) -> str | None:
    """The only word that is not one of these options; `behind`: the word that must follow it."""
    plain: _Words = []
    rest = iter(words)
    for word in rest:
        if word not in options:
            plain.append(word)
            continue
        for _ in range(options[word]):
            if next(rest, None) is None:
                return None
    if behind is not None:
        if plain[-1:] != [behind]:
            return None
        plain.pop()
    if len(plain) != 1 or plain[0].startswith("-") or "://" not in plain[0]:
        return None
    return plain[0]


class Stream:
    """A stored object from start to end, for one thread, with prefetched requests."""

    def __init__(self, url: str) -> None:
        stored = _engine.StoredSource(url)
        self._object = stored.object(stored.names[0])
        self._name = stored.names[0].decode(errors="replace")  # contains no secrets
        self._next = 0
        self._pieces: list[concurrent.futures.Future[bytes]] = []
        self._threads = concurrent.futures.ThreadPoolExecutor(_AHEAD, "feedline-shard")
        self._rest = memoryview(b"")

    def __str__(self) -> str:
        return f"<{self._name}>"

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, or fewer at the end; all if no size is given."""
        parts = []
        wanted = size if size is not None and size >= 0 else self._object.size
        while wanted > 0 and (self._rest or self._take_next()):
            parts.append(self._rest[:wanted])
            self._rest = self._rest[wanted:]
            wanted -= len(parts[-1])
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def _take_next(self) -> bool:
        while self._next < self._object.size and len(self._pieces) < _AHEAD:
            self._pieces.append(self._threads.submit(self._object.read, self._next, _PIECE))
            self._next += _PIECE
        if not self._pieces:
            return False
        piece = self._pieces.pop(0).result()
        self._rest = memoryview(piece)
        return bool(piece)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, RuntimeError):  # partly constructed, or at the interpreter's exit
            self.close()


def _opened(
    samples: Iterable[dict[str, Any]], handler: Callable[[Exception], bool], every: bool
) -> Iterator[dict[str, Any]]:
    """webdataset's url_opener, which opens the other shards."""
    iterators = importlib.import_module("webdataset.tariterators")
    for sample in samples:
        url = sample["url"]
        if not is_asked_for(url, every):
            yield from iterators.url_opener([sample], handler=handler)
            continue
        plain = plain_url(url)
        try:
            stream = Stream(location(url))
        except Exception as error:
            error.args = (*error.args, plain)
            if handler(error):
                continue
            break
        yield {**sample, "url": plain, "stream": stream}


class OpenShards:
    """Replaces webdataset's StreamingOpen in a pipeline."""

    def __init__(self, original: Any, every: bool) -> None:
        self._original, self._every = original, every

    def __call__(self, shards: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for shard in shards:
            url = shard["url"] if isinstance(shard, dict) else shard
            if is_asked_for(url, self._every):
                yield from _opened([{"url": url}], self._original.handler, self._every)
            else:
                yield from self._original([shard])


def _samples(
    shards: Iterable[Any],
    handler: Any = None,
    select_files: Any = None,
    rename_files: Any = None,
    *,
    every: bool,
) -> Any:
    """webdataset's tarfile_samples for shards that are opened here."""
    iterators = importlib.import_module("webdataset.tariterators")
    handler = handler or importlib.import_module("webdataset.filters").reraise_exception
    files = iterators.tar_file_expander(
        _opened(shards, handler, every), handler=handler, select_files=select_files, rename_files=rename_files
    )
    return iterators.group_by_keys(files, handler=handler)


def asked_for(stages: list[Any], every: bool = False) -> list[str]:
    """The shards of a pipeline that Feedline's client reads."""
    urls = getattr(stages[0], "urls", None) if stages else None
    return [url for url in urls or () if isinstance(url, str) and is_asked_for(url, every)]


def refuse(stages: list[Any], why: str, every: bool = False) -> None:
    """Raises ConfigError if shards have the prefix but this loader cannot read them."""
    if urls := asked_for(stages, every):
        which = f"begin with {PREFIX!r}" if all(url.startswith(PREFIX) for url in urls) else "are remote"
        raise ConfigError(f"{len(urls)} shards {which}, but Feedline cannot read them: {why}")


def _place(stages: list[Any]) -> int | None:
    """The index of the stage that opens shards."""
    cache = importlib.import_module("webdataset.cache")
    filters = importlib.import_module("webdataset.filters")
    iterators = importlib.import_module("webdataset.tariterators")
    for place, stage in enumerate(stages):
        if type(stage) is cache.StreamingOpen:
            return place
        if type(stage) is filters.FilterFunction and stage.f is iterators.tarfile_samples:
            return place
    return None


def check(stages: list[Any], every: bool = False) -> int:
    """The number of shards to read.

    Raises:
        ConfigError: one of them cannot be read.
    """
    urls = asked_for(stages, every)
    for url in urls:
        location(url)
    if urls and _place(stages) is None:
        refuse(stages, "the pipeline has no webdataset stage that opens shards without a cache", every)
    return len(urls)


def with_own_reads(stages: list[Any], every: bool = False) -> list[Any]:
    """The stages with shards opened here."""
    place = _place(stages) if asked_for(stages, every) else None
    if place is None:
        return list(stages)
    changed = list(stages)
    stage = stages[place]
    if hasattr(stage, "f"):
        changed[place] = copy.copy(stage)
        changed[place].f = functools.partial(_samples, every=every)
    else:
        changed[place] = OpenShards(stage, every)
    return changed
