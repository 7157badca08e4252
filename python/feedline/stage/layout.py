# SPDX-License-Identifier: Apache-2.0
"""Maps a source's objects to paths, so that the copy opens like the source."""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import _engine
from ..data.source_spec import SourceSpec
from ..errors import ConfigError
from ..machine.storage import local_path
from ..pack.sums import sums_of

_UNSAFE = ("", ".", "..")


class Layout(NamedTuple):
    """`objects` maps names in the storage to paths in the folder.

    `opened` is the path to pass to `feedline.open`, relative to the folder. `samples` is the number of samples of class
    folders and single databases; None for shards, which are copied with their manifest and compared with it.
    """

    objects: dict[bytes, str]
    opened: list[str]
    samples: int | None


def layout_of(spec: SourceSpec, stored: _engine.StoredSource) -> Layout:
    """Raises ConfigError if the source cannot be staged, and the errors of opening a folder."""
    names = stored.names
    if len(names) == 1 and stored.is_folder(names[0]):
        return _of_folder(spec, names[0], stored)
    return _of_shards(spec.source, stored)


def _of_folder(spec: SourceSpec, root: bytes, stored: _engine.StoredSource) -> Layout:
    dataset = spec.open(listing_age=0)
    folder = root if root.endswith(b"/") else root + b"/"
    if dataset.format == "lmdb":
        return _of_databases(folder, dataset, stored)
    if dataset.format != "folder":
        raise ConfigError(
            f"stage: only folders of classes, tars or LMDB files can be staged, but the format of {spec.source} is "
            f"{dataset.format!r}: pass its shards, as a pattern such as '*.{dataset.format}'"
        )
    if not dataset.classes:
        raise ConfigError(
            "stage: only class folders and shards can be staged, not a folder with a file for each field: pack it with "
            "`feedline pack --fields`, and stage its shards"
        )
    keys = [dataset.key(index) for index in range(len(dataset))]
    return Layout({folder + os.fsencode(key): _safe(key) for key in keys}, [""], len(keys))


def _of_databases(folder: bytes, dataset: _engine.Dataset, stored: _engine.StoredSource) -> Layout:
    """Maps an LMDB database, and its list of keys if it has one, or the databases that `feedline pack` wrote."""
    database = folder + b"data.mdb"
    if not os.path.exists(database):
        (packed,) = sums_of(stored, [database]).values()
        return Layout({folder + os.fsencode(name): _safe(name) for name in packed.shards}, [""], None)
    names = ["data.mdb", *(["meta_info.txt"] if os.path.exists(folder + b"meta_info.txt") else [])]
    return Layout({folder + os.fsencode(name): name for name in names}, [""], len(dataset))


def _of_shards(source: str, stored: _engine.StoredSource) -> Layout:
    names = stored.names
    paths = [_path_of(name, stored.is_remote) for name in names]
    heads = [os.path.dirname(path) for path in paths]
    common = os.path.commonpath(heads) if len(set(heads)) > 1 else heads[0]
    targets = [_safe(path[len(common) :].lstrip("/")) for path in paths]
    objects = dict(zip(names, targets, strict=True))
    if len(set(objects.values())) < len(objects):
        raise ConfigError("stage: two shards of the source have the same name; stage them into separate folders")
    return Layout(objects, _opened(source, targets), None)


def _opened(source: str, targets: list[str]) -> list[str]:
    """Returns a pattern if the source is a pattern with braces only in the file name; otherwise returns the shards."""
    text = local_path(source)
    if text.lower().startswith(("http://", "https://")):
        text = text.partition("?")[0]
    head, _, last = text.rpartition("/")
    return [last] if "{" in last and "{" not in head and "::" not in text else targets


def _path_of(name: bytes, is_remote: bool) -> str:
    path = os.fsdecode(name)
    if not is_remote:
        return os.path.abspath(path)
    scheme, _, rest = path.partition("://")
    return rest.partition("?")[0] if scheme in ("http", "https") else rest


def _safe(target: str) -> str:
    if any(part in _UNSAFE for part in target.split("/")) or "\0" in target:
        raise ConfigError(f"stage: an object of the source is named '{target}', which is not a path inside a folder")
    return target
