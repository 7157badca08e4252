# SPDX-License-Identifier: Apache-2.0
"""Datasets: chained operations, metadata, single samples, and loaders."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from .. import _engine
from .._engine import Inspection
from ..errors import ConfigError, Error
from ..loader import batches
from ..loader.batches import Batch
from ..loader.loader import Loader
from ..loader.tv_tensors import Wrapper
from ..loader.unopened import UnopenedColumn, columns_of, listed
from . import arguments, draws, image_depth, literals, plugins, view_list
from .hub.revisions import revisions_of
from .loader_options import make_loader
from .memory.rows import HeldTensor
from .ops import other_names
from .ops.operations import Fields
from .ops.sound import Sound
from .ops.targets import Targets
from .ops.video import Videos
from .ops.volume import Volumes
from .recorded_calls import Recorded
from .selection.labels import Labels
from .selection.split import Splits
from .source_spec import SourceSpec
from .specs import DecodeLimit, Drawn, FieldSpec
from .text.tokenized import Tokenized

if TYPE_CHECKING:
    from .inspect.contact_sheet import Sheet
    from .map.mapping import Chain
    from .memory.table_values import TableValues
    from .packed_sequences import PackedSequences


# Formats of datasets that no source can be opened as: the engine inspects them, or explains why it does not.
_WITHOUT_SOURCE = ("arrays", "lerobot", "mix", "rows", "tokens", "volumes")


class Dataset(Recorded, Targets, Sound, Volumes, Videos, Splits, Labels, Tokenized):
    """Samples and the operations on their images. Immutable: every operation cheaply returns a new dataset.

    Operations have torchvision's names, arguments, defaults and sampling rules, and Pillow's pixels. A wrong
    argument raises :class:`ConfigError` at the call, naming the operation.

    If samples have several images and masks, geometry is drawn once for all of them, and colour operations change
    only images; the ``fields`` argument of an operation names the fields to which it applies. Masks keep their labels:
    resizing uses the nearest label (torchvision's rule for masks), and borders are 0. Boxes and keypoints are
    transformed by torchvision v2's rules: see :meth:`boxes`.

    ``ds[i]`` is one transformed sample, as a named tuple of NumPy arrays and numbers, with the random draws of epoch 0
    of a loader with seed 0. Samples of different lengths are not padded. ``ds[a:b]`` is a :meth:`subset`. Inside a
    torch DataLoader, random operations draw from torch's generator instead, with new numbers in every epoch: see
    docs/reproducibility.md.
    """

    def __init__(self, engine: _engine.Dataset, origin: SourceSpec, chain: Chain | None = None) -> None:
        self._engine = engine
        self._origin = origin
        self._chain = chain  # functions of map()
        self._held: tuple[HeldTensor, ...] = ()  # tensors given to arrays()
        self._table: TableValues | None = None  # of files() and table()
        self._has_parts = False  # samples of a manifest are parts of their files
        self._preceding: Dataset | None = None  # before tokenize(), if samples have images
        self._same_draws = 0  # samples that ds[i] returned with epoch 0's draws
        # The engine imports these modules on first use. If a thread did so during fork(), they would stay half imported
        # in the child, which would then hang.
        import json  # noqa: F401

        import numpy  # noqa: F401

        from .storage import foreign_images  # noqa: F401

    if not TYPE_CHECKING:  # type checkers would otherwise accept any name

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # raises the AttributeError of a property again
            found = None if name.startswith("_") else other_names.advice(name, dir(type(self)))
            if found is None:
                raise AttributeError(f"'Dataset' object has no attribute {name!r}", name=name, obj=self)
            raise AttributeError(f"Dataset has no {name!r}; use {found}", name=None)  # without Python's own guess

    def _with(self, engine: _engine.Dataset) -> Dataset:
        dataset = Dataset(engine, self._origin, self._chain)
        dataset._held, dataset._table, dataset._has_parts = self._held, self._table, self._has_parts
        return dataset

    def _proof(self) -> str:
        return self.fingerprint

    # ---- operations other than those on images ----

    def cache(self, where: str | os.PathLike[str] = "memory", budget: int | str | None = None) -> Dataset:
        """Caches the uint8 pixels that the preceding operations return; only later operations run in every epoch.

        Each sample is read and decoded when it is first accessed. Batches, random draws and states match those of the
        same chain without ``cache``, bit for bit. Masks are decoded and transformed with the images before they are
        cached; numbers, arrays, text, JSON and bytes are cached as stored, so that no sample is read twice.

        Args:
            where: ``"memory"``: one cache shared by all processes of this user on this machine that cache the same
                pixels; it is freed when the last of these processes ends. Or the path of a file, which other processes
                and later runs continue to fill, and which :func:`open` reads as a dataset; the file is named
                ``PATH.filling`` until it is complete. Or ``"device"``: all images are cached in the memory of the
                loader's GPU, which also runs later crops, one resize, borders, flips, ``normalize`` and ``to_dtype``.
                The GPU memory is freed with the dataset and its loaders, and ``ds[i]`` does not use this cache.
            budget: the maximum size of the pixels, in bytes or as text such as ``"8 GiB"``; samples that do not fit are
                decoded in every epoch. The default is half of the memory available to this process, or for a file the
                free disk space. With ``"device"``, all images must fit into the budget, by default the GPU's free
                memory.

        Raises:
            ConfigError: a random operation, ``normalize``, ``to_dtype`` or another ``cache`` precedes this call,
                samples are arrays or tokens, the path is a URL or its folder does not exist, or an operation after
                ``"device"`` does not run on a GPU. ``loader()`` and the first sample raise this error if the file
                contains other pixels, or if ``"device"`` finds no GPU with enough memory for all images.
            DataError: the file is damaged; raised by ``loader()`` or the first sample.
            StorageError: the file cannot be written; raised by ``loader()`` or the first sample.
        """
        name = "cache"
        if not isinstance(where, str | os.PathLike):
            raise ConfigError(f'{name}: where must be "memory", "device" or a path, not {where!r}')
        location = os.fspath(where)
        if not isinstance(location, str):
            raise ConfigError(f'{name}: where must be "memory" or a path as text, not {where!r}')
        # only a str is the keyword: Path("memory") is a file
        if isinstance(where, os.PathLike) and location in ("memory", "device"):
            location = os.path.join(os.curdir, location)
        if location not in ("memory", "device", ""):
            arguments.output_path(name, "where", location)
        limit = 0 if budget is None else arguments.byte_count(name, "budget", budget)
        return self._with(self._engine.cache(location, limit))

    def collate(self, form: literals.Collation, *, fields: Fields = None) -> Dataset:
        """Sets how fields are batched.

        By default, images, masks, numbers and arrays are stacked, and all must have the shape of the first sample.
        Text, bytes, JSON, boxes, keypoints and arrays that belong to boxes are lists.

        Args:
            form: ``"stack"``: all rows have the same shape. ``"pad"``: arrays whose first dimension varies, padded with
                zeros to the longest of the batch, followed by a field ``NAME_length`` (int64). ``"list"``: rows may
                have any shape.
            fields: names of the fields; by default all that support the form. The last call for a field wins.

        Raises:
            ConfigError: a field does not exist or does not support the form, or samples are arrays.
        """
        word = arguments.choice("collate", "form", form, ("stack", "pad", "list"))
        return self._with(self._engine.collate(word, arguments.field_names("collate", fields)))

    def views(self, *views: Any, field: str | None = None, **named: Any) -> Dataset:
        """Creates several views of an image, each a separate field, from one read and one decode.

        ::

            dataset.views(global_a=big, global_b=big, local=(small, 8))   # batch.global_a, batch.local
            dataset.views([big, big])                                     # batch.image_0, batch.image_1

        where ``big`` and ``small`` are chains created with :func:`feedline.chain`. The fields replace the image; labels
        and other fields remain after them. Operations before ``views`` (``decode``, ``resize``) are drawn and run once
        for all views. Later operations (``normalize``) apply to each view, with separate random draws; their
        ``fields=`` accepts names of views. Every view has its own random draws, even if two have the same chain.

        The region that the views need is decoded once, or once per view if the views are so few and small that separate
        decoding is faster; the pixels are the same. :meth:`explain` shows the number of decodes. With
        ``fidelity="fast"`` the image is always decoded once, at the resolution of the most demanding view. Other images
        and masks have no views: operations after ``views`` that apply to all fields are drawn for them separately.

        Args:
            views: one list of chains, or one object returned by :func:`feedline.views`.
            field: name of the image field, required if samples have several images.
            named: a chain creates one view, a field (channels, height, width). ``(chain, n)`` creates ``n`` views, a
                field (n, channels, height, width), each with its own random draws. The total is at most 254 views.

        Raises:
            ConfigError: no view is given, a chain contains ``decode``, this call follows ``normalize``, ``to_dtype`` or
                another ``views``, a view has the name of another field, or the image does not exist or was replaced by
                ``map``. Later calls raise this error if ``cache`` follows ``views``, or if ``n`` views have no fixed
                size.
        """
        rows = view_list.of("views", views, named).rows
        return self._with(self._engine.views(rows, view_list.field_name("views", field)))

    def five_crop(self, size: int | Sequence[int], *, field: str | None = None) -> Dataset:
        """Crops the four corners and the centre, in this order, to a field (5, channels, height, width).

        Later operations apply to each of the five crops; random operations draw separately for each.

        Args:
            size: pixels, ``size`` x ``size`` or ``(height, width)``.
            field: name of the image, required if samples have several images.

        Raises:
            ConfigError: as for :meth:`views`.
            DataError: an image is smaller than ``size``; raised when the image is read.
        """
        where = "five_crop"
        crop = arguments.square_size(where, size)
        return self._with(self._engine.five_crop(crop, view_list.field_name(where, field)))

    def ten_crop(self, size: int | Sequence[int], vertical_flip: bool = False, *, field: str | None = None) -> Dataset:
        """Applies :meth:`five_crop` to the image and its mirror image; the field has shape (10, channels, height,
        width).

        Args:
            size: as for :meth:`five_crop`.
            vertical_flip: mirrors top to bottom instead of left to right.
            field: name of the image, required if samples have several images.
        """
        where = "ten_crop"
        crop = arguments.square_size(where, size)
        flips = arguments.flag(where, "vertical_flip", vertical_flip)
        return self._with(self._engine.ten_crop(crop, flips, view_list.field_name(where, field)))

    def map(
        self,
        fn: Callable[..., Any],
        fields: Fields = None,
        *,
        processes: int = 0,
        seeded: bool = False,
        writable: bool = True,
    ) -> Dataset:
        """Calls a Python function on samples, after the preceding operations, in the loader's threads.

        ``map(fn, "image")`` replaces the image with ``fn(image)``, ``map(fn, ("image", "label"))`` passes and returns
        both, and ``map(fn)`` passes a dict of all fields and returns a dict: missing keys are removed, new keys become
        new fields. Values have the same types as in ``ds[i]``. An image is a writable NumPy array of any size, by
        default uint8 (3, height, width), with the dtype and layout that the operations and ``loader(dtype=, layout=)``
        set; a mask is an array (height, width), and a number is an int or float. Other fields are arrays, ``bytes``,
        ``str`` or parsed JSON. Missing values are None.

        The function may return arrays (NumPy arrays, torch tensors on the CPU, or anything that NumPy accepts) and
        Python numbers (int64, float64, bool), which are stacked; ``str``, ``bytes``, and JSON-like dicts and lists,
        which are batched as lists; and None in fields that are batched as lists. The first valid sample sets dtype and
        shape, unless :meth:`collate` overrides them. Any other result, or an exception, raises :class:`DataError` for
        that sample, with the exception as its ``__cause__``. Several maps run in sequence; each receives the unmodified
        result of the previous map.

        Threads call the function concurrently, so it must not change shared state. Each call holds the GIL: NumPy,
        torch or Pillow code that releases the GIL runs on all threads, and Python code on one thread at a time.

        Args:
            fn: the function. For exact order and resume it must be pure: its result may depend only on its arguments.
            fields: names of the fields to pass; None passes all fields.
            processes: number of worker processes of the loader that call the function, for mostly Python code. The
                function must be picklable (not a lambda). The function's fields are copied to the worker process and
                back, which takes about 0.1 ms for a photo.
            seeded: passes ``fn`` the keyword argument ``rng``, a ``numpy.random.Generator`` seeded by the loader's
                seed, the epoch, the sample and the map's position, independent of threads, ranks and resume.
            writable: False passes read-only arrays, without copying rows of stored or in-memory arrays; all maps of a
                dataset must then pass False. True passes arrays that ``fn`` may change without side effects; for rows
                of 4 MiB or more in a memory-mapped file, only the pages that ``fn`` writes to are copied.

        Raises:
            ConfigError: a field does not exist, samples have different lengths, or ``processes`` is set and the
                function is not picklable. Later calls raise this error if ``cache`` follows ``map``, or if an operation
                applies to a field that ``fn`` replaced.
        """
        from .map import mapping  # imports modules that only maps need

        preceding = len(self._engine.operations())
        chain = mapping.added(self._chain, fn, fields, processes, seeded, writable, preceding)
        dataset = Dataset(_engine.map(self._engine, chain), self._origin, chain)
        dataset._held, dataset._table, dataset._has_parts = self._held, self._table, self._has_parts
        return dataset

    def _apply_function(self, operation: str, fields: Fields, given: Mapping[str, Any]) -> Dataset:
        applied = plugins.Applied(operation, given)
        return self.map(applied, "image" if fields is None else fields, seeded=applied.is_seeded)

    def windows(self, window: int, **options: Any) -> Dataset:
        """Cuts a dataset of tokens, as written by LitData for its TokensLoader, into windows of fixed length that cross
        document boundaries.

        ``x`` contains ``window`` tokens, and ``y`` the same window shifted by one token, as in :func:`feedline.tokens`.
        The items of ``TokensLoader(block_size=B)`` are ``windows(B - 1, stride=B)``: ``x`` is ``item[:-1]``, ``y``
        ``item[1:]``. Trailing tokens of a chunk that do not fill a window are dropped.

        Args:
            window: tokens per sample.
            options: the arguments of :func:`feedline.tokens`, except ``source`` and ``dtype``.

        Raises:
            ConfigError: the dataset has no tokens, has operations, is a subset or is remote, or an argument is wrong:
                see :func:`feedline.tokens`.
            DataError: a chunk's size does not match the index.
            StorageError: a chunk cannot be opened.
        """
        from .memory.sequences import windows_of

        return windows_of(self, window, options)

    # ---- metadata ----

    def __len__(self) -> int:
        return len(self._engine)

    @property
    def source(self) -> str:
        """The source passed to :func:`open`."""
        return self._engine.source

    @property
    def format(self) -> str:
        """The format's name in :func:`open`: ``"folder"``, ``"tar"`` and so on."""
        return self._engine.format

    @property
    def classes(self) -> list[str]:
        """Class names in label order; empty if class names are unknown because only the samples contain their labels.

        Folders, tables, :func:`feedline.files` and :func:`feedline.table` with text labels have class names; so do tar
        files that ``feedline pack`` wrote from these sources.
        """
        return list(self._engine.classes)

    @functools.cached_property
    def unopened(self) -> tuple[UnopenedColumn, ...]:
        """Columns, members or features in the source that no field reads, in the source's order.

        To read one of these columns, pass its ``spec`` in ``fields=`` of :func:`open`.
        """
        return columns_of(self._engine)

    @property
    def operations(self) -> list[str]:
        """The dataset's operations, with all their arguments."""
        operations = list(self._engine.operations())
        for step in reversed(self._chain.steps if self._chain is not None else ()):
            operations.insert(step.preceding, str(step))
        return operations

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that depend on the samples, their order and their fields."""
        return f"{self._engine.fingerprint:016x}"

    @functools.cached_property
    def schema(self) -> dict[str, FieldSpec]:
        """Maps every field's name to (shape, dtype) of a sample, images as (channels, height, width).

        A dimension of -1 varies between samples. Raises ConfigError if an operation does not support its input; the
        message names the operation.
        """
        rows = self._engine.schema()
        images = [name for name, kind, *_ in self._engine.roles() if kind in ("image", "mask")]
        if self._chain is None and any(name in images and -1 in shape for name, shape, *_ in rows):
            # without one size for images, the engine reports all fields as if they were lists
            with contextlib.suppress(ConfigError):  # the images have other names after views
                rows = self._engine.collate("list", images).schema()
        units = {field: unit for field, unit, _ in self._engine.remarks}
        return {
            name: FieldSpec(shape, dtype, form, kind, units.get(name, "")) for name, shape, dtype, form, kind in rows
        }

    def explain(self) -> str:
        """Returns text that describes the steps that run, their order and fusion, and gives advice on storage."""
        from .storage import storage_types  # imports the texts of findings

        return image_depth.explained(storage_types.explained(self._engine.explain(), self.source), self._engine)

    def inspect(self) -> Inspection:
        """Reports formats, sizes, classes, and samples that the reader would drop or merge. Decodes nothing."""
        return self._engine.inspect() if self.format in _WITHOUT_SOURCE else self._origin.inspect()

    def pack(self, output: str | os.PathLike[str], **options: Any) -> Any:
        """Writes the stored samples as tar, MDS, TFRecord, LMDB or Parquet shards, in the dataset's order.

        Fields of numbers are written as ``.npy`` files, text as ``.txt``, and the class as ``.cls``, with the class
        names in each shard. :func:`feedline.open` reads the shards of a :func:`feedline.files` or
        :func:`feedline.table` dataset without the original files and table.

        Args:
            output: a folder or a URL, as for ``feedline pack``: see docs/pack.md.
            options: ``shard_bytes``, ``samples_per_shard``, ``shuffle``, ``seed``, ``on_error``, ``num_workers``,
                ``to``, ``compression`` and ``hashes``: see docs/pack.md.

        Returns:
            A report with the numbers of samples, shards and bytes, and the pattern for :func:`feedline.open`.

        Raises:
            ConfigError: an argument is wrong, the dataset has operations, which cannot be stored, or its samples are
                not in files.
            DataError, StorageError: a sample cannot be read, or the output cannot be written.
        """
        self._refuse_operations("pack")
        self._refuse_parts("pack")
        from importlib import import_module

        # a verb above this package, which is imported on its first use
        return import_module("feedline.pack.packer").pack(self._engine, output, **options)

    def verify(self, **options: Any) -> Any:
        """Reads all samples, and reports files that are missing, empty or damaged, and samples with the same bytes.

        ``feedline verify`` also compares shards with their checksums.

        Args:
            options: ``decode``, ``world_size``, ``num_workers`` and ``progress``: see docs/verify.md. ``decode=True``
                also decodes every field.

        Returns:
            A report, whose ``sound`` is True if no problem was found, and whose ``findings`` lists the problems.

        Raises:
            ConfigError: an argument is wrong, the dataset has operations, or its samples are not in files.
        """
        self._refuse_operations("verify")
        from importlib import import_module

        return import_module("feedline.verify.verifier").verify_dataset(self._engine, **options)

    def _refuse_operations(self, where: str) -> None:
        if self.operations:
            raise ConfigError(
                f"{where}: samples are read as stored, without {self.operations[0]}; call {where}() before operations"
            )

    def _refuse_parts(self, where: str) -> None:
        if self._has_parts:
            raise ConfigError(
                f"{where}: the samples of the manifest {self.source!r} are parts of files, but whole files would be "
                'stored; cut the files first, or store them with their offsets: open with format="table"'
            )

    def __repr__(self) -> str:
        operations = "".join(f".{operation}" for operation in self.operations)
        left = f"; not opened: {listed(self.unopened)}" if self.unopened else ""
        fields = f"; {self._shown_fields()}" if self._shown_fields() else ""
        return f"<feedline.Dataset {self.source!r} ({self.format}, {len(self)} samples{fields}{left}){operations}>"

    def _shown_fields(self) -> str:
        """Returns ``"image uint8 (3, -1, -1), label int64 ()"``; empty if the fields are only known after map() or
        after reading the first sample.
        """
        if self._chain is not None:  # the schema calls map()'s functions
            return ""
        try:
            return ", ".join(
                f"{name} {spec.dtype} {spec.shape}" if spec.kind == "array" else f"{name} {spec.kind}"
                for name, spec in self.schema.items()
            )
        except Error:
            return ""

    def _repr_html_(self) -> str:
        from .inspect import dataset_html

        return dataset_html.html(self)

    # ---- single samples ----

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Batch: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Batch | Dataset:
        if isinstance(index, slice):
            return self.subset(range(*index.indices(len(self))))
        if not self._is_random:
            return self.sample(index)
        if draws.wanted():
            return self.sample(index, seed=draws.number())
        self._warn_of_same_draws()
        return self.sample(index)

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Batch]:
        """Returns the samples of a batch, for torch's DataLoader; every call draws new random numbers."""
        with draws.by_a_loader():
            return [self[index] for index in indices]

    def __iter__(self) -> Iterator[Batch]:
        return (self[index] for index in range(len(self)))

    @functools.cached_property
    def _is_random(self) -> bool:
        """Whether random operations make samples differ between epochs."""
        return any(map(draws.is_random, self.operations))

    def _warn_of_same_draws(self) -> None:
        """Warns once when a second epoch of samples is read with the random draws of the first epoch."""
        self._same_draws += 1
        if self._same_draws == len(self) + 1:
            warnings.warn(
                f"{self!r}: ds[i] was read more often than the dataset has samples, and repeats the random draws "
                "of epoch 0. For training use ds.loader(...) or feedline.DataLoader(ds, ...), or pass the epoch: "
                "ds.sample(i, epoch=epoch)",
                stacklevel=3,
            )

    def sample(
        self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0, output: literals.SampleOutput = "numpy"
    ) -> Batch:
        """Returns one transformed sample as in ``epoch`` of a loader with ``seed``: arrays, and numbers for labels.

        Args:
            output: ``"numpy"``, ``"torch"`` or ``"tv_tensors"``, as for :meth:`loader`.
        """
        word = arguments.choice("sample", "output", output, ("numpy", "torch", "tv_tensors"))
        for held in self._held:
            held.check()
        rows = self._engine.sample(self._index(index), *_seed_and_epoch("sample", seed, epoch))
        image_depth.warn(self._engine)
        names = [name for name, _ in rows]
        values = [_plain(value) for _, value in rows]  # a field without dimensions is a number
        if word != "numpy":
            values = [_tensor(value) for value in values]
            values = self._with_own_dtypes(names, values)
        if word == "tv_tensors":
            values = Wrapper("sample", self._engine.roles()).sample(names, values)
        return batches.named(names, values, self.unopened)

    def _with_own_dtypes(self, names: list[str], values: list[Any]) -> list[Any]:
        """Converts bfloat16 fields, which arrive as NumPy float32, to bfloat16. Only datasets from arrays() have
        bfloat16 fields.
        """
        if not any(held.is_bfloat16 for held in self._held):
            return values
        import torch

        narrow = {name for name, spec in self.schema.items() if spec.dtype == "bfloat16"}
        return [v.to(torch.bfloat16) if name in narrow else v for name, v in zip(names, values, strict=True)]

    def draw(self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0) -> list[Drawn]:
        """Returns the parameters that random and size-dependent operations choose for a sample, without decoding it."""
        rows = self._engine.draw(self._index(index), *_seed_and_epoch("draw", seed, epoch))
        return [Drawn(operation, name, tuple(values), view) for operation, name, values, view in rows]

    def show(self, n: int = 16, epochs: int = 3, *, seed: int = 0, path: str | os.PathLike[str] | None = None) -> Sheet:
        """Draws a contact sheet of transformed samples with Pillow, to inspect a recipe.

        Shows ``n`` evenly spaced samples, each as in the first ``epochs`` of a loader with ``seed``, side by side:
        images and views, overlaid with masks, boxes and keypoints, with the label or the first line of a text below
        each sample. Normalisation is undone.

        Args:
            n: number of samples, 1 or more.
            epochs: number of epochs shown per sample, 1 or more.
            seed: seed of the random operations.
            path: output file, in the format of its extension. If None, a notebook displays the picture; outside
                notebooks it is written to ``feedline-show.png``.

        Raises:
            ConfigError: samples have no image, the extension is not an image format, or Pillow is missing.
        """
        from .inspect.contact_sheet import show  # imports modules that only pictures need

        where = "show"
        count, times = arguments.integer(where, "n", n, low=1), arguments.integer(where, "epochs", epochs, low=1)
        return show(self, count, times, _seed_and_epoch(where, seed, 0)[0], path)

    def encoded(self, index: SupportsIndex) -> bytes:
        """Returns the stored bytes of a sample's image."""
        return self._engine.encoded(self._index(index))

    def key(self, index: SupportsIndex) -> str:
        """Returns the name of a sample: its relative path, or its WebDataset key."""
        return self._engine.key(self._index(index))

    def measure_decode(self, images: int = 256, threads: int = 1, seed: int = 0) -> DecodeLimit:
        """Measures how fast this machine decodes the required regions of the first ``images`` samples, without any
        other work.

        The images are read into memory before the measurement, so the result is an upper limit for any loader that
        reads these samples.
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
        try:
            position = operator.index(index)
        except TypeError:
            raise ConfigError(f"a sample's index must be an integer or a slice, not {index!r}") from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"sample {position} is out of range: the dataset has {len(self)}")
        return position % len(self)

    def pack_sequences(
        self,
        length: int = 8192,
        method: literals.PackMethod = "best_fit",
        long: literals.LongDocuments = "split",
        window: int = 65536,
        *,
        labels: literals.PackLabels | None = None,
        pad: int = 0,
        pad_to_multiple_of: int = 1,
        vocabulary: int | None = None,
        field: str | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> PackedSequences:
        """Packs sequences of tokens (documents) into rows of ``length`` tokens, for training language models.

        ::

            packed = feedline.open("train_text_document.idx").pack_sequences(length=8192)
            loader = packed.loader(batch_size=8, shuffle=True)
            for batch in loader: ...            # batch.input_ids, batch.labels, ...: see PackedLoader

        In every epoch, each document is in the rows exactly once, unless it is dropped, truncated or empty:
        :meth:`PackedSequences.explain` shows how many are. The packs follow from the documents' lengths, the seed and
        the epoch, so they need no buffer, and a loader's state is a few numbers.

        Args:
            length: tokens per row.
            method: ``"best_fit"`` sorts the documents of a window by length, longest first, and adds each to the row
                with the least sufficient space. ``"concat"`` concatenates the documents of a window and cuts them at
                the ends of rows.
            long: handling of documents that are longer than a row: ``"split"`` into rows, ``"truncate"`` after the
                first row, or ``"drop"``. Documents with images cannot be split, and are truncated before an image that
                does not fit.
            window: number of documents, consecutive in the epoch's order, that are packed together. Larger windows
                leave less padding; a smaller window is planned sooner.
            labels: ``"input_ids"``: labels equal the tokens, with -100 at the first token of each document (or piece
                of a split document): the model shifts them, as in Transformers. ``"next_token"``: labels are the next
                token of the document, and -100 at its last token, as in Megatron. By default those that the loader's
                ``preset`` needs, or ``"input_ids"``. If the dataset has a field ``labels`` (lists of tokens, or -100),
                its values are used instead of the tokens. If it has a field ``loss_mask`` (lists of bools or
                integers), labels of tokens with the value 0 are -100.
            pad: token in the padding.
            pad_to_multiple_of: each document is padded to a multiple of this many tokens, for context parallelism (2
                times its number of ranks) or FP8 kernels. Must divide ``length``.
            vocabulary: number of different tokens; a token that is not below it raises a DataError.
            field: the field of tokens: a list of integers of any length. By default ``input_ids``, or the only such
                field.
            on_error: after :meth:`tokenize`: ``"skip"`` leaves out samples that cannot be tokenized, such as chats that
                the template refuses and images with damaged headers. They are logged when the tokens are written, and
                counted as empty documents.

        Other sources than token files are read once, immediately, if the lengths of their lists are not stored, as in
        Parquet and Arrow files; the lengths take 8 bytes of memory per document. After :meth:`tokenize`, all samples
        are tokenized once, into token files in the user's cache folder, which later calls and other processes open:
        see docs/tokens.md.

        Raises:
            ConfigError: an argument is wrong, the dataset has operations other than ``tokenize``, its tokenizer is
                code whose changes would not be noticed, or it has no field of integer lists, or several.
            DataError, StorageError: a document cannot be read to find its length, its lists of tokens, labels and
                loss mask differ in length, or the cache folder cannot be written.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        from . import packed_sequences  # most datasets do not need it

        options = packed_sequences.options_of(given)
        skips = arguments.choice("pack_sequences", "on_error", on_error, ("raise", "skip")) == "skip"
        engine, images = self._engine, None
        if skips and self._chain is None:
            raise ConfigError('pack_sequences: on_error="skip" is only supported after tokenize()')
        if self._chain is not None:
            from importlib import import_module

            # a verb above this package, which is imported on its first use
            cached = import_module("feedline.tokenize.cached")
            engine, images = cached.stored(self, field, options, skips=skips)
            options["field"] = ""  # the files have another name for it
        packed = packed_sequences.pack(engine, options, given["labels"])
        packed._images = images
        packed._revisions = revisions_of(self)
        return packed

    # ---- the loader ----

    def loader(
        self,
        batch_size: int | None = None,
        *,
        shuffle: bool | Literal["shards"] = False,
        shuffle_window: int = 16,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int | Literal["auto"] = "auto",
        memory_budget: int | str | None = None,
        decoder_budget: int | str | None = None,
        in_order: bool = True,
        on_error: literals.OnError = "raise",
        error_budget: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        dp: str | int | Sequence[str | int] | None = None,
        uneven: literals.Uneven = "pad",
        epochs: float | None = None,
        device: Any = None,
        dtype: Any = None,
        layout: literals.Layout = "NCHW",
        output: literals.BatchOutput = "torch",
        timeout: float | None = None,
        buckets: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        repeat: int = 1,
        mixup: float = 0.0,
        cutmix: float = 0.0,
        num_classes: int | None = None,
        label_smoothing: float = 0.0,
        mix_probability: float = 1.0,
        switch_probability: float = 0.5,
        mix_mode: literals.MixMode = "batch",
        partner: literals.Partner | None = None,
        sampler: Iterable[int] | None = None,
        weights: Iterable[float] | None = None,
        balanced: bool | Literal["undersample"] = False,
    ) -> Loader:
        """Returns a loader, whose native threads prefetch batches. The threads start at the first ``iter()``.

        Args:
            batch_size: samples per batch, on each rank; None is only valid with ``max_tokens`` or
                ``max_seconds``.
            shuffle: reshuffles globally every epoch, seeded by ``seed``. ``"shards"`` is for storage with slow random
                access: it permutes the shards of a tar source, the files of a token source, the row groups of Parquet
                files or the record batches of Arrow files, and shuffles samples within windows of ``shuffle_window`` of
                them. Warns if the order would decompress more than 4 bytes per byte delivered.
            shuffle_window: number of shards, row groups or record batches that ``shuffle="shards"`` reads from at a
                time.
            seed: seed of the order and of every random operation. The same seed produces the same batches for any
                ``num_workers``.
            drop_last: drops an incomplete last batch. Warns if no batch remains.
            num_workers: number of threads; 0 is treated as 1. ``"auto"`` starts one thread for each CPU that this
                process may use and activates as many as the training loop needs: see docs/tuning-live.md and
                ``stats()["controller"]``.
            memory_budget: maximum size of prefetched batches, in bytes or as text such as ``"512 MB"`` or ``"2 GiB"``.
            decoder_budget: for clips: maximum memory of the video decoders that are open at once, in bytes or as text;
                threads wait until there is enough. Each takes about 21 bytes per pixel of a frame, such as 7 MB at 640
                x 480. None allows 256 MB, or one decoder if that is more.
            in_order: False delivers batches as they complete. With several ranks, batches are still delivered in order,
                so that one state applies to all ranks.
            on_error: handling of a bad sample: ``"raise"`` a DataError or StorageError instead of its batch,
                ``"skip"`` it and refill the batch, or ``"replace"`` it by another sample; see :attr:`Loader.errors`.
                Samples of different lengths support only ``"raise"``.
            error_budget: number of bad samples that an epoch may skip or replace before it raises an error; 0 means no
                limit.
            rank, world_size: by default the values from torch.distributed, Ray Train, or the launcher's environment
                variables; otherwise 0 and 1. The values are read at the first use of the loader, and each ``iter()``
                compares them with torch.distributed: see docs/parallelism.md. Rank 0 logs the plan at INFO when the
                first epoch starts.
            mesh: a torch ``DeviceMesh``, instead of rank and world_size: ranks are its data-parallel coordinates, and
                processes with the same coordinate receive the same rows.
            dp: the data-parallel dimensions of ``mesh``: a name, a number, or several of them. By default all
                dimensions with a common data-parallel name, such as ``"dp"``, ``"dp_replicate"`` and ``"dp_shard"``.
            uneven: handling of samples that do not divide evenly among ranks: ``"pad"`` repeats some from the start of
                the order, ``"drop"`` drops some, and ``"exact"`` delivers each sample once, so that ranks may differ by
                one batch.
            epochs: epochs in one ``iter()``, ``math.inf`` for no end. None runs one epoch per ``iter()`` and prefetches
                the first batches of the next epoch.
            device: device of the batches: None or ``"cpu"``, or a GPU: ``"cuda"`` (torch's current one), ``"cuda:1"``,
                an index or a ``torch.device``. Batches are copied from page-locked memory as soon as they are complete,
                on a separate stream; torch's current stream waits for a batch when ``next()`` returns it, and the host
                does not wait. See docs/device.md.
            dtype: dtype of image fields, as in ``to_dtype(dtype, scale=True)``: ``"float16"``, ``"float32"``,
                ``"uint8"``, or the NumPy or torch dtype; None keeps the operations' dtype. Or ``"bfloat16"``: float32
                rounded to nearest even, as in ``tensor.to(torch.bfloat16)``.
            layout: ``"NCHW"`` or ``"NHWC"``.
            output: ``"torch"`` tensors, ``"numpy"`` arrays, or ``"tv_tensors"``: torchvision's Image, Mask,
                BoundingBoxes and KeyPoints, the last two if they are batched as lists, with the sample's image size as
                canvas. Or ``"dlpack"``: objects with ``__dlpack__``, on the CPU or a GPU, for other array libraries, as
                in ``cupy.from_dlpack``; the batch's memory is freed when all of these objects and their arrays have
                been deleted. All outputs are writable views of the engine's memory, valid as long as a reference
                exists.
            timeout: seconds without a batch after which ``next()`` raises StalledError; None waits forever.
            buckets: groups samples of similar length by ascending upper bounds, the last of which must cover the
                longest sample; or a number of buckets of about equal size, with bounds that are multiples of 8. A
                sample's length is that of its longest field.
            max_tokens: maximum product of a batch's number of rows and its bucket's bound, so that short samples form
                larger batches. Requires ``buckets``.
            max_seconds: for audio: maximum product of a batch's number of rows and its longest sample, in seconds.
                Samples are sorted into ``buckets`` by duration, by default 10; bounds are seconds. Durations are those
                of the manifest, or are read from the headers of all files when the loader is created; nothing is
                decoded. With :meth:`speed_perturbation`, the slowest factor counts. Rows are padded to the longest of
                their batch.
            repeat: number of consecutive appearances of each sample (repeated augmentation), each with new random
                numbers; with several ranks they are on different ranks. The length of an epoch does not change, so each
                epoch covers a different part of the samples.
            mixup, cutmix: alpha of Beta(alpha, alpha), from which MixUp's weight or CutMix's box size is drawn; 0
                disables the method. Images must be float32 or float16 and all have the same size, and the label must be
                an integer.
            num_classes: number of classes of the targets; by default the number of the dataset's class names.
            label_smoothing: amount of label smoothing in mixed targets, as in timm.
            mix_probability: probability of mixing a batch, row or pair: see ``mix_mode``.
            switch_probability: probability of CutMix instead of MixUp, if both are enabled.
            mix_mode: ``"batch"`` draws once for all rows; ``"elem"`` draws for every row; ``"pair"`` draws for every
                two rows that are mixed with each other; ``"half"`` mixes the first half of the rows with the second,
                and delivers only the first half.
            partner: ``"roll"`` mixes each row with the previous one, as in torchvision, and is the default of
                ``mix_mode="batch"``. ``"flip"`` mixes row i with row n - 1 - i, as in timm; the other modes require
                ``"flip"``, which requires an even ``batch_size``.
            sampler: the order of an epoch: a torch ``Sampler``, or any iterable of indices. The order is split among
                the ranks, so it must be the same on every rank; only a torch ``DistributedSampler`` yields this rank's
                part. A sampler is iterated when an epoch begins, after its ``set_epoch(epoch)`` if it has one; lists,
                arrays and iterators are read once.
            weights: one number per sample, at least 0: draws ``len(dataset)`` samples with replacement in every epoch,
                with probabilities proportional to the weights. A sample that is drawn several times gets different
                random operations. See :meth:`Loader.set_weights`.
            balanced: True draws ``len(dataset)`` samples with replacement, each class with the same probability.
                ``"undersample"`` draws as many samples of each class as the smallest class has, without replacement;
                the drawn samples differ between epochs. The class is the field ``label``, ``labels``, ``cls``,
                ``target``, ``targets`` or ``y``. With either value, the order is random regardless of ``shuffle``.

        With buckets, each batch comes from one bucket and is padded to its bound, so all batches of a bucket have the
        same shape; at each step, all ranks have the same shape. Samples that do not fill a batch on all ranks move to
        the next longer bucket, different ones each epoch; ``uneven`` and ``drop_last`` apply to the remainder of the
        last bucket. With ``shuffle``, batches of all buckets are interleaved; otherwise those of the shortest bucket
        come first. To resume a state, the bounds and the rows per step over all ranks must be the same.

        With ``mixup`` or ``cutmix``, labels are float32 (rows, num_classes) and sum to 1 in each row, as torch's
        CrossEntropyLoss accepts. All images of a sample are mixed in the same way; numbers, arrays and text do not
        change. Rows are mixed with other rows in the same rank's batch, by random numbers that depend on the seed, the
        epoch, the batch and the rank. A batch of one row is not mixed; with ``"flip"``, nor is the middle row of a last
        batch with an odd number of rows.

        Weights, classes and samplers are described in docs/sampling.md. ``weights``, ``balanced`` and ``sampler`` do
        not support buckets, ``shuffle="shards"`` or mixtures.

        Raises:
            ConfigError: an argument or operation is wrong, the budget is smaller than one batch, endless epochs have no
                batch, the GPU is missing or torch cannot use it, or mixing was requested for uint8 images, lists of
                images, masks, samples without an integer label, or an unknown number of classes. No sample is read
                before these checks. The first use of the loader raises this error if the rank is ambiguous: see
                docs/parallelism.md.
            DataError: a sample's class is not below ``num_classes``; raised during iteration, subject to ``on_error``.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        loader = make_loader(self._engine, given)
        if self._held:
            loader._held = self._held
        loader._revisions = revisions_of(self)
        return loader


def _seed_and_epoch(where: str, seed: int, epoch: int) -> tuple[int, int]:
    high = 2**64 - 1
    return (
        arguments.integer(where, "seed", seed, low=0, high=high),
        arguments.integer(where, "epoch", epoch, low=0, high=high),
    )


def _tensor(value: Any) -> Any:
    """Converts an array to a torch tensor that shares its memory; returns other values unchanged."""
    if not hasattr(value, "__array_interface__"):
        return value
    try:
        import torch
    except ImportError:
        raise ConfigError('sample: output="torch" and "tv_tensors" require torch: pip install torch') from None
    return torch.from_numpy(value)


def _plain(value: Any) -> Any:
    """Converts a 0-d array to a number; returns text, bytes and objects unchanged."""
    return value.item() if getattr(value, "shape", None) == () else value
