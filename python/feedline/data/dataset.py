# SPDX-License-Identifier: Apache-2.0
"""Datasets and the operations on their images."""

from __future__ import annotations

import bisect
import functools
import math
import operator
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

from .. import _engine
from .._engine import Inspection
from ..errors import ConfigError
from ..loader import batches
from ..loader.loader import Loader, Output
from ..machine import ranks
from . import arguments, draws

_Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_Origin = tuple[str, str, list[str], str, str]  # source, format, fields, index folder, missing: the engine's arguments
_FieldSpecs = str | Sequence[str] | None
_Fields = str | Sequence[str] | None


class _ShapeAndDtype(NamedTuple):
    shape: tuple[int, ...]
    dtype: str


class FieldSpec(_ShapeAndDtype):
    """One field of a sample: its shape without the batch extent, and NumPy's name of its dtype.

    An extent of -1 means that samples differ: a sample has its own there, and a batch that is padded the longest one's.

    Attributes:
        form: how rows stand in a batch: ``"stack"``, ``"pad"`` or ``"list"``.
        kind: what a row is: ``"array"``, ``"bytes"``, ``"text"`` or ``"json"``.
    """

    form: str
    kind: str

    def __new__(cls, shape: tuple[int, ...], dtype: str, form: str = "stack", kind: str = "array") -> FieldSpec:
        spec = super().__new__(cls, shape, dtype)
        spec.form = form
        spec.kind = kind
        return spec

    def __repr__(self) -> str:
        beside = "" if self.form == "stack" else f", form={self.form!r}, kind={self.kind!r}"
        return f"FieldSpec(shape={self.shape!r}, dtype={self.dtype!r}{beside})"


class Drawn(NamedTuple):
    """What one random or size-dependent operation decided for a sample.

    ``operation`` is its name, ``name`` what was decided, ``values`` the numbers: ``"crop"`` is (left, top, width,
    height) in pixels of the image that the operation gets, ``"flip"`` is (0,) or (1,), ``"brightness"`` a factor.
    """

    operation: str
    name: str
    values: tuple[float, ...]


class DecodeLimit(NamedTuple):
    """How fast this machine decodes: seconds of wall and CPU time for ``images`` images on ``threads`` threads."""

    images: int
    encoded_bytes: int
    wall_s: float
    cpu_s: float
    threads: int

    @property
    def images_per_s(self) -> float:
        """Images per second of wall time."""
        return self.images / self.wall_s if self.wall_s > 0 else 0.0


def open(
    source: _Source,
    *,
    format: str | None = None,
    fields: _FieldSpecs = None,
    missing: str = "error",
    dtype: None = None,
    window: None = None,
    index: str | os.PathLike[str] | None = None,
    cache: None = None,
    **storage: Any,
) -> Dataset:
    """Opens a dataset of images and labels.

    Args:
        source: a folder of class folders; a ``.tar`` or ``.tar.gz`` in WebDataset's layout; several of them as a
            brace list (``"shards/{000..146}.tar"``), joined by ``::``, or as a list, in this order; or a file that
            :meth:`Dataset.cache` has finished. Each a path, or a URL such as ``"file:///data/train"``, in which ``%``
            stands before two hexadecimal digits.
        format: ``"folder"``, ``"tar"`` or ``"pixels"``; by default what the source is.
        fields: one spec per field; by default an image and a label. Of tars an extension, or alternatives split by
            ``;``: ``("jpg;png", "mask.png", "boxes.npy", "json", "txt", "cls")``. Of a folder a pattern with ``{key}``
            for the sample's name, which may have slashes: ``("images/{key}.jpg", "masks/{key}.png")``; such a field is
            called like the folder before ``{key}``, or as ``NAME=`` before the pattern says. What a field is follows
            from its extension: jpg, jpeg, png, webp are images, and masks (labels) where the field's name begins with
            "mask" or "seg"; cls, cls2, index, inx, id are integers; npy is an array; json, jsn are JSON; txt, text,
            caption, transcript are text; all else is bytes. ``:image``, ``:mask``, ``:value``, ``:array``, ``:bytes``,
            ``:text`` or ``:json`` at the end of a spec says it otherwise.
        missing: what a sample is that lacks a field. ``"error"``: reading it is a :class:`DataError`, which
            ``on_error`` is about. ``"skip"``: it is left out; :meth:`Dataset.explain` says how many are. ``"none"``:
            the field is None there, which only fields that are lists can be.
        index: folder to keep indexes in. By default a tar's is beside the shard, else in the user's cache folder; a
            folder's is there if it has 10,000 samples or more.
        dtype, window, cache, storage: not in this version.

    Raises:
        ConfigError: no such format or field, the source is empty, a URL that this version has no reader for or that
            names another machine, an argument that this version does not have.
        StorageError: the source cannot be listed or opened.
        DataError: a shard is damaged.

    Warns:
        UserWarning: a class of the folder is made of folders, as where the parent of ``train`` was opened.
    """
    _refuse_later_arguments(dtype=dtype, window=window, cache=cache, **storage)
    origin = _engine_source(source, format, fields, index, missing)
    engine = _engine.open(*origin)
    warn_of_merged_folders("open", engine)
    return Dataset(engine, origin)


def warn_of_merged_folders(where: str, engine: _engine.Dataset) -> None:
    """A parent of class folders, such as that of "train" and "val", opens as well: with "train" as a class."""
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
            stacklevel=3,
        )


def inspect(
    source: _Source,
    *,
    format: str | None = None,
    fields: _FieldSpecs = None,
    missing: str = "error",
    index: str | os.PathLike[str] | None = None,
) -> Inspection:
    """What a source holds and what a reader would drop, merge or refuse; works where :func:`open` fails.

    Arguments and exceptions are :func:`open`'s, but damage is among the findings instead of an exception. Decodes
    nothing.
    """
    return _engine.inspect(*_engine_source(source, format, fields, index, missing))


def _refuse_later_arguments(**values: Any) -> None:
    for name, value in values.items():
        if value is not None:
            raise ConfigError(f"open: {name} is not in this version of Feedline")


def _engine_source(
    source: _Source,
    format: str | None,
    fields: _FieldSpecs,
    index: str | os.PathLike[str] | None,
    missing: str,
) -> _Origin:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    try:
        shards = [os.fspath(path) for path in paths]
    except TypeError:
        shards = []
    if not shards or not all(isinstance(shard, str) and shard for shard in shards):
        raise ConfigError(f"open: source must be a path or a list of shards, not {source!r}")
    specs = arguments.field_specs("open", fields)
    if format is not None:
        arguments.choice("open", "format", format, ("folder", "tar", "pixels"))
    word = arguments.choice("open", "missing", missing, ("error", "skip", "none"))
    kept = arguments.output_path("open", "index", index) if index else ""
    return "::".join(shards), format or "", specs, kept, word


class Dataset:
    """Samples and the operations on their images. Immutable: every operation returns a new dataset, cheap to make.

    Operations have torchvision's names, arguments, defaults and sampling rules, and the pixels of Pillow. A wrong
    argument raises :class:`ConfigError` at the call, naming the operation.

    Of samples with several images and masks, what is about geometry is drawn once and done to all of them, and what is
    about colour or numbers to the images alone; ``fields`` of an operation names those that it is for. Masks keep
    their labels: where they are resized, the nearest one stands (torchvision's rule for masks), and borders are 0.

    ``ds[i]`` is one transformed sample, as a named tuple of NumPy arrays and numbers, drawn as in epoch 0 of a loader
    with seed 0; of its own length, where samples have different ones. Where a loader of torch's kind reads it, its
    random operations draw from torch's generator instead, other numbers in every epoch: see docs/reproducibility.md.
    """

    def __init__(self, engine: _engine.Dataset, origin: _Origin) -> None:
        self._engine = engine
        self._origin = origin
        self._same_draws = 0  # samples that ds[i] gave as of epoch 0

    def _with(self, engine: _engine.Dataset) -> Dataset:
        return Dataset(engine, self._origin)

    # ---- operations ----

    def decode(self, mode: str = "RGB", *, fidelity: str = "exact", fields: _Fields = None) -> Dataset:
        """To pixels, uint8: ``"RGB"`` (3 channels) or ``"L"`` (1 channel). Happens by itself, as RGB, if left out.

        Grey, palette, alpha, CMYK and 16-bit images are converted as ``PIL.Image.convert`` does.

        Args:
            mode: ``"RGB"`` or ``"L"``.
            fidelity: ``"exact"`` is Pillow's pixels, bit for bit. ``"fast"``: where the next step makes a JPEG or a
                crop of it much smaller, it is decoded at a part of its size, and coloured after the resize;
                docs/fidelity.md says by how much its pixels then differ. Everything else stays exact.
        """
        word = arguments.choice("decode", "mode", mode.upper() if isinstance(mode, str) else mode, ("RGB", "L"))
        return self._with(
            self._engine.decode(
                arguments.field_names("decode", fields),
                word,
                arguments.choice("decode", "fidelity", fidelity, ("exact", "fast")),
            )
        )

    def resize(
        self,
        size: int | Sequence[int],
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
        *,
        fields: _Fields = None,
    ) -> Dataset:
        """To ``(height, width)`` pixels, or the smaller edge to ``size`` with the aspect ratio kept.

        Args:
            size: pixels.
            interpolation: ``"nearest"``, ``"box"``, ``"bilinear"`` or ``"bicubic"``; torchvision's InterpolationMode
                and Pillow's Resampling are taken too.
            max_size: upper limit of the larger edge, pixels; only with an int ``size``.
            antialias: pixels are Pillow's, which are always antialiased (``"nearest"`` never): False is refused.
        """
        where = "resize"
        arguments.refuse_aliased(where, antialias)
        edges = arguments.edge_size(where, size)
        limit = None if max_size is None else arguments.integer(where, "max_size", max_size, low=1)
        names = arguments.field_names(where, fields)
        return self._with(self._engine.resize(names, edges, limit, arguments.interpolation(where, interpolation)))

    def center_crop(self, size: int | Sequence[int], *, fields: _Fields = None) -> Dataset:
        """The middle ``size`` x ``size`` or ``(height, width)`` pixels; smaller images are padded with black."""
        names = arguments.field_names("center_crop", fields)
        return self._with(self._engine.center_crop(names, arguments.square_size("center_crop", size)))

    def random_crop(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: int | Sequence[int] = 0,
        padding_mode: str = "constant",
        *,
        fields: _Fields = None,
    ) -> Dataset:
        """``size`` x ``size`` or ``(height, width)`` pixels from anywhere in the image, padded first if asked for.

        Args:
            size: pixels.
            padding: pixels, as for :meth:`pad`.
            pad_if_needed: pads images that are smaller than ``size``; without it they raise :class:`DataError`.
            fill: 0 to 255, one value or (red, green, blue), for ``padding_mode="constant"``.
            padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
        """
        where = "random_crop"
        return self._with(
            self._engine.random_crop(
                arguments.field_names(where, fields),
                arguments.square_size(where, size),
                arguments.sides(where, padding),
                arguments.flag(where, "pad_if_needed", pad_if_needed),
                arguments.color(where, fill),
                arguments.padding_mode(where, padding_mode),
            )
        )

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        fields: _Fields = None,
    ) -> Dataset:
        """A random part of the image, resized to ``size`` x ``size`` or ``(height, width)`` pixels.

        The part's area is ``scale`` times the image's, uniformly; its width over height is ``ratio``, uniformly in
        the logarithm; ten tries, then the largest middle part within ``ratio`` (Szegedy et al., "Going deeper with
        convolutions", as torchvision implements it).
        """
        where = "random_resized_crop"
        arguments.refuse_aliased(where, antialias)
        return self._with(
            self._engine.random_resized_crop(
                arguments.field_names(where, fields),
                arguments.square_size(where, size),
                arguments.low_high(where, "scale", scale),
                arguments.low_high(where, "ratio", ratio),
                arguments.interpolation(where, interpolation),
            )
        )

    def random_horizontal_flip(self, p: float = 0.5, *, fields: _Fields = None) -> Dataset:
        """Left to right, with probability ``p``."""
        where = "random_horizontal_flip"
        names = arguments.field_names(where, fields)
        return self._with(self._engine.random_horizontal_flip(names, arguments.real(where, "p", p)))

    def random_vertical_flip(self, p: float = 0.5, *, fields: _Fields = None) -> Dataset:
        """Top to bottom, with probability ``p``."""
        where = "random_vertical_flip"
        names = arguments.field_names(where, fields)
        return self._with(self._engine.random_vertical_flip(names, arguments.real(where, "p", p)))

    def pad(
        self,
        padding: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: str = "constant",
        *,
        fields: _Fields = None,
    ) -> Dataset:
        """Adds a border, in pixels: a number, (left and right, top and bottom), or (left, top, right, bottom).

        ``fill`` and ``padding_mode`` are as for :meth:`random_crop`.
        """
        where = "pad"
        if padding is None:
            raise ConfigError("pad: padding must be a number of pixels, not None")
        return self._with(
            self._engine.pad(
                arguments.field_names(where, fields),
                arguments.sides(where, padding),
                arguments.color(where, fill),
                arguments.padding_mode(where, padding_mode),
            )
        )

    def grayscale(self, num_output_channels: int = 1, *, fields: _Fields = None) -> Dataset:
        """Luma, in 1 or 3 channels, as ``PIL.Image.convert("L")`` has it.

        That is ITU-R BT.601 in fixed point: (19595 R + 38470 G + 7471 B + 32768) >> 16.
        """
        where = "grayscale"
        names = arguments.field_names(where, fields)
        channels = arguments.integer(where, "num_output_channels", num_output_channels)
        return self._with(self._engine.grayscale(names, channels))

    def color_jitter(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
        *,
        fields: _Fields = None,
    ) -> Dataset:
        """Changes brightness, contrast, saturation and hue by random factors, in random order.

        A number v stands for factors in [max(0, 1 - v), 1 + v], for hue in [-v, v] with v at most 0.5 (turns of the
        colour circle); a pair is the range itself.
        """
        where = "color_jitter"
        infinity = float("inf")
        return self._with(
            self._engine.color_jitter(
                arguments.field_names(where, fields),
                arguments.jitter(where, "brightness", brightness, 1.0, 0.0, infinity),
                arguments.jitter(where, "contrast", contrast, 1.0, 0.0, infinity),
                arguments.jitter(where, "saturation", saturation, 1.0, 0.0, infinity),
                arguments.jitter(where, "hue", hue, 0.0, -0.5, 0.5),
            )
        )

    def normalize(
        self, mean: Sequence[float], std: Sequence[float], inplace: bool = False, *, fields: _Fields = None
    ) -> Dataset:
        """(x - mean) / std per channel, as float32; uint8 pixels are divided by 255 first.

        One number per channel, in units of [0, 1]: see IMAGENET_MEAN and IMAGENET_STD. ``inplace`` is torchvision's
        and changes nothing here.
        """
        where = "normalize"
        arguments.flag(where, "inplace", inplace)
        means = arguments.channel_values(where, "mean", mean)
        names = arguments.field_names(where, fields)
        return self._with(self._engine.normalize(names, means, arguments.channel_values(where, "std", std)))

    def to_dtype(self, dtype: Any = "float32", scale: bool = False, *, fields: _Fields = None) -> Dataset:
        """To another dtype (a word, NumPy's or torch's); ``scale=True`` divides uint8 by 255 on the way to a float."""
        where = "to_dtype"
        names = arguments.field_names(where, fields)
        return self._with(
            self._engine.to_dtype(names, arguments.dtype(where, dtype), arguments.flag(where, "scale", scale))
        )

    def cache(self, where: str | os.PathLike[str] = "memory", budget: int | str | None = None) -> Dataset:
        """Keeps the uint8 pixels that the operations so far give; only those behind it run in every epoch.

        A sample is read and decoded the first time that it is asked for. Batches, random draws and states are those of
        the same chain without ``cache``, bit for bit. Masks are kept decoded as well, moved as the images are; numbers,
        arrays, text, JSON and bytes as they are stored, so that no sample is read twice.

        Args:
            where: ``"memory"``: one copy for all processes of this user on this machine that keep the same pixels,
                freed with the last of them. Or the path of a file, ``PATH.filling`` until every sample is in it, which
                other processes and later runs go on with, and which :func:`open` reads as a dataset of its own.
            budget: bytes, or text such as ``"8 GiB"``, that the pixels may take; what does not fit is decoded in every
                epoch. By default half of the memory that this process may use, and of a file what the disk has.

        Raises:
            ConfigError: a random operation, ``normalize`` or ``to_dtype`` before it; samples that are arrays or tokens;
                a second cache; ``"device"``, which this version does not have; a file in a folder that does not exist,
                or a URL. And, at ``loader()`` or the first sample: the file holds other pixels.
            DataError: there as well: the file is damaged.
            StorageError: there as well: the file cannot be written.
        """
        name = "cache"
        if not isinstance(where, str | os.PathLike):
            raise ConfigError(f'{name}: where must be "memory" or a path, not {where!r}')
        place = os.fspath(where)
        if not isinstance(place, str):
            raise ConfigError(f'{name}: where must be "memory" or a path as text, not {where!r}')
        # the word is for str alone: Path("memory") is a file
        if isinstance(where, os.PathLike) and place in ("memory", "device"):
            place = os.path.join(os.curdir, place)
        if place not in ("memory", "device", ""):
            arguments.output_path(name, "where", place)
        limit = 0 if budget is None else arguments.byte_count(name, "budget", budget)
        return self._with(self._engine.cache(place, limit))

    def collate(self, form: str, *, fields: _Fields = None) -> Dataset:
        """How the rows of some fields stand in a batch.

        Images, masks, numbers and arrays are stacked, and text, bytes and JSON are lists, where nothing else is said.

        Args:
            form: ``"stack"``: rows of one shape. ``"pad"``: arrays whose first extents differ, padded with zeros to the
                longest of the batch, and a field ``NAME_length`` (int64) behind them. ``"list"``: rows of any shape.
            fields: names; by default all fields that can stand so. The last word on a field counts.

        Raises:
            ConfigError: no such field, one whose rows cannot stand so, or samples that are arrays themselves.
        """
        word = arguments.choice("collate", "form", form, ("stack", "pad", "list"))
        return self._with(self._engine.collate(word, arguments.field_names("collate", fields)))

    # ---- what it is ----

    def __len__(self) -> int:
        return len(self._engine)

    @property
    def source(self) -> str:
        """What was opened."""
        return self._engine.source

    @property
    def format(self) -> str:
        """``"folder"``, ``"tar"`` or ``"pixels"``."""
        return self._engine.format

    @property
    def classes(self) -> list[str]:
        """Class names, in the order of their labels; empty where only the samples know their label.

        A folder's, and those of tars that ``feedline pack`` made of one.
        """
        return list(self._engine.classes)

    @property
    def operations(self) -> list[str]:
        """The operations so far, with all their arguments."""
        return list(self._engine.operations())

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with the samples, their order and their fields."""
        return f"{self._engine.fingerprint:016x}"

    @functools.cached_property
    def schema(self) -> dict[str, FieldSpec]:
        """Name to (shape, dtype) of every field of a sample, images as (channels, height, width).

        Raises ConfigError naming the operation that does not fit, or when images would not all have one size.
        """
        rows = self._engine.schema()
        return {name: FieldSpec(shape, dtype, form, kind) for name, shape, dtype, form, kind in rows}

    def explain(self) -> str:
        """What runs, in which order, and fused how: text for people."""
        return self._engine.explain()

    def inspect(self) -> Inspection:
        """Formats, sizes, classes, and what a reader would drop or merge. Decodes nothing."""
        return _engine.inspect(*self._origin)

    def __repr__(self) -> str:
        operations = "".join(f".{operation}" for operation in self.operations)
        return f"<feedline.Dataset {self.source!r} ({self.format}, {len(self)} samples){operations}>"

    # ---- single samples ----

    def __getitem__(self, index: SupportsIndex) -> tuple[Any, ...]:
        if not self._is_random:
            return self.sample(index)
        if draws.wanted():
            return self.sample(index, seed=draws.number())
        self._warn_of_same_draws()
        return self.sample(index)

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[tuple[Any, ...]]:
        """The samples of a batch, for torch's loader, which asks for them so; random operations draw anew each time."""
        with draws.by_a_loader():
            return [self[index] for index in indices]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return (self[index] for index in range(len(self)))

    @functools.cached_property
    def _is_random(self) -> bool:
        """Whether a sample differs from epoch to epoch."""
        return any(map(draws.is_random, self.operations))

    def _warn_of_same_draws(self) -> None:
        """Once, when somebody goes on to a second epoch of samples that have the first one's draws."""
        self._same_draws += 1
        if self._same_draws == len(self) + 1:
            warnings.warn(
                f"{self!r}: ds[i] was read more often than there are samples, and gives what its random operations "
                "draw in epoch 0 every time. For training use ds.loader(...) or feedline.DataLoader(ds, ...), or tell "
                "the epoch: ds.sample(i, epoch=epoch)",
                stacklevel=3,
            )

    def sample(self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0) -> tuple[Any, ...]:
        """One transformed sample as in ``epoch`` of a loader with ``seed``: arrays, and numbers for labels."""
        rows = self._engine.sample(self._index(index), *_seed_and_epoch("sample", seed, epoch))
        # a field without extents is a number
        return batches.named((name for name, _ in rows), (_plain(value) for _, value in rows))

    def draw(self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0) -> list[Drawn]:
        """What the operations decide for a sample, without decoding it."""
        rows = self._engine.draw(self._index(index), *_seed_and_epoch("draw", seed, epoch))
        return [Drawn(operation, name, tuple(values)) for operation, name, values in rows]

    def draw_for_size(self, height: int, width: int, index: int, *, seed: int = 0, epoch: int = 0) -> list[Drawn]:
        """What the operations would decide for sample ``index`` if its image were of this size, without any read."""
        where = "draw_for_size"
        rows = self._engine.draw_for_size(
            arguments.integer(where, "height", height, low=1),
            arguments.integer(where, "width", width, low=1),
            arguments.integer(where, "index", index, low=0, high=2**63 - 1),
            *_seed_and_epoch(where, seed, epoch),
        )
        return [Drawn(operation, name, tuple(values)) for operation, name, values in rows]

    def encoded(self, index: SupportsIndex) -> bytes:
        """The stored bytes of a sample's image."""
        return self._engine.encoded(self._index(index))

    def key(self, index: SupportsIndex) -> str:
        """The name of a sample: its relative path, or its WebDataset key."""
        return self._engine.key(self._index(index))

    def measure_decode(self, images: int = 256, threads: int = 1, seed: int = 0) -> DecodeLimit:
        """How fast this machine decodes just the needed regions of the first ``images`` samples and does nothing else.

        The images are in memory before the clock starts: the ceiling of any loader over these samples.
        """
        where = "measure_decode"
        return DecodeLimit(
            *self._engine.measure_decode(
                arguments.integer(where, "images", images, low=1),
                arguments.integer(where, "threads", threads, low=1),
                arguments.integer(where, "seed", seed, low=0, high=2**64 - 1),
            )
        )

    def _index(self, index: SupportsIndex) -> int:
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise IndexError(f"sample {position} is out of range: the dataset has {len(self)}")
        return position % len(self)

    # ---- the loader ----

    def loader(
        self,
        batch_size: int | None = None,
        *,
        shuffle: bool | str = False,
        shuffle_window: int = 16,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int | str = "auto",
        memory_budget: int | str | None = None,
        in_order: bool = True,
        on_error: str = "raise",
        error_budget: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        uneven: str = "pad",
        epochs: float | None = None,
        device: Any = None,
        dtype: Any = None,
        layout: str = "NCHW",
        output: str = "torch",
        timeout: float | None = None,
        buckets: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
    ) -> Loader:
        """A loader: native threads fill batches ahead of the training loop. They start with the first ``iter()``.

        Args:
            batch_size: samples per batch, on each rank; None only with ``max_tokens``.
            shuffle: another order every epoch, from ``seed``: any sample may stand anywhere. ``"shards"`` is for
                storage that is slow at reading here and there: the shards of a tar source, or the files of a token
                source, are permuted, and the samples of ``shuffle_window`` of them at a time.
            shuffle_window: shards that ``shuffle="shards"`` reads from at a time.
            seed: of the order and of every random operation. The same seed gives the same batches, whatever
                ``num_workers``.
            drop_last: leaves out a last batch that is not full. Where that leaves none, a warning says so.
            num_workers: threads; 0 is taken as 1. ``"auto"`` starts as many as this process may use CPUs and lets as
                many of them work as the training loop turns out to need: see docs/tuning-live.md and
                ``stats()["controller"]``.
            memory_budget: bytes of batches held ahead, or text such as ``"512 MB"`` or ``"2 GiB"``.
            in_order: False delivers batches as they complete; over several ranks they come in order all the same, so
                that one state holds for all.
            on_error: what a bad sample does: ``"raise"`` a DataError or StorageError in place of its batch,
                ``"skip"`` it and refill the batch, or ``"replace"`` it by another sample; see :attr:`Loader.errors`.
                With samples of different lengths only ``"raise"``.
            error_budget: bad samples that an epoch may skip or replace before it raises; 0 is any number.
            rank, world_size: by default torch.distributed's, torchrun's, MPI's or Slurm's; else 0 and 1. Rank 0 logs
                the plan at INFO when the first epoch starts.
            uneven: samples that do not divide evenly over ranks: ``"pad"`` repeats some from the start of the order,
                ``"drop"`` leaves some out, ``"exact"`` gives each once, so that ranks may differ by a batch.
            epochs: epochs that one ``iter()`` goes through, ``math.inf`` for ever. None is 1, and lets the engine
                fill the first batches of the next one ahead.
            device: None or ``"cpu"``.
            dtype: of image fields, as by ``to_dtype(dtype, scale=True)``: ``"float16"``, ``"float32"``, ``"uint8"``,
                NumPy's or torch's; None is what the operations give.
            layout: ``"NCHW"`` or ``"NHWC"``.
            output: ``"torch"`` tensors or ``"numpy"`` arrays. Both are views of the engine's memory, writable, and
                yours for as long as you hold them.
            timeout: seconds without a batch after which ``next()`` raises StalledError; None is never.
            buckets: of samples of different lengths, those of like length stand together: upper bounds of the
                lengths, ascending, the last one at least the longest sample's; or a number of buckets, with about as
                many samples each and bounds that are multiples of 8. A sample's length is that of its longest field.
            max_tokens: with buckets, rows times bound of a batch at most: short samples come in larger batches.

        With buckets every batch is of one of them, and padded to its bound, so that there are as many shapes as
        buckets; all ranks have the same shapes at the same step. Samples that do not fill a batch of all ranks go up
        into the next longer bucket, other ones in every epoch; ``uneven`` and ``drop_last`` are for what is left of
        the last. Shuffled, the batches of all buckets are mixed; else the shortest come first. A state goes on with
        the same bounds and the same rows over all ranks.

        Raises:
            ConfigError: a wrong argument or operation, a budget that does not hold one batch; nothing is read.
        """
        settings = {name: value for name, value in locals().items() if name != "self"}
        where = "loader"
        _refuse_device(device)
        big = 2**63 - 1
        window = arguments.integer(where, "shuffle_window", shuffle_window, low=1, high=big)
        resolved_rank, resolved_world_size = ranks.resolve(rank, world_size)
        bounds, bucket_count = arguments.buckets(where, buckets)
        tokens = 0 if max_tokens is None else arguments.integer(where, "max_tokens", max_tokens, low=1, high=big)
        if batch_size is None and tokens == 0:
            raise ConfigError("loader: give batch_size, or buckets and max_tokens")
        rows = 0 if batch_size is None else arguments.integer(where, "batch_size", batch_size, low=1, high=big)
        engine = _engine.make_loader(
            self._engine,
            batch_size=rows,
            shuffle=shuffle == "shards" or arguments.flag(where, "shuffle", shuffle, or_word="shards"),
            shard_window=window if shuffle == "shards" else 0,
            seed=arguments.integer(where, "seed", seed, low=0, high=2**64 - 1),
            drop_last=arguments.flag(where, "drop_last", drop_last),
            num_workers=_thread_count(num_workers),
            memory_budget=0 if memory_budget is None else arguments.byte_count(where, "memory_budget", memory_budget),
            in_order=arguments.flag(where, "in_order", in_order),
            on_error=on_error,
            error_budget=arguments.integer(where, "error_budget", error_budget, low=0, high=big),
            rank=resolved_rank,
            world_size=resolved_world_size,
            uneven=uneven,
            dtype=None if dtype is None else arguments.dtype(where, dtype),
            layout=layout,
            timeout_ms=_milliseconds(timeout),
            bucket_bounds=bounds,
            buckets=bucket_count,
            max_tokens=tokens,
        )
        if engine.batches == 0:
            _warn_of_nothing(len(self), batch_size, resolved_world_size, drop_last)
        if epochs is not None and epochs != math.inf:
            epochs = arguments.integer(where, "epochs (or math.inf)", epochs, low=1, high=big)
        kind = Output(arguments.choice(where, "output", output, ("torch", "numpy")))
        again = functools.partial(self.loader, **settings)
        return Loader(engine, kind, epochs=epochs, announce=resolved_rank == 0, again=again)


def _warn_of_nothing(samples: int, batch_size: int | None, ranks: int, drop_last: bool) -> None:
    over = f" over {ranks} ranks" if ranks > 1 else ""
    size = "" if batch_size is None else f" of batch_size={batch_size}{over}"
    advice = "lower batch_size or leave drop_last out" if drop_last else "lower batch_size or change uneven"
    warnings.warn(f"loader: an epoch has no batch: {samples} samples do not fill one{size}; {advice}", stacklevel=3)


def _seed_and_epoch(where: str, seed: int, epoch: int) -> tuple[int, int]:
    high = 2**64 - 1
    return (
        arguments.integer(where, "seed", seed, low=0, high=high),
        arguments.integer(where, "epoch", epoch, low=0, high=high),
    )


def _plain(value: Any) -> Any:
    """A number where it is an array of none but one; text, bytes and objects as they are."""
    return value.item() if getattr(value, "shape", None) == () else value


def _refuse_device(device: Any) -> None:
    if device is None or str(device) == "cpu":
        return
    raise ConfigError(f"loader: device={str(device)!r} is not in this version of Feedline; batches are on the CPU")


def _thread_count(num_workers: int | str) -> int:
    if num_workers == "auto":
        return 0  # the engine's word for it
    # how many there may be is the engine's to say; its int has 32 bits
    count = arguments.integer("loader", 'num_workers (or "auto")', num_workers, low=-(2**31), high=2**31 - 1)
    # PyTorch's 0 is "no worker besides this one"; one thread is the nearest here
    return count or 1


def _milliseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    seconds = arguments.real("loader", "timeout", timeout)
    if seconds <= 0:
        raise ConfigError(f"loader: timeout must be a positive number of seconds or None, not {timeout!r}")
    return max(1, round(seconds * 1000))
