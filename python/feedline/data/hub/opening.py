# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a dataset on the Hugging Face Hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _engine
from ...errors import ConfigError
from . import card, file_kinds, split_files

if TYPE_CHECKING:
    from ..dataset import Dataset

_PREFIX = "hf://datasets/"
_INDEX = "index.json"  # of MDS and LitData
_PACKED = "feedline-pack.json"
_CONVERTED = "@refs/convert/parquet"
_NOT_OF_FILES = ("index", "verify", "images", "crowd")  # arguments of feedline.open
_TABLES = {"csv": "table", "json": "table", "parquet": "parquet", "arrow": "arrow", "webdataset": "tar"}


class Found(NamedTuple):
    """The files of a split. `root`: the URL of the commit, which ends in a slash; `files` are relative to it.

    `kind`: one of file_kinds, or "folder" for one folder or index that describes its files.
    """

    root: str
    kind: str
    files: list[str]
    metadata: list[str]

    @property
    def metadata_urls(self) -> list[str]:
        return [self.root + file for file in self.metadata]

    @property
    def urls(self) -> list[str]:
        return [self.root + file for file in self.files]

    @property
    def format(self) -> str:
        return _TABLES.get(self.kind, "")

    @property
    def labels(self) -> list[str] | None:
        """The class of each file, the name of its folder; None if files are at different depths or of one class."""
        folders = [file.rpartition("/")[0].rpartition("/")[2] for file in self.files]
        depths = {file.count("/") for file in self.files}
        return folders if len(depths) == 1 and len(set(folders)) > 1 else None


def open_dataset(options: dict[str, Any], open_source: Callable[..., Dataset]) -> Dataset:
    """Opens a source with the arguments of :func:`feedline.open`, which is `open_source`."""
    source, split, config = (options.pop(name) for name in ("source", "split", "config"))
    if not _is_one(source):
        if split is not None or config is not None:
            raise ConfigError("open: split and config apply to one dataset on the Hub, not to a list of files")
        return open_source(_pinned(source), **options)
    found = find(source, split, config)
    if _are_files(found, options["format"]):
        return _files(found, options)
    options["format"] = options["format"] or found.format or None
    return open_source(found.metadata_urls or found.urls, **options)


def are_files(source: Any, format: str | None, annotations: Mapping[str, str]) -> bool:
    """Whether :func:`open_dataset` opens a source as a list of images or audio files."""
    return _is_one(source) and _are_files(find(source, annotations.get("split"), annotations.get("config")), format)


def _are_files(found: Found, format: str | None) -> bool:
    return found.kind in file_kinds.FOLDERS and format is None and not found.metadata and found.kind != "video"


def _files(found: Found, options: dict[str, Any]) -> Dataset:
    """Opens images or audio files in the order of their paths, with the names of their folders as labels."""
    from ..memory.in_memory import files  # imports the dataset

    taken = {name: options[name] for name in ("fields", "cache", "cache_limit", "hedge")}
    if unused := sorted(name for name, value in options.items() if name in _NOT_OF_FILES and value is not None):
        raise ConfigError(f"open: {unused[0]} does not apply to {found.kind} files on the Hub without metadata")
    return files(found.urls, label=found.labels, **taken)


def source_of(
    source: Any, format: str | None, annotations: Mapping[str, str]
) -> tuple[list[str], str | None, dict[str, str]]:
    """Returns the URLs of a source's files at their commits, their format, and the other annotations."""
    rest = {name: value for name, value in annotations.items() if name not in ("split", "config")}
    if not _is_one(source):
        return _pinned(source), format, dict(annotations)
    found = find(source, annotations.get("split"), annotations.get("config"))
    if found.kind not in file_kinds.FOLDERS or format is not None:
        return found.urls, format or found.format or None, rest
    folder = os.path.commonpath([file.rpartition("/")[0] for file in found.files + found.metadata])
    return [f"{found.root}{folder}/" if folder else found.root], None, rest


def _is_one(source: Any) -> bool:
    return isinstance(source, str) and "::" not in source


def _pinned(source: Any) -> list[str]:
    """Returns the parts of a list with the commits of their revisions, each of which is looked up once."""
    parts = source.split("::") if isinstance(source, str) else list(source)
    roots: dict[str, str] = {}
    pinned = []
    for part in parts:
        if not isinstance(part, str) or not part.lower().startswith(_PREFIX):
            pinned.append(part)
            continue
        whole = _whole_name(part)
        if whole not in roots:
            roots[whole] = _engine.pin_hub(whole).rstrip("/")
        pinned.append(roots[whole] + part[len(whole) :])
    return pinned


def _whole_name(url: str) -> str:
    """Returns the URL without its path: ``hf://datasets/ORG/NAME[@REVISION]``."""
    parts = url.split("/")
    return "/".join(parts[: 7 if parts[4].endswith("@refs") else 5])


def find(source: str, split: str | None = None, config: str | None = None) -> Found:
    """Returns the files of a split.

    Args:
        source: ``hf://datasets/ORG/NAME[@REVISION][/path]``. A path is a file, a pattern of files, or a folder whose
            files' names determine the splits. Without a path, the card's configurations apply.
        split: a name; None if there is only one.
        config: the name of a configuration in the card; None for the default one.

    Raises:
        ConfigError: the split or configuration does not exist, must be chosen, or has files that cannot be opened; the
            message lists those that exist.
        DataError: the card is damaged.
        StorageError: the Hub refuses, or cannot be reached.
    """
    pinned = _engine.pin_hub(source)
    root, path = _parts_of(pinned)
    is_pattern = split_files.has_wildcard(path)
    folder = path.partition("*")[0].partition("?")[0].partition("[")[0].rpartition("/")[0] if is_pattern else path
    folder = folder.strip("/")
    paths = [name for name, _ in _engine.list_hub(root + folder)]
    if not paths and folder and not is_pattern:
        return _file_of(root, path)
    if is_pattern:
        splits = {"train": split_files.matching(path, paths)}
        if not splits["train"]:
            raise ConfigError(f"open: no file of {root} matches {path!r}; it has {_shown(paths)}")
    elif (described := _described(root, folder, paths, split)) is not None:
        return described
    elif _CONVERTED in source or "@~parquet" in source:
        splits = _converted(root, folder, paths, config)
    else:
        splits = _splits_of(root, folder, paths, config)
    return _chosen(root + folder, root, splits, split)


def _parts_of(pinned: str) -> tuple[str, str]:
    """Returns the URL of the commit with a slash, and the path."""
    parts = pinned.split("/", 5)
    return "/".join(parts[:5]) + "/", parts[5]


def _file_of(root: str, path: str) -> Found:
    return Found(root, file_kinds.kind_of([path]), [path], [])


def _below(folder: str, paths: Sequence[str]) -> list[str]:
    """Returns the paths below a folder, relative to it."""
    prefix = folder + "/" if folder else ""
    return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]


def _described(root: str, folder: str, paths: Sequence[str], split: str | None) -> Found | None:
    """Returns the folder, or the one of the split in it, if an index or a manifest lists its shards."""
    for name in (_INDEX, _PACKED):
        folders = {path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] == name}
        if not folders:
            continue
        base = folder if split is None else f"{folder}/{split}".strip("/")
        if base not in folders and split is None and len(folders) == 1 and not _below(folder, paths):
            base = folders.pop()
        if base in folders:
            inside = base + "/" if base else ""
            return Found(root, "folder", [inside + name if name == _INDEX else inside], [])
        names = sorted(_below(folder, [one + "/" for one in folders]))
        if folder not in folders and names:
            raise _no_split(root + folder, split, [one.strip("/") for one in names])
    return None


def _converted(root: str, folder: str, paths: Sequence[str], config: str | None) -> dict[str, list[str]]:
    """Returns the splits of the Hub's conversion to Parquet, whose files are CONFIG/SPLIT/0000.parquet."""
    files: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        if path.endswith(".parquet") and path.count("/") == 2:
            name, split, _ = path.split("/")
            files.setdefault(name, {}).setdefault(split, []).append(path)
    if folder and not config:
        config, _, of_split = folder.partition("/")
        if of_split:
            return {of_split: files.get(config, {}).get(of_split, [])}
    if config is None and len(files) == 1:
        config = next(iter(files))
    if config not in files:
        raise _no_config(root, config, list(files))
    return files[config]


def _splits_of(root: str, folder: str, paths: Sequence[str], config: str | None) -> dict[str, list[str]]:
    configs = [] if folder else _configs_of(root, paths)
    if not configs:
        if config not in (None, "default"):
            raise _no_config(root + folder, config, ["default"])
        chosen = card.Config("default", folder)
    elif config is None:
        chosen = card.default_of(root, configs)
    else:
        named = [one for one in configs if one.name == config]
        if not named:
            raise _no_config(root, config, [one.name for one in configs])
        chosen = named[0]
    below = _below(chosen.data_dir, paths)
    patterns = chosen.data_files or split_files.patterns_by_name(below)
    prefix = chosen.data_dir + "/" if chosen.data_dir else ""
    found = split_files.files_of(patterns, below)
    return {split: [prefix + file for file in files] for split, files in found.items()}


def _configs_of(root: str, paths: Sequence[str]) -> list[card.Config]:
    readme, override = (_text_of(root, name) if name in paths else None for name in (card.CARD, card.OVERRIDE))
    return card.configs_of(root, readme, override)


def _text_of(root: str, name: str) -> str:
    stored = _engine.StoredSource(root + name)
    file = stored.object(stored.names[0])
    return file.read(0, file.size).decode(errors="replace")


def _chosen(where: str, root: str, splits: dict[str, list[str]], split: str | None) -> Found:
    splits = {name: files for name, all_files in splits.items() if (files := file_kinds.known(all_files))}
    if not splits:
        raise ConfigError(f"open: {where} has no files of a known kind (Parquet, CSV, JSON lines, tars, images, ...)")
    if split is None and len(splits) == 1:
        split = next(iter(splits))
    if split is None or split not in splits:
        raise _no_split(where, split, list(splits))
    files = splits[split]
    kind = file_kinds.kind_of(files)
    chosen = file_kinds.of_kind(files, kind)
    metadata = [file for file in files if kind in file_kinds.FOLDERS and file.rpartition("/")[2] in file_kinds.METADATA]
    if kind not in _TABLES and kind not in file_kinds.FOLDERS:
        raise ConfigError(
            f"open: the split {split!r} of {where} consists of {kind or 'unknown'} files, which this version cannot "
            f"open: {_shown(files)}; name other files by a pattern, as in {root}PATTERN"
        )
    return Found(root, kind, chosen, metadata)


def _no_split(where: str, split: str | None, names: list[str]) -> ConfigError:
    if split is None:
        return ConfigError(f"open: {where} has several splits: pass one of them as split=: {_listed(names)}")
    hint = ""
    if f"partial-{split}" in names:
        hint = (
            f"; 'partial-{split}' is only its first part, because the Hub converts at most 5 GB: open the original "
            "branch for all rows"
        )
    return ConfigError(f"open: {where} has no split {split!r}, only {_listed(names)}{hint}")


def _no_config(where: str, config: str | None, names: list[str]) -> ConfigError:
    if config is None:
        return ConfigError(f"open: {where} has several configurations: pass one of them as config=: {_listed(names)}")
    return ConfigError(f"open: {where} has no configuration {config!r}, only {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _shown(paths: Sequence[str], most: int = 5) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(map(repr, paths[:most])) + more if paths else "no files"
