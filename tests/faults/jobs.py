# SPDX-License-Identifier: Apache-2.0
"""The commands and functions that write files, on data small enough to run many times a second.

A job runs in a folder ``root`` and reads data that never changes in ``source``. ``run`` returns a digest of what it
delivered, and ``read`` a digest of what a later reader finds, or raises feedline.Error.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_data
import made_tokenizers

import feedline

Step = Callable[[Path, Path], str]
_BUDGET = 1 << 20  # the default, the free disk space, is more than a limit of address space allows to map
_TOKENIZER = ("tokenizers", "jinja2")
_LARGE = (1500, 1100)  # JPEGs of this size have checkpoints


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes:
        continues: its writes only save time later, so that it delivers correct samples although they fail.
        required: paths below the root that it cannot do without even if it continues.
        prepare: makes the root's content before the run.
        same_files: whether a later run restores the bytes of every file. Not if the order of records in a file is that
            of reading, or if an index or a copy may be missing.
    """

    name: str
    run: Step
    read: Step
    continues: bool = False
    required: tuple[str, ...] = ()
    prepare: Callable[[Path, Path], None] = lambda source, root: None
    same_files: bool = True
    needs: tuple[str, ...] = ()  # modules


def make_sources(folder: Path) -> None:
    """Photos, tars of them, a gzipped tar, two large JPEGs, and texts with a tokenizer, if its library is installed."""
    made_data.make_folder(folder / "photos", per_class=4)
    tars = made_data.make_tars(folder / "photos", folder / "tars", shards=3)
    (folder / "gz").mkdir()
    (folder / "gz" / "000.tar.gz").write_bytes(gzip.compress(tars[0].read_bytes(), mtime=0))
    for number in range(2):
        path = folder / "large" / "class" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made_data.encoded(made_data.photo(number, *_LARGE), quality=90))
    if importlib.util.find_spec("tokenizers") is not None:
        made_tokenizers.trained(folder / "model")
    words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    texts = [" ".join(words[number % 9 :] + words[: number % 5]) for number in range(60)]
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    chats = [[{"role": "user", "content": text}, {"role": "assistant", "content": text[::-1]}] for text in texts[:20]]
    (folder / "chats.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))


def command(*arguments: object) -> str:
    """Runs the command in this process."""
    from feedline.cli import main

    sys.argv = ["feedline", *map(str, arguments)]
    if status := main():
        raise SystemExit(status)
    return ""


def digest(values: Iterable[Any]) -> str:
    made = hashlib.sha256()
    for value in values:
        made.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    return made.hexdigest()


def samples(dataset: feedline.Dataset, **options: Any) -> str:
    with dataset.loader(5, num_workers=1, output="numpy", **options) as loader:
        return digest(field for batch in loader for field in batch)


def _opened(output: Any, **options: Any) -> str:
    return samples(feedline.open(output, **options).resize((24, 24)))


def _packed(name: str, *more: object, pattern: str = "", **options: Any) -> Job:
    """``pattern`` and ``options`` are for a reader, which opens the folder by default."""

    def run(source: Path, root: Path) -> str:
        return command("pack", source / "photos", root / "out", "--num-workers", 1, *more)

    def read(source: Path, root: Path) -> str:
        return _opened(root / "out" / pattern, **options)

    return Job(f"pack {name}", run, read, needs=("pyarrow",) if name == "parquet" else ())


def _pack_pixels(source: Path, root: Path) -> str:
    return command("pack", source / "photos", root / "out.pixels", "--raw", 24, "--num-workers", 1)


def _pack_ranges(source: Path, root: Path) -> str:
    for first, end in ((0, 2), (2, 3)):
        shards = ("--samples-per-shard", 4, "--shard-range", f"{first}:{end}")
        command("pack", source / "photos", root / "out", "--num-workers", 1, *shards)
    return command("merge-index", root / "out")


def _tokenize(name: str, *more: object) -> Job:
    def run(source: Path, root: Path) -> str:
        file = "chats.jsonl" if name == "chats" else "texts.jsonl"
        return command("tokenize", source / file, root / "train", "--tokenizer", source / "model", *more)

    def read(source: Path, root: Path) -> str:
        dataset = feedline.open(root / "train.idx")
        return digest(value for index in range(len(dataset)) for value in dataset[index])

    return Job(f"tokenize {name}", run, read, needs=_TOKENIZER)


def _copy(name: str) -> Callable[[Path, Path], None]:
    """Without indexes, which earlier jobs may have stored next to the source."""
    return lambda source, root: shutil.copytree(source / name, root / name, ignore=shutil.ignore_patterns(".feedline"))


def _pixel_cache(source: Path, root: Path) -> str:
    cached = feedline.open(source / "photos").resize((24, 24)).cache(root / "train.pixels", budget=_BUDGET)
    return samples(cached.random_horizontal_flip())


def _storage_cache(source: Path, root: Path) -> str:
    shards = feedline.open(sorted((source / "tars").glob("*.tar")), cache=root / "cache")
    return samples(shards.resize((24, 24)))


def _unpacked(source: Path, root: Path) -> str:
    return _opened([source / "gz" / "000.tar.gz"])


def _indexed(source: Path, root: Path) -> str:
    return _opened(sorted((root / "tars").glob("*.tar")))


def _crops(source: Path, root: Path) -> str:
    return samples(feedline.open(root / "large").random_resized_crop(32))


def _sequences(source: Path, root: Path) -> str:
    texts = feedline.open(source / "texts.jsonl", fields="text").tokenize(source / "model", field="text")
    return samples(texts.pack_sequences(64))


def _stage(source: Path, root: Path) -> str:
    return command("stage", source / "tars" / "{000..002}.tar", root / "out")


def _of_command(*arguments: str) -> Step:
    """``ROOT`` in an argument is the root folder."""
    return lambda source, root: command(*(argument.replace("ROOT", str(root)) for argument in arguments))


def _text_of(*names: str) -> Step:
    """The files, which other programs read."""

    def read(source: Path, root: Path) -> str:
        return digest((root / name).read_bytes() if (root / name).exists() else "missing" for name in names)

    return read


JOBS = (
    _packed("tar", "--samples-per-shard", 5),
    _packed("shuffled", "--samples-per-shard", 5, "--shuffle", "--restart-interval", "auto"),
    _packed("mds", "--to", "mds", "--samples-per-shard", 5, "--compression", "gz"),
    _packed("tfrecord", "--to", "tfrecord", "--samples-per-shard", 5),
    _packed("lmdb", "--to", "lmdb", "--samples-per-shard", 6, pattern="{000000..000001}.lmdb",
            fields=["{key}.image", "{key}.label"]),
    _packed("parquet", "--to", "parquet", "--samples-per-shard", 5),
    Job("pack pixels", _pack_pixels, lambda source, root: _opened(root / "out.pixels"), same_files=False),
    Job("pack ranges", _pack_ranges, lambda source, root: _opened(root / "out")),
    _tokenize("texts", "--append-eod", "--num-workers", 1),
    _tokenize("chats", "--messages", "messages", "--num-workers", 1),
    Job("tokens cache", _sequences, _sequences, needs=_TOKENIZER),
    Job("stage", _stage, lambda source, root: _opened(root / "out" / "{000..002}.tar")),
    Job("pixel cache", _pixel_cache, _pixel_cache, same_files=False),
    Job("storage cache", _storage_cache, _storage_cache, continues=True, required=("cache", "cache/feedline-cache"),
        same_files=False),
    Job("unpacked copy", _unpacked, _unpacked),
    Job("index", _indexed, _indexed, continues=True, prepare=_copy("tars"), same_files=False),
    Job("index --checkpoints", _of_command("index", "ROOT/large", "--checkpoints"), _crops, prepare=_copy("large")),
    Job("listing", _of_command("index", "ROOT/photos"), _text_of("photos/feedline-listing.txt"),
        prepare=_copy("photos")),
    Job("index --as wids", _of_command("index", "ROOT/tars/{000..002}.tar", "--as", "wids"),
        _text_of("tars/index.json"), prepare=_copy("tars")),
    Job("verify --resume", _of_command("verify", "ROOT/tars/{000..002}.tar", "--resume", "ROOT/progress"),
        _text_of(), prepare=_copy("tars")),
)  # fmt: skip


def _careless(source: Path, root: Path) -> str:
    """Writes a file in place, and does not report errors."""
    with contextlib.suppress(OSError), open(root / "out", "wb", buffering=0) as file:
        file.write(b"samples")
    return ""


# Has every kind of fault that the campaigns look for.
PLANTED = Job("planted", _careless, _text_of("out"))
