# SPDX-License-Identifier: Apache-2.0
"""Recognises remote shards in webdataset's pipelines that Feedline's client reads: shards whose URLs have a prefix.

    wds.WebDataset("feedline.https://host/{000..146}.tar")          for   "https://host/{000..146}.tar"
    wds.WebDataset("feedline.pipe:curl -sf https://host/{0..9}.tar")       "pipe:curl -sf https://host/{0..9}.tar"

With lower="require", Feedline's client reads all remote shards (`every` below), and no prefix is needed. Commands are
not run: only their URL is used, and options that could change the bytes raise an error.
"""

from __future__ import annotations

import importlib
import shlex
from typing import Any

from ....errors import ConfigError

PREFIX = "feedline."
_NETWORK = ("http://", "https://", "s3://", "gs://", "pipe:")

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
    """Returns the URL of a shard without the prefix, for webdataset and samples."""
    return url.removeprefix(PREFIX)


def is_native(url: str, every: bool) -> bool:
    """Returns whether Feedline's client reads this URL. every: whether it reads all remote shards and all shards read
    by commands.
    """
    return url.startswith((PREFIX, *_NETWORK) if every else PREFIX)


def location(url: str) -> str:
    """Returns the location of a shard's bytes.

    Raises:
        ConfigError: the location cannot be determined.
    """
    plain = plain_url(url)
    if not plain.startswith("pipe:"):
        return plain
    command = plain.removeprefix("pipe:").strip()
    words = _words(command)
    for program, found in (
        (["curl"], lambda rest: _one_url(rest, _CURL)),
        (["aws", "s3", "cp"], lambda rest: _one_url(rest, _AWS, then="-")),
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
        f"the bytes, and without shell syntax; to run other commands, {otherwise}"
    )


def _words(command: str) -> _Words:
    """Returns the words of a command; empty if a shell would interpret any of them."""
    if any(sign in command for sign in _SHELL) and not _is_quoted(command):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _is_quoted(command: str) -> bool:
    """Returns whether all characters that have a meaning for a shell are between single quotes."""
    outside = "".join(command.split("'")[::2])
    return command.count("'") % 2 == 0 and not any(sign in outside for sign in _SHELL + '"')


def _one_url(words: _Words, options: dict[str, int], then: str | None = None) -> str | None:
    """Returns the only word that is not in `options`, if that word is a URL. `then`: a word that must follow the
    URL.
    """
    plain: _Words = []
    rest = iter(words)
    for word in rest:
        if word not in options:
            plain.append(word)
            continue
        for _ in range(options[word]):
            if next(rest, None) is None:
                return None
    if then is not None:
        if plain[-1:] != [then]:
            return None
        plain.pop()
    if len(plain) != 1 or plain[0].startswith("-") or "://" not in plain[0]:
        return None
    return plain[0]


def native_urls(stages: list[Any], every: bool = False) -> list[str]:
    """Returns the shards of a pipeline that Feedline's client reads."""
    urls = getattr(stages[0], "urls", None) if stages else None
    return [url for url in urls or () if isinstance(url, str) and is_native(url, every)]


def refuse(stages: list[Any], why: str, every: bool = False) -> None:
    """Raises ConfigError if this loader cannot read shards that Feedline's client should read."""
    if urls := native_urls(stages, every):
        which = f"begin with {PREFIX!r}" if all(url.startswith(PREFIX) for url in urls) else "are remote"
        raise ConfigError(f"{len(urls)} shards {which}, but Feedline cannot read them: {why}")


def opening_stage(stages: list[Any]) -> int | None:
    """Returns the index of the stage that opens shards; None if there is none."""
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
    """Returns the number of shards that Feedline's client reads.

    Raises:
        ConfigError: one of the shards cannot be read.
    """
    urls = native_urls(stages, every)
    for url in urls:
        location(url)
    if urls and opening_stage(stages) is None:
        refuse(stages, "the pipeline has no webdataset stage that opens shards without a cache", every)
    return len(urls)
