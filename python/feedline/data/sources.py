# SPDX-License-Identifier: Apache-2.0
"""Opens sources as datasets, or inspects them."""

from __future__ import annotations

import bisect
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _engine
from .._engine import Inspection
from ..errors import ConfigError, Error
from ..loader.unopened import columns_of, listed
from ..machine import media_libraries
from . import arguments, hub, literals, plugins, recorded_calls, videos
from . import volumes as volume_files
from .dataset import Dataset
from .format_names import EPISODES, FORMATS, MANIFESTS
from .source_spec import SourceSpec
from .storage import node_cache, verification

if TYPE_CHECKING:
    from . import shard_lists

_OLDEST_S = 2**31  # maximum age of a listing, in seconds


def open(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    missing: literals.Missing = "error",
    dtype: None = None,
    window: None = None,
    index: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_limit: int | str | None = None,
    verify: literals.Verify | None = None,
    hedge: bool = False,
    checkpoints: bool = True,
    listing_age: float = 3600,
    allow_commands: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    crowd: literals.Crowd | None = None,
    documents: bool = False,
    volumes: bool = False,
    delta_timestamps: Mapping[str, Sequence[float]] | None = None,
    **storage: Any,
) -> Dataset:
    """Opens a dataset.

    Args:
        source: a path or a URL, several of them joined by ``::``, or a list, read in this order:

            - a folder of class folders with images, or of images next to a ``metadata.csv``, ``.jsonl`` or ``.parquet``
            - shards: tars in WebDataset's layout, TFRecord, Parquet or Arrow files; their folder, which is one dataset
              with its subfolders if it has only one split
            - folders of MDS or LitData, a folder saved by ``datasets``, LMDB databases, ``.npy`` and ``.npz`` files
            - tables (``.csv``, ``.tsv``, ``.jsonl``, also compressed), which may contain paths of files
            - folders of audio files, with or without class folders; manifests of speech: NeMo's and Lhotse's JSON
              lines, Kaldi's data folders, Common Voice's tables, LibriSpeech (docs/audio.md)
            - the JSON of a COCO set, the folder of a Pascal VOC set, the YAML of a YOLO set (docs/annotations.md)
            - videos: class folders, a folder, one file, a list of files, tables with their paths, tars, or a text of
              lines ``path label``. The field is ``video``; see :meth:`Dataset.clip`
            - volumes: NIfTI files, or a folder of them; Zarr arrays and groups; HDF5 files. A tuple of paths is a
              sample with one volume for each field: ``[("image.nii.gz", "mask.nii.gz"), ...]``, by default the fields
              ``image`` and ``mask``, and for NIfTI ``affine``, float64 (4, 4); see docs/volumes.md
            - recordings of robots in LeRobot's formats v3.0, v2.1 and v2.0: a folder or its URL (docs/robots.md)
            - token files of Megatron, by the names of their indexes (``"train_text_document.idx"``). A sample is the
              field ``tokens`` (int64) with ``tokens_length``, and ``mode`` if the index has modes
            - a list of shards by wids, timm or OpenCLIP, or a file that :meth:`Dataset.cache` has finished

            In names, ``{000..146}`` and ``{a,b}`` are expanded, and if files can be listed, also ``*``, ``[a-c]``,
            ``**`` and (local files only) ``?``: ``"data/train-*.parquet"``, ``"s3://bucket/train/{000..146}.tar"``. See
            docs/formats.md for the files in a folder and for Hive partitions (``label=cat/``), docs/remote.md for URLs
            (``https``, ``s3``, ``gs``, ``az``, ``file``); the URL of a folder ends in a slash.
            ``"hf://datasets/ORG/NAME[@REVISION][/path]"`` is a dataset on the Hugging Face Hub (docs/remote.md). With
            `allow_commands`, ``"pipe:COMMAND"`` reads a tar from a command.
        format: ``"folder"``, ``"tar"``, ``"tfrecord"``, ``"arrow"``, ``"parquet"``, ``"mds"``, ``"litdata"``,
            ``"lmdb"``, ``"numpy"``, ``"megatron"``, ``"datatrove"``, ``"table"``, ``"coco"``, ``"voc"``,
            ``"yolo"`` or ``"pixels"``; for speech ``"nemo"``, ``"kaldi"``, ``"lhotse"``, ``"common_voice"`` or
            ``"librispeech"`` (docs/audio.md); for robots ``"lerobot"``; by default recognised by name and content.
        fields: one spec per field; by default an image and a label. By format:

            - tars: an extension, or alternatives joined by ``;``: ``("jpg;png", "mask.png", "boxes.npy", "cls")``
            - folders: a pattern with ``{key}``, the sample's name, which may contain slashes:
              ``("images/{key}.jpg", "masks/{key}.png")``. The field has the name of the folder before ``{key}``, or
              ``NAME`` if the spec begins with ``NAME=``
            - TFRecord: a feature, or alternatives: ``("image=image/encoded", "image/class/label", "text;title:text")``
            - LMDB: a pattern of keys, with ``{key}`` or a number in Python's format:
              ``("image-{:09d}", "text=label-{:09d}")``; ``"image"`` and ``"label"`` for Caffe's Datums
            - ``.npz``: an array, ``("image=x:image", "y")``
            - Arrow, Parquet, MDS, LitData: a column, or alternatives: ``("image=path;file", "objects.bbox:boxes")``
            - Arrow and Parquet also: several columns of numbers as one float32 array of shape (columns):
              ``"x=width+height"``; with ``:nan``, NaN in place of nulls (float64 for one column of integers);
              with ``:valid``, bools that are false for nulls
            - CSV and JSON tables: a column: ``("image=path", "objects.bbox:boxes")``
            - Zarr groups and HDF5 files: the path of an array, ``("image=scan/volume", "scan/mask")``
            - annotated images: ``("image", "boxes", "labels", "masks")`` (docs/annotations.md)

            The kind of a field follows from its extension (docs/fields.md) or its type (docs/formats.md). A suffix of
            the spec overrides it: ``:image``, ``:mask``, ``:video``, ``:value``, ``:array``, ``:bytes``, ``:text``,
            ``:json``, or, for arrays and lists of pixel coordinates that follow the image, ``:boxes`` (N, 4) and
            ``:keypoints`` (N, 2) or (N, K, 2).
        missing: how samples that lack a field are handled. ``"error"``: reading such a sample raises
            :class:`DataError`; see ``on_error``. ``"skip"``: such samples are left out; :meth:`Dataset.explain` shows
            their number. ``"none"``: the field is None, which only fields that are batched as lists support.
        index: folder for indexes. By default, the index of a shard, a database or a COCO JSON is stored next to it in
            the hidden folder ``.feedline``, or in the user's cache folder if that folder is not writable; the listing
            of a folder with 10,000 or more samples is stored in the cache folder.
        cache: local folder for copies of complete shards or files, each fetched once for all processes that use the
            folder, and reused by later runs; see docs/storage-cache.md. The folder is created if necessary.
        cache_limit: maximum size of this folder for all processes together: bytes, ``"500 GiB"``, or a share of the
            space that would be free on the disk without the cache. By default ``"50%"``.
        verify: checks data that is read completely or copied into ``cache``: ``"manifest"`` compares the SHA-256 and
            length of each shard with the ``feedline-pack.json`` that ``feedline pack`` wrote next to it; ``"headers"``
            compares the checksums that S3 and Google Cloud Storage store for their objects. Data that differs is read
            once more; a second difference raises a :class:`StorageError`. Samples that are read as byte ranges of a
            shard are not compared: see docs/remote.md. By default nothing is compared.
        hedge: sends a second request if a request is slower than 99 % of the requests to its host, and uses the faster
            response; at most 3 % of requests are repeated. It only applies to URLs; see docs/remote.md.
        checkpoints: while a large JPEG is decoded, records positions at which the decoding of later crops can start;
            the pixels are the same. Positions are stored next to the shard, in ``index``, or in the user's cache
            folder, and take at most 1 % of the images' bytes; see docs/patches.md.
        listing_age: seconds for which a stored listing of a remote folder is used, because remote folders have no
            modification time; 0 always lists the folder. Reading a sample that was removed or changed since the listing
            raises an error, and the next call lists the folder again. For remote shards, 0 requests the version of each
            shard; otherwise shards with a stored index are checked during the first epoch, and a changed shard raises
            an error (docs/remote.md).
        allow_commands: whether `source` may be ``"pipe:"`` followed by a command. After brace expansion, the command is
            passed to ``/bin/sh -c``, once per dataset; its standard output must be a complete tar, and its exit status
            0. Only accept such a source from people to whom you would give access to your shell.
        images: for COCO files, the folder to which file names are relative. By default the first of ``../SPLIT``,
            ``SPLIT``, ``../images/SPLIT``, ``images/SPLIT``, ``../images``, ``images``, the JSON's own folder and its
            parent that contains the first image; SPLIT is ``train2017`` for ``instances_train2017.json``.
        split: for VOC sets a list of ``ImageSets``, for YOLO sets a key of the YAML file: by default ``"train"``. For
            datasets on the Hub, a split by the rules of ``datasets``; required if there are several.
        config: for datasets on the Hub, the name of a configuration; None: the default configuration of the card.
        crowd: for COCO files, ``"skip"``, the default, leaves out crowd annotations, like torchvision's detection
            recipe; ``"keep"`` treats them like all others. The field ``crowd_mask`` contains the crowd annotations in
            both cases.
        documents: for Megatron's token files: a sample is a document, whose sequences are joined, instead of a
            sequence.
        volumes: reads each ``.npy`` file as one volume, instead of one sample per row.
        delta_timestamps: for LeRobotDatasets: times by key, in seconds relative to each sample, which must be multiples
            of 1/fps within 0.1 ms. The field then has a row or frame for each time. Outside the episode, it repeats
            the first or last row, and ``KEY_is_pad``, bool of shape (times), is true.
        dtype, window, storage: not supported in this version.

    Raises:
        ConfigError: the format or a field does not exist, the source is empty, a URL cannot be read or names another
            machine, an argument is not supported in this version, the cache folder contains other files, or shards have
            no manifest for ``verify="manifest"``.
        StorageError: the source cannot be listed or opened, fails the check of `verify`, or a command fails.
        DataError: a shard is damaged.

    Warns:
        UserWarning: a class folder contains only folders, for example because the parent of ``train`` was opened.
    """
    given = {name: value for name, value in locals().items() if name != "storage"} | storage
    if hub.is_source(source):
        return hub.open_dataset(given, open)
    if (in_python := plugins.format_of(source, format)) is not None:
        from . import python_formats

        made = python_formats.open_by(in_python, source, _changed(given))
        return recorded_calls.made_by(made, "data.sources:open", options=given)
    _refuse_later_arguments(dtype=dtype, window=window, **storage)
    media_libraries.use_packaged()
    are_volumes = arguments.flag("open", "volumes", volumes)
    if format is None and volume_files.are_volumes(source, are_volumes):
        made = volume_files.open_volumes(source, fields, index, cache, cache_limit)
        return recorded_calls.made_by(made, "data.sources:open", options=given)
    if are_volumes:
        raise ConfigError(f"open: volumes=True is for .npy files, not {source!r}")
    if delta_timestamps is not None or (_has_episodes(source) if format is None else _is_any(format, EPISODES)):
        from .lerobot import opening as lerobot

        folder = spec_of(source, format, fields, None, "error").source
        if format is not None and format not in EPISODES:
            raise ConfigError(f"open: delta_timestamps is for LeRobotDatasets, not for format={format!r}")
        made = lerobot.open_lerobot(folder, fields, delta_timestamps, cache, cache_limit, hedge)
        return recorded_calls.made_by(made, "data.sources:open", options=given)
    manifest = format_of_manifest(source) if format is None else format if isinstance(format, str) else ""
    if manifest in MANIFESTS:
        from .manifests import opening

        made = opening.open_manifests(_paths_of(source), manifest, fields, cache, cache_limit, hedge)
        return recorded_calls.made_by(made, "data.sources:open", options=given)
    if format is None and fields is None and (found := videos.of(source)) is not None:
        from .memory.in_memory import files  # imports this module's dataset

        specs = ["video=image:video"] if found.labels is None else ["video=image:video", "label"]
        return files(
            found.paths,
            label=found.labels,
            fields=specs,
            root=found.root,
            cache=cache,
            cache_limit=cache_limit,
            hedge=hedge,
        )
    annotations = annotations_of("open", images, split, crowd, config)
    spec = spec_of(source, format, fields, index, missing, allow_commands, annotations)
    spec = spec._replace(documents=arguments.flag("open", "documents", documents))
    age = arguments.real("open", "listing_age", listing_age)
    if age < 0:
        raise ConfigError(f"open: listing_age must be 0 or more seconds, not {listing_age!r}")
    engine = spec.open(
        listing_age=min(age, _OLDEST_S),
        hedge=arguments.flag("open", "hedge", hedge),
        checkpoints=arguments.flag("open", "checkpoints", checkpoints),
        **verification.of_open(spec.source, verify),
        **node_cache.of_open(cache, cache_limit),
    )
    if missing == "error":  # a single warning would omit some of them
        _check_lists(source, engine)
    warn_of_merged_folders("open", engine)
    if format is None and engine.format == "table":
        _refuse_parts(engine)
    _log_columns(engine)
    return recorded_calls.made_by(Dataset(engine, spec), "data.sources:open", options=given)


def _changed(given: Mapping[str, Any]) -> list[str]:
    """Returns the names of arguments of `open`, other than source and format, that differ from their defaults."""
    import inspect as signatures

    known = signatures.signature(open).parameters
    return [
        name
        for name, value in given.items()
        if name not in ("source", "format") and (name not in known or value != known[name].default)
    ]


def _is_any(format: Any, names: Sequence[str]) -> bool:
    return isinstance(format, str) and format in names


def _has_episodes(source: Any) -> bool:
    """Whether the source is the folder of a LeRobotDataset. For the URL of a folder, this takes one request."""
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(path, str):
        return False
    if not os.path.isfile(os.path.join(path, "meta", "info.json")) and not ("://" in path and path.endswith("/")):
        return False
    from .lerobot import metadata

    return metadata.is_dataset(metadata.Folder(path))


def format_of_manifest(source: Any) -> str:
    """Returns the format of a manifest or several, or an empty string for other sources."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not all(isinstance(one, str | os.PathLike) for one in given):
        return ""
    if not all(_may_be_manifest(os.fspath(one)) for one in given):
        return ""
    from .manifests import opening

    try:
        return opening.format_of(_paths_of(source))
    except Error:
        return ""  # reported when the source is opened


def opened_rows(source: Any, format: Any, fields: Any, annotations: Mapping[str, str]) -> Dataset | None:
    """Opens a source that is a manifest, has episodes, or is a list of files on the Hub; returns None for others."""
    if hub.is_source(source) and hub.are_files(source, format, annotations):
        split, config = annotations.get("split"), annotations.get("config")
        return open(source, fields=fields, split=split, config=config)
    is_manifest = (
        _is_any(format, (*MANIFESTS, *EPISODES))
        if format is not None
        else format_of_manifest(source) in MANIFESTS or _has_episodes(source)
    )
    return open(source, format=format, fields=fields) if is_manifest else None


def _refuse_parts(engine: _engine.Dataset) -> None:
    """Raises ConfigError for a NeMo manifest that is opened as a table, which would ignore the parts of its files."""
    names = {name for name, *_ in engine.roles()} | {column.name for column in columns_of(engine)}
    if {"audio_filepath", "offset"} <= names:
        raise ConfigError(
            f"open: {engine.source!r} is a manifest whose lines choose parts of files by 'offset', and manifests must "
            'be local JSON lines without a byte-order mark; copy it, or read whole files with format="table"'
        )


def _may_be_manifest(path: Any) -> bool:
    """Whether a path may be a manifest. For other paths, the readers are not imported."""
    if not isinstance(path, str) or "://" in path:
        return False
    return path.endswith((".jsonl", ".json", ".jsonl.gz", ".tsv")) or os.path.isdir(path)


def _paths_of(source: Any) -> list[str]:
    """Returns the files or folders of a source, with their patterns expanded."""
    joined = spec_of(source, None, None, None, "error").source
    return [
        path
        for one in ([joined] if os.path.exists(joined) else joined.split("::"))
        for path in (
            [one] if os.path.exists(one) or "://" in one else map(os.fsdecode, _engine.StoredSource(one).names)
        )
    ]


def _log_columns(engine: _engine.Dataset) -> None:
    """Logs, at INFO level, columns that are not opened, and units, extension types and modes that are not applied."""
    left, remarks = columns_of(engine), engine.remarks
    if not left and not remarks:
        return
    import logging  # most datasets do not need it

    log = logging.getLogger("feedline")
    if left:
        can_open = [column.spec for column in left if column.spec]
        advice = (
            f'; to open a column, add it to fields=, for example as "{can_open[0]}"'
            if can_open
            else "; this version cannot read these columns"
        )
        log.info("%s: not opened: %s%s", engine.source, listed(left), advice)
    for field, _, text in remarks:
        log.info("%s: field '%s': %s", engine.source, field, text)


def warn_of_merged_folders(where: str, engine: _engine.Dataset, callers: int = 1) -> None:
    """Warns if the source is a parent of class folders, such as the folder that contains "train" and "val"; opening it
    makes "train" a class.

    Args:
        callers: number of frames between this function and the user's code.
    """
    name, *inner = engine.key(0).split("/")
    if engine.format != "folder" or not engine.classes or len(inner) < 2:
        return
    # keys are sorted by class, then by folder: images of the class folder itself would come first
    end = bisect.bisect_left(range(len(engine)), True, key=lambda i: engine.key(i).split("/")[0] != name)
    last = engine.key(end - 1).split("/")[1]
    if last != inner[0]:
        warnings.warn(
            f"{where}: the class folder '{name}' of '{engine.source}' contains no images itself, and the images of the "
            f"folders in it, '{inner[0]}' to '{last}', become one class; to use these folders as classes, open "
            f"'{os.path.join(engine.source, name)}'",
            stacklevel=2 + callers,
        )


def inspect(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    fields: str | Sequence[str] | None = None,
    missing: literals.Missing = "error",
    index: str | os.PathLike[str] | None = None,
    allow_commands: bool = False,
    images: str | os.PathLike[str] | None = None,
    split: str | None = None,
    config: str | None = None,
    crowd: literals.Crowd | None = None,
) -> Inspection:
    """Reports a source's contents, and samples that a reader would drop, merge or reject. Also works for sources that
    :func:`open` cannot open.

    Arguments and exceptions are the same as for :func:`open`, but damage is reported as a finding. Decodes nothing, and
    ignores stored listings.
    """
    if (in_python := plugins.format_of(source, format)) is not None:
        raise ConfigError(
            f"inspect: the format {in_python!r} is defined in Python and cannot be inspected; open the source and read "
            "its samples"
        )
    annotations = annotations_of("inspect", images, split, crowd, config)
    if (dataset := opened_rows(source, format, fields, annotations)) is not None:
        return dataset.inspect()
    if format is None and volume_files.are_volumes(source, False):
        return open(source, fields=fields).inspect()
    return spec_of(source, format, fields, index, missing, allow_commands, annotations).inspect()


def annotations_of(
    where: str,
    images: str | os.PathLike[str] | None,
    split: str | None,
    crowd: str | None,
    config: str | None = None,
) -> dict[str, str]:
    """Returns the options for annotated images and for datasets on the Hub that were passed."""
    given = {}
    if images is not None:
        given["images"] = arguments.path_text(where, "images", images)
    if split is not None:
        if not isinstance(split, str) or not split:
            raise ConfigError(f"{where}: split must be a name such as 'train', not {split!r}")
        given["split"] = split
    if config is not None:
        if not isinstance(config, str) or not config:
            raise ConfigError(f"{where}: config must be the name of a configuration, not {config!r}")
        given["config"] = config
    if crowd is not None:
        given["crowd"] = arguments.choice(where, "crowd", crowd, ("skip", "keep"))
    return given


def _refuse_later_arguments(**values: Any) -> None:
    for name, value in values.items():
        if value is not None:
            raise ConfigError(f"open: {name} is not supported in this version of Feedline")


def shown_source(source: str, stored: _engine.StoredSource | None = None) -> str:
    """Returns `source` for display and storage: as given, or as a list of names without the secrets in URLs."""
    if "://" not in source:
        return source
    names = (stored or _engine.StoredSource(source)).names
    text = "::".join(name.decode(errors="replace") for name in names)
    return text if "hidden-" in text else source


def spec_of(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: str | None,
    fields: str | Sequence[str] | None,
    index: str | os.PathLike[str] | None,
    missing: str,
    allow_commands: bool = False,
    annotations: Mapping[str, str] = {},
) -> SourceSpec:
    """Returns the checked arguments of :func:`open`."""
    if hub.is_source(source):
        source, format, annotations = hub.source_of(source, format, annotations)
    if "config" in annotations:
        raise ConfigError(f"open: config applies only to datasets on the Hub (hf://datasets/...), not to {source!r}")
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        raise ConfigError(
            f"open: source is a table ({type(source).__name__}); pass it to feedline.table(table, image=...)"
        )
    if isinstance(source, Mapping):
        raise ConfigError(
            f"open: source must be a path or a list of shards, not {source!r:.200}; pass a dict of columns to "
            "feedline.table(columns, image=...), and a dict of arrays to feedline.arrays(**arrays)"
        )
    try:
        shards = [os.fspath(path) for path in paths]
    except TypeError:
        shards = []
    if not shards or not all(isinstance(shard, str) and shard for shard in shards):
        raise ConfigError(f"open: source must be a path or a list of shards, not {source!r}")
    if len(shards) > 1 and all(_is_image(shard) for shard in shards):
        raise ConfigError(
            f"open: source is a list of images, beginning with {shards[0]!r}; call feedline.files(paths, label=labels)"
        )
    specs = arguments.field_specs("open", fields)
    if format is not None:
        arguments.choice("open", "format", format, (*FORMATS, *MANIFESTS, *EPISODES, *plugins.formats()))
    word = arguments.choice("open", "missing", missing, ("error", "skip", "none"))
    has_index = index is not None and not (isinstance(index, str) and not index)
    index_path = arguments.output_path("open", "index", index) if has_index else ""
    commands = arguments.flag("open", "allow_commands", allow_commands)
    for shard in shards:
        _refuse_printf_pattern(shard)
    shards = [name for shard in shards for name in _named_by(shard)]
    return SourceSpec("::".join(shards), format or "", specs, index_path, word, commands, annotations)


def _refuse_printf_pattern(source: str) -> None:
    """Raises ConfigError for a name such as ``shard-%03d.tar``, unless such a file exists."""
    found = re.search(r"%0?(\d*)d", source)
    if found is None or re.search(r"://|^pipe:|[{*?]", source) or os.path.exists(source):
        return
    digits = int(found[1] or 1)
    first, last = (f"{number:0{digits}d}" for number in (0, 146))
    raise ConfigError(
        f"open: {source!r} contains {found[0]!r}, which is not expanded; write the first and last number in braces: "
        f"{source.replace(found[0], f'{{{first}..{last}}}')!r}"
    )


def _is_image(path: str) -> bool:
    from .image_formats import EXTENSIONS

    return path.rpartition(".")[2].lower() in EXTENSIONS


def _named_by(source: str) -> list[str]:
    """Returns the shards if the source is a shard list written by another program, or else the source itself."""
    listed = _listed_in(source)
    return [source] if listed is None else [shard.name for shard in listed]


def _listed_in(source: str) -> list[shard_lists.Listed] | None:
    if ".json" not in source.lower():
        return None
    from . import shard_lists  # most sources do not need it

    return shard_lists.of(source)


def _names_of(path: str | os.PathLike[str]) -> list[str]:
    return [os.fsdecode(name) for name in _engine.StoredSource(os.fspath(path)).shards().names]


def _check_lists(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], engine: _engine.Dataset) -> None:
    """Checks that every shard contains as many samples as its list states."""
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    listed = [_listed_in(str(os.fspath(path))) for path in paths]
    if all(shards is None for shards in listed):
        return
    from . import shard_lists

    all_shards = [
        shard
        for path, shards in zip(paths, listed, strict=True)
        for shard in (shards or [shard_lists.Listed(name, None) for name in _names_of(path)])
    ]
    shard_lists.check(all_shards, engine)
