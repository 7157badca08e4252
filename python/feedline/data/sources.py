# SPDX-License-Identifier: Apache-2.0
"""What can be opened: sources by their names, to datasets or to what is found in them."""

from __future__ import annotations

import bisect
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _engine
from .._engine import Inspection
from ..errors import ConfigError
from ..loader.unopened import columns_of, listed
from . import arguments, node_cache, recorded_calls, verification, words
from .dataset import Dataset, Origin
from .format_names import FORMATS

if TYPE_CHECKING:
    from . import shard_lists

_Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_FieldSpecs = str | Sequence[str] | None
_OLDEST_S = 2**31  # seconds, which no listing is older than


def open(
    source: _Source,
    *,
    format: str | None = None,
    fields: _FieldSpecs = None,
    missing: words.Missing = "error",
    dtype: None = None,
    window: None = None,
    index: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    verify: words.Verify | None = None,
    hedge: bool = False,
    listing_age: float = 3600,
    allow_commands: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    crowd: words.Crowd | None = None,
    **storage: Any,
) -> Dataset:
    """Opens a dataset of images and labels.

    Args:
        source: a folder of class folders; a ``.tar`` or ``.tar.gz`` in WebDataset's layout; several of them as a
            brace list (``"shards/{000..146}.tar"``), joined by ``::``, or as a list, in this order; TFRecord files
            (``"train-{00000..01023}-of-01024"``), Arrow and Parquet files (``"data/train-*.parquet"``) likewise; a
            folder of a split's Parquet files, or one that ``datasets`` saved; a folder of MDS or LitData; LMDB
            databases, a folder with data.mdb or a file; ``.npy`` and ``.npz`` files; a table (``.csv``, ``.tsv``,
            ``.jsonl``) that names files, or a folder of images with ``metadata.csv`` or ``metadata.jsonl``; the JSON of
            a COCO set, the folder of a Pascal VOC set, the YAML file of a YOLO set (docs/annotations.md); a list of
            shards that wids, timm or OpenCLIP has written (docs/formats.md); or a file that :meth:`Dataset.cache` has
            finished. Each a path, or a URL: ``"s3://bucket/train/{000..146}.tar"``, ``"https://..."``,
            ``"gs://..."``, ``"az://..."`` (docs/remote.md), or ``"file:///data/train"``, in which ``%`` stands before
            two hexadecimal digits. A URL of a folder ends in a slash. ``"pipe:COMMAND"``, where `allow_commands` says
            so: a tar that a command writes.
        format: ``"folder"``, ``"tar"``, ``"tfrecord"``, ``"arrow"``, ``"parquet"``, ``"mds"``, ``"litdata"``,
            ``"lmdb"``, ``"numpy"``, ``"table"``, ``"coco"``, ``"voc"``, ``"yolo"`` or ``"pixels"``; by default what the
            source is.
        fields: one spec per field; by default an image and a label. Of tars an extension, or alternatives split by
            ``;``: ``("jpg;png", "mask.png", "boxes.npy", "json", "txt", "cls")``. Of a folder a pattern with ``{key}``
            for the sample's name, which may have slashes: ``("images/{key}.jpg", "masks/{key}.png")``; such a field is
            called like the folder before ``{key}``, or as ``NAME=`` before the pattern says. What a field is follows
            from its extension: jpg, jpeg, png, webp are images, and masks (labels) where the field's name begins with
            "mask" or "seg"; cls, cls2, index, inx, id are integers; npy is an array; json, jsn are JSON; txt, text,
            caption, transcript are text; all else is bytes. Of TFRecord files a feature, or alternatives:
            ``("image=image/encoded", "image/class/label", "caption;title:text")``; what it is follows from its values
            (docs/formats.md). Of LMDB databases a pattern of keys, with ``{key}`` or a number as Python writes it:
            ``("image-{:09d}", "text=label-{:09d}")``, or ``"image"`` and ``"label"`` of Caffe's Datums. Of
            ``.npz`` files an array, ``("image=x:image", "y")``. Of tables a column, ``("image=path", "label=class")``.
            Of Arrow and Parquet files, MDS and LitData a column, or alternatives:
            ``("image", "objects.bbox:boxes")``. Of annotated images words: ``("image", "boxes", "labels", "masks")``
            (docs/annotations.md). ``:image``, ``:mask``, ``:value``, ``:array``, ``:bytes``, ``:text`` or ``:json`` at
            the end of a spec says it otherwise; ``:boxes`` (N, 4) and ``:keypoints`` (N, 2)
            or (N, K, 2), pixels, say of an array, or of lists in JSON, that it moves as the sample's images do.
        missing: what a sample is that lacks a field. ``"error"``: reading it is a :class:`DataError`, which
            ``on_error`` is about. ``"skip"``: it is left out; :meth:`Dataset.explain` says how many are. ``"none"``:
            the field is None there, which only fields that are lists can be.
        index: folder to keep indexes in. By default that of a tar, a TFRecord file or a database is beside it, else in
            the user's cache folder; a folder's is there if it has 10,000 samples or more.
        cache: folder of this machine for copies of what is read: whole shards or files, each fetched once for all
            processes that use the folder, and used by later runs; see docs/cache.md. Made where it is not there.
        cache_limit: how much the folder may take, of all processes together: bytes, ``"500 GiB"``, or a share of what
            its disk would have free without it. By default ``"50%"``.
        verify: with what is compared that is read as a whole, or copied into ``cache``: ``"manifest"``, the SHA-256 and
            the length of each shard in the ``feedline-pack.json`` that :func:`pack` left beside it; ``"headers"``, the
            checksums that S3 and Google Cloud Storage keep of their objects. What differs is read once more, and is a
            :class:`StorageError` then. Samples that are read by ranges of a shard are not compared: see docs/remote.md.
            By default nothing is.
        hedge: with a second request for one that is slower to be answered than 99 of 100 of its host, whichever is
            quicker; at most 3 in 100. Of URLs alone; see docs/remote.md.
        listing_age: of folders behind a network, which have no time that tells whether they have changed: how many
            seconds a listing that is kept of one is trusted. 0 lists anew. A sample that is gone or another one by
            then is an error, and the next opening lists anew. Of shards behind a network: 0 asks for the version of
            each; otherwise one whose index is kept is asked about while the first epoch runs, and one that changed is
            an error then (docs/remote.md).
        allow_commands: whether `source` may be ``"pipe:"`` and a command. It is given to ``/bin/sh -c`` as it stands,
            braces expanded before, once for a dataset; its standard output has to be a whole tar, and its exit status
            0. Never let such a source come from somebody whom you would not let use your shell.
        images: of COCO files, the folder that their file names are relative to. By default the first that has the first
            image of ``../SPLIT``, ``SPLIT``, ``../images/SPLIT``, ``images/SPLIT``, ``../images``, ``images``, the
            JSON's own folder and the one above it; SPLIT is ``train2017`` of ``instances_train2017.json``.
        split: of VOC sets a list of ``ImageSets``, of YOLO sets a key of the YAML file: ``"train"`` by default.
        crowd: of COCO files: ``"skip"`` leaves out annotations of crowds, as torchvision's detection recipe does, and
            is the default; ``"keep"`` takes them as all others. The field ``crowd_mask`` has them in both cases.
        dtype, window, storage: not in this version.

    Raises:
        ConfigError: no such format or field, the source is empty, a URL that this version has no reader for or that
            names another machine, an argument that this version does not have, a cache in a folder that holds something
            else, ``verify="manifest"`` of shards that no manifest beside them names.
        StorageError: the source cannot be listed or opened, or is not what `verify` compares it with; a command fails.
        DataError: a shard is damaged.

    Warns:
        UserWarning: a class of the folder is made of folders, as where the parent of ``train`` was opened.
    """
    given = {name: value for name, value in locals().items() if name != "storage"} | storage
    _refuse_later_arguments(dtype=dtype, window=window, **storage)
    said = annotations_of("open", images, split, crowd)
    origin = engine_source(source, format, fields, index, missing, allow_commands, said)
    age = arguments.real("open", "listing_age", listing_age)
    if age < 0:
        raise ConfigError(f"open: listing_age must be 0 or more seconds, not {listing_age!r}")
    proof = verification.of_open(origin[0], verify)
    hedges = arguments.flag("open", "hedge", hedge)
    kept = node_cache.of_open(cache, cache_limit)
    engine = _engine.open(*origin, *kept, int(min(age, _OLDEST_S)), *proof, hedges)
    if missing == "error":  # else some are left out
        _check_lists(source, engine)
    warn_of_merged_folders("open", engine)
    _log_columns(engine)
    return recorded_calls.made_by(Dataset(engine, origin), "data.sources:open", options=given)


def _log_columns(engine: _engine.Dataset) -> None:
    """Logs columns that are not opened, and units, extension types and modes that are not applied, at INFO."""
    left, remarks = columns_of(engine), engine.remarks
    if not left and not remarks:
        return
    import logging  # most datasets do not need it

    log = logging.getLogger("feedline")
    if left:
        log.info("%s: not opened: %s; fields= opens columns", engine.source, listed(left))
    for field, _, text in remarks:
        log.info("%s: field '%s': %s", engine.source, field, text)


def warn_of_merged_folders(where: str, engine: _engine.Dataset, callers: int = 1) -> None:
    """A parent of class folders, such as that of "train" and "val", opens as well: with "train" as a class.

    Args:
        callers: functions between this one and whoever it is told to.
    """
    name, *inner = engine.key(0).split("/")
    if engine.format != "folder" or not engine.classes or len(inner) < 2:
        return
    # keys stand by class, and within one by folder: images of the class folder itself would come first
    end = bisect.bisect_left(range(len(engine)), True, key=lambda i: engine.key(i).split("/")[0] != name)
    last = engine.key(end - 1).split("/")[1]
    if last != inner[0]:
        warnings.warn(
            f"{where}: the class folder '{name}' of '{engine.source}' holds no image itself, and the images of the "
            f"folders in it, '{inner[0]}' to '{last}', become one class; to have these folders as classes open "
            f"'{os.path.join(engine.source, name)}'",
            stacklevel=2 + callers,
        )


def inspect(
    source: _Source,
    *,
    format: str | None = None,
    fields: _FieldSpecs = None,
    missing: words.Missing = "error",
    index: str | os.PathLike[str] | None = None,
    allow_commands: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    crowd: words.Crowd | None = None,
) -> Inspection:
    """What a source holds and what a reader would drop, merge or refuse; works where :func:`open` fails.

    Arguments and exceptions are :func:`open`'s, but damage is among the findings instead of an exception. Decodes
    nothing, and lists folders anew.
    """
    said = annotations_of("inspect", images, split, crowd)
    return _engine.inspect(*engine_source(source, format, fields, index, missing, allow_commands, said))


def annotations_of(where: str, images: str | os.PathLike[str] | None, split: str | None, crowd: str | None) -> str:
    """What a call says of annotated images, as the engine takes it behind the name of the format."""
    folder = "" if images is None else arguments.path_text(where, "images", images)
    if split is not None and (not isinstance(split, str) or not split):
        raise ConfigError(f"{where}: split must be a name such as 'train', not {split!r}")
    word = "" if crowd is None else arguments.choice(where, "crowd", crowd, ("skip", "keep"))
    said = {"images": folder, "split": split or "", "crowd": word}
    if not any(said.values()):
        return ""
    import urllib.parse  # which most sources do not need

    return "&".join(f"{name}={urllib.parse.quote(value, '/')}" for name, value in said.items() if value)


def with_settings(format: str | None, settings: str) -> str:
    """The format as the engine takes it."""
    return f"{format or ''}?{settings}" if settings else format or ""


def _refuse_later_arguments(**values: Any) -> None:
    for name, value in values.items():
        if value is not None:
            raise ConfigError(f"open: {name} is not in this version of Feedline")


def shown_source(source: str, stored: _engine.StoredSource | None = None) -> str:
    """`source` as it was given, for what is printed and kept; where its URLs have secrets, the names without them."""
    if "://" not in source:
        return source
    names = (stored or _engine.StoredSource(source)).names
    text = "::".join(name.decode(errors="replace") for name in names)
    return text if "hidden-" in text else source


def engine_source(
    source: _Source,
    format: str | None,
    fields: _FieldSpecs,
    index: str | os.PathLike[str] | None,
    missing: str,
    allow_commands: bool = False,
    annotations: str = "",
) -> Origin:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    try:
        shards = [os.fspath(path) for path in paths]
    except TypeError:
        shards = []
    if not shards or not all(isinstance(shard, str) and shard for shard in shards):
        raise ConfigError(f"open: source must be a path or a list of shards, not {source!r}")
    specs = arguments.field_specs("open", fields)
    if format is not None:
        arguments.choice("open", "format", format, FORMATS)
    word = arguments.choice("open", "missing", missing, ("error", "skip", "none"))
    has_index = index is not None and not (isinstance(index, str) and not index)
    kept = arguments.output_path("open", "index", index) if has_index else ""
    commands = arguments.flag("open", "allow_commands", allow_commands)
    if format in (None, "tar") and not any("{key}" in spec for spec in specs):
        shards = [name for shard in shards for name in _packed_in(shard)]
    shards = [name for shard in shards for name in _named_by(shard)]
    return "::".join(shards), with_settings(format, annotations), specs, kept, word, commands


def _packed_in(source: str) -> list[str]:
    """The shards of a local folder of tars that :func:`pack` wrote; else the source itself."""
    from ..machine.storage import local_path  # most sources do not need it

    path = local_path(source)
    if not os.path.isdir(path):
        return [source]
    from . import shard_lists  # most sources do not need it

    return shard_lists.packed(path) or [source]


def _named_by(source: str) -> list[str]:
    """The shards of a list of them that another program has written; else the source itself."""
    listed = _listed_in(source)
    return [source] if listed is None else [shard.name for shard in listed]


def _listed_in(source: str) -> list[shard_lists.Listed] | None:
    if ".json" not in source.lower():
        return None
    from . import shard_lists  # most sources do not need it

    return shard_lists.of(source)


def _check_lists(source: _Source, engine: _engine.Dataset) -> None:
    """Whether shards have as many samples as the lists say that name them."""
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    listed = [_listed_in(str(os.fspath(path))) for path in paths]
    if all(shards is None for shards in listed):
        return
    from . import shard_lists

    all_shards = [
        shard
        for path, shards in zip(paths, listed, strict=True)
        for shard in (shards or [shard_lists.Listed(str(os.fspath(path)), None)])
    ]
    shard_lists.check(all_shards, engine)
