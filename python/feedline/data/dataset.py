# SPDX-License-Identifier: Apache-2.0
"""Datasets: operations in a chain, what is known of it, single samples, and loaders."""

from __future__ import annotations

import functools
import operator
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from .. import _engine
from .._engine import Inspection
from ..errors import ConfigError
from ..loader import batches
from ..loader.batches import Batch
from ..loader.loader import Loader
from ..loader.tv_tensors import Wrapper
from ..loader.unopened import UnopenedColumn, columns_of, listed
from . import arguments, draws, image_depth, view_list, words
from .augmentations import Augmentations
from .facts import DecodeLimit, Drawn, FieldSpec
from .loader_options import LoaderOptions
from .operations import Fields
from .parts import Parts
from .recorded_calls import Recorded
from .rows import HeldTensor
from .targets import Targets

if TYPE_CHECKING:
    from .mapping import Chain
    from .shown import Sheet

# The engine's arguments: source, format, fields, index folder, missing, and whether commands may be run.
Origin = tuple[str, str, list[str], str, str, bool]


class Dataset(Recorded, Targets, Augmentations, Parts):
    """Samples and the operations on their images. Immutable: every operation returns a new dataset, cheap to make.

    Operations have torchvision's names, arguments, defaults and sampling rules, and the pixels of Pillow. A wrong
    argument raises :class:`ConfigError` at the call, naming the operation.

    Where samples have several images and masks, geometry is drawn once for all of them, and colours and numbers change
    in the images alone; ``fields`` of an operation names the fields that it is for. Masks keep their labels: resizing
    takes the nearest one (torchvision's rule for masks), and borders are 0. Boxes and keypoints move by torchvision
    v2's rules: see :meth:`boxes`.

    ``ds[i]`` is one transformed sample, as a named tuple of NumPy arrays and numbers, drawn as in epoch 0 of a loader
    with seed 0; of its own length, where samples have different ones. ``ds[a:b]`` is a
    :meth:`subset`. Where a loader of torch's kind reads it, its
    random operations draw from torch's generator instead, other numbers in every epoch: see docs/reproducibility.md.
    """

    def __init__(self, engine: _engine.Dataset, origin: Origin, chain: Chain | None = None) -> None:
        self._engine = engine
        self._origin = origin
        self._chain = chain  # of map()
        self._held: tuple[HeldTensor, ...] = ()  # tensors given to arrays()
        self._same_draws = 0  # samples that ds[i] gave as of epoch 0
        # The engine imports these modules on first use. If a thread did so during fork(), they would stay half imported
        # in the child, which would then wait forever.
        import json  # noqa: F401

        import numpy  # noqa: F401

        from . import foreign_images  # noqa: F401

    def _with(self, engine: _engine.Dataset) -> Dataset:
        dataset = Dataset(engine, self._origin, self._chain)
        dataset._held = self._held
        return dataset

    def _proof(self) -> str:
        return self.fingerprint

    # ---- operations besides those on images ----

    def cache(self, where: str | os.PathLike[str] = "memory", budget: int | str | None = None) -> Dataset:
        """Keeps the uint8 pixels that the operations so far give; only those behind it run in every epoch.

        A sample is read and decoded the first time that it is asked for. Batches, random draws and states are those of
        the same chain without ``cache``, bit for bit. Masks are kept decoded as well, moved as the images are; numbers,
        arrays, text, JSON and bytes as they are stored, so that no sample is read twice.

        Args:
            where: ``"memory"``: one copy for all processes of this user on this machine that keep the same pixels,
                freed with the last of them. Or the path of a file, ``PATH.filling`` until every sample is in it, which
                other processes and later runs go on with, and which :func:`open` reads as a dataset of its own. Or
                ``"device"``: the images in the memory of the loader's GPU, all of them, where crops, one resize,
                borders, flips, ``normalize`` and ``to_dtype`` behind it are done there. Freed with the dataset and its
                loaders; samples of the dataset itself are made on the host, without it.
            budget: bytes, or text such as ``"8 GiB"``, that the pixels may take; what does not fit is decoded in every
                epoch. By default half of the memory that this process may use, and of a file what the disk has. Of
                ``"device"`` the dataset must fit, by default into what the GPU has free.

        Raises:
            ConfigError: a random operation, ``normalize`` or ``to_dtype`` before it; samples that are arrays or tokens;
                a second cache; a file in a folder that does not exist, or a URL; an operation behind ``"device"`` that
                is not done on a GPU. And, at ``loader()`` or the first sample: the file holds other pixels; the loader
                of ``"device"`` has no GPU, or one without room for all images.
            DataError: there as well: the file is damaged.
            StorageError: there as well: the file cannot be written.
        """
        name = "cache"
        if not isinstance(where, str | os.PathLike):
            raise ConfigError(f'{name}: where must be "memory", "device" or a path, not {where!r}')
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

    def collate(self, form: words.Collation, *, fields: Fields = None) -> Dataset:
        """Sets the form of some fields in a batch.

        By default, images, masks, numbers and arrays are stacked, and all must have the shape of the first sample.
        Text, bytes, JSON, boxes, keypoints and arrays that belong to boxes are lists.

        Args:
            form: ``"stack"``: rows of one shape. ``"pad"``: arrays whose first extents differ, padded with zeros to the
                longest of the batch, followed by a field ``NAME_length`` (int64). ``"list"``: rows of any shape.
            fields: names; by default all fields that can have this form. The last call for a field counts.

        Raises:
            ConfigError: no such field, one that cannot have this form, or samples that are arrays themselves.
        """
        word = arguments.choice("collate", "form", form, ("stack", "pad", "list"))
        return self._with(self._engine.collate(word, arguments.field_names("collate", fields)))

    def views(self, *views: Any, field: str | None = None, **named: Any) -> Dataset:
        """Several views of an image, each a field of its own, from one read and one decode.

        ::

            dataset.views(global_a=big, global_b=big, local=(small, 8))   # batch.global_a, batch.local
            dataset.views([big, big])                                     # batch.image_0, batch.image_1

        where ``big`` and ``small`` are lists of operations by :func:`feedline.chain`. The fields stand in the image's
        place, labels and all else behind them as before. Operations before ``views`` are shared: drawn once, and done
        once for all views (``decode``, ``resize``). Those behind it (``normalize``) are for each view, drawn by itself;
        ``fields=`` of them names views. Every view draws by itself, also where two have the same chain.

        What the views need of an image is decoded once; where the views are few and small, each by itself, if that
        costs less, to the same pixels. :meth:`explain` says how often. With ``fidelity="fast"`` it is always decoded
        once, as coarsely as the view that needs most. Other images and masks have no views: operations behind ``views``
        that are for all of them are drawn for them by themselves.

        Args:
            views: one list of chains, or one object that :func:`feedline.views` gave.
            field: the image, where samples have several.
            named: a chain: one view, a field (channels, height, width). Or ``(chain, n)``: ``n`` views, a field
                (n, channels, height, width), each of them drawn by itself. At most 254 views in all.

        Raises:
            ConfigError: no view; a chain with ``decode``; ``normalize`` or ``to_dtype`` before it; the name of another
                field; a second ``views``; no such image, or one that a ``map`` took. Afterwards: ``cache``, which goes
                before it; ``n`` views that have no fixed size.
        """
        rows = view_list.of("views", views, named).rows
        return self._with(self._engine.views(rows, view_list.field_name("views", field)))

    def five_crop(self, size: int | Sequence[int], *, field: str | None = None) -> Dataset:
        """The four corners and the middle, in this order: a field (5, channels, height, width) in the image's place.

        Operations behind it are for each of the five, random ones drawn by themselves.

        Args:
            size: pixels, ``size`` x ``size`` or ``(height, width)``.
            field: the image, where samples have several.

        Raises:
            ConfigError: as for :meth:`views`.
            DataError: an image that is smaller, when it is read.
        """
        where = "five_crop"
        crop = arguments.square_size(where, size)
        return self._with(self._engine.five_crop(crop, view_list.field_name(where, field)))

    def ten_crop(self, size: int | Sequence[int], vertical_flip: bool = False, *, field: str | None = None) -> Dataset:
        """:meth:`five_crop`, and the same five of the mirrored image: a field (10, channels, height, width).

        Args:
            size: as for :meth:`five_crop`.
            vertical_flip: mirrors top to bottom, and not left to right.
            field: the image, where samples have several.
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
        """Gives samples to a function of yours, behind the operations so far, in the loader's threads.

        ``map(fn, "image")`` puts ``fn(image)`` in the image's place, ``map(fn, ("image", "label"))`` takes and gives
        both, and ``map(fn)`` takes a dict of all fields and gives a dict: what it leaves out is gone, what it adds is a
        new field. A field comes as ``ds[i]`` has it: an image as the operations and ``loader(dtype=, layout=)`` give
        it, a writable NumPy array of any size (uint8 (3, height, width) where nothing is said), a mask as
        (height, width), a number as int or float, an array, ``bytes``, ``str``, parsed JSON; None where it is absent.

        It may give arrays (NumPy's, torch's on the CPU, anything that NumPy takes) and Python's numbers, which are
        stacked (int64, float64, bool); ``str``, ``bytes``, and dicts and lists of what JSON has, which come as lists;
        None in a list. dtype and shape are those of the first sound sample, or :meth:`collate` says otherwise; anything
        else is that sample's error, as is what the function raises: a :class:`DataError` with the exception as its
        ``__cause__``. Several maps run one behind the other, and get what the one before gave as it is.

        Threads call it side by side, so it must not change what they share. They hold the GIL in it: what NumPy, torch
        or Pillow do without the GIL runs on all of them, Python's own code on one at a time.

        Args:
            fn: pure, for the order and resume to be exact: what it gives follows from its arguments.
            fields: names; None is all.
            processes: calls it in so many processes of the loader's own, for functions that are mostly Python code.
                It must pickle: no lambda. Its fields are copied there and back, 0.1 ms or so for a photo.
            seeded: gives ``fn`` a keyword ``rng``, a ``numpy.random.Generator`` whose numbers follow from the loader's
                seed, the epoch, the sample and the map's place: the same whatever threads, ranks and resume.
            writable: False gives ``fn`` read-only arrays, and rows of stored arrays without a copy, also of arrays in
                memory. If a dataset has several maps, all of them must have it. True: ``fn`` may change its arrays, and
                nothing else changes with them. A row of 4 MiB or more of a memory-mapped file is not copied then
                either, except for the pages that ``fn`` writes to.

        Raises:
            ConfigError: no such field; samples of different lengths; ``processes`` and a function that does not pickle.
                Afterwards: an operation on a field that it took; ``cache``, which goes before it.
        """
        from . import mapping  # with what only maps need

        behind = len(self._engine.operations())
        chain = mapping.added(self._chain, fn, fields, processes, seeded, writable, behind)
        dataset = Dataset(_engine.map(self._engine, chain), self._origin, chain)
        dataset._held = self._held
        return dataset

    def windows(self, window: int, **options: Any) -> Dataset:
        """Windows of fixed length of a dataset of tokens (LitData's, for its TokensLoader), across its documents.

        ``x`` is ``window`` tokens and ``y`` the same one token later, as :func:`feedline.tokens` gives them. The items
        of ``TokensLoader(block_size=B)`` are ``windows(B - 1, stride=B)``: ``x`` is ``item[:-1]``, ``y`` ``item[1:]``.
        A chunk's last tokens that fill no window are not used.

        Args:
            window: tokens of a sample.
            options: those of :func:`feedline.tokens`, but ``source`` and ``dtype``.

        Raises:
            ConfigError: not such a dataset, one with operations, a part of one, or on another machine; and as
                :func:`feedline.tokens`.
            DataError: a chunk has another size than the index says.
            StorageError: a chunk cannot be opened.
        """
        from .sequences import windows_of

        return windows_of(self, window, options)

    # ---- what it is ----

    def __len__(self) -> int:
        return len(self._engine)

    @property
    def source(self) -> str:
        """What was opened."""
        return self._engine.source

    @property
    def format(self) -> str:
        """What :func:`open` calls the format: ``"folder"``, ``"tar"`` and so on."""
        return self._engine.format

    @property
    def classes(self) -> list[str]:
        """Class names, in the order of their labels; empty where only the samples know their label.

        A folder's, and those of tars that ``feedline pack`` made of one.
        """
        return list(self._engine.classes)

    @functools.cached_property
    def unopened(self) -> tuple[UnopenedColumn, ...]:
        """Columns, members or features of the source that no field reads, in the source's order.

        Their ``spec`` opens them in ``fields=`` of :func:`open`.
        """
        return columns_of(self._engine)

    @property
    def operations(self) -> list[str]:
        """The operations so far, with all their arguments."""
        described = list(self._engine.operations())
        for step in reversed(self._chain.steps if self._chain is not None else ()):
            described.insert(step.behind, str(step))
        return described

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with the samples, their order and their fields."""
        return f"{self._engine.fingerprint:016x}"

    @functools.cached_property
    def schema(self) -> dict[str, FieldSpec]:
        """Name to (shape, dtype) of every field of a sample, images as (channels, height, width).

        An extent of -1 differs from sample to sample. Raises ConfigError naming the operation that does not fit.
        """
        rows = self._engine.schema()
        units = {field: unit for field, unit, _ in self._engine.remarks}
        return {
            name: FieldSpec(shape, dtype, form, kind, units.get(name, "")) for name, shape, dtype, form, kind in rows
        }

    def explain(self) -> str:
        """What runs, in which order, and fused how, and what helps where the files lie: text for people."""
        from . import places  # with the words for findings

        return image_depth.explained(places.explained(self._engine.explain(), self.source), self._engine)

    def inspect(self) -> Inspection:
        """Formats, sizes, classes, and what a reader would drop or merge. Decodes nothing."""
        return _engine.inspect(*self._origin)

    def __repr__(self) -> str:
        operations = "".join(f".{operation}" for operation in self.operations)
        left = f"; not opened: {listed(self.unopened)}" if self.unopened else ""
        return f"<feedline.Dataset {self.source!r} ({self.format}, {len(self)} samples{left}){operations}>"

    def _repr_html_(self) -> str:
        from . import described

        return described.html(self)

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
        """The samples of a batch, for torch's loader, which asks for them so; random operations draw anew each time."""
        with draws.by_a_loader():
            return [self[index] for index in indices]

    def __iter__(self) -> Iterator[Batch]:
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

    def sample(
        self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0, output: words.SampleOutput = "numpy"
    ) -> Batch:
        """One transformed sample as in ``epoch`` of a loader with ``seed``: arrays, and numbers for labels.

        Args:
            output: ``"numpy"``, ``"torch"`` or ``"tv_tensors"``, as :meth:`loader` has it, of arrays.
        """
        word = arguments.choice("sample", "output", output, ("numpy", "torch", "tv_tensors"))
        for held in self._held:
            held.check()
        rows = self._engine.sample(self._index(index), *_seed_and_epoch("sample", seed, epoch))
        image_depth.warn(self._engine)
        names = [name for name, _ in rows]
        values = [_plain(value) for _, value in rows]  # a field without extents is a number
        if word != "numpy":
            values = [_tensor(value) for value in values]
            values = self._with_own_dtypes(names, values)
        if word == "tv_tensors":
            values = Wrapper("sample", self._engine.roles()).sample(names, values)
        return batches.named(names, values, self.unopened)

    def _with_own_dtypes(self, names: list[str], values: list[Any]) -> list[Any]:
        """Converts fields of bfloat16, which arrive as NumPy's float32, to bfloat16. Only arrays() has such fields."""
        if not any(held.is_bfloat16 for held in self._held):
            return values
        import torch

        narrow = {name for name, spec in self.schema.items() if spec.dtype == "bfloat16"}
        return [v.to(torch.bfloat16) if name in narrow else v for name, v in zip(names, values, strict=True)]

    def draw(self, index: SupportsIndex, *, seed: int = 0, epoch: int = 0) -> list[Drawn]:
        """What the operations decide for a sample, without decoding it."""
        rows = self._engine.draw(self._index(index), *_seed_and_epoch("draw", seed, epoch))
        return [Drawn(operation, name, tuple(values), view) for operation, name, values, view in rows]

    def show(self, n: int = 16, epochs: int = 3, *, seed: int = 0, path: str | os.PathLike[str] | None = None) -> Sheet:
        """Draws samples as the operations make them, to look at a recipe: a contact sheet, drawn with Pillow.

        ``n`` samples, evenly spread, each as the first ``epochs`` of a loader with ``seed`` have it, one beside the
        other: images and views, with masks over them, boxes, keypoints, and the label, or the first line of a text,
        below. Normalisation is undone.

        Args:
            n: samples, 1 or more.
            epochs: of each, 1 or more.
            seed: of the random operations.
            path: writes the picture there, in the format of its extension. None: a notebook shows it; elsewhere it is
                written to ``feedline-show.png``.

        Raises:
            ConfigError: samples without an image, an extension of no picture, or no Pillow.
        """
        from .shown import show  # with what only pictures need

        where = "show"
        count, times = arguments.integer(where, "n", n, low=1), arguments.integer(where, "epochs", epochs, low=1)
        return show(self, count, times, _seed_and_epoch(where, seed, 0)[0], path)

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
        try:
            position = operator.index(index)
        except TypeError:
            raise ConfigError(f"a sample's index must be an integer or a slice, not {index!r}") from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"sample {position} is out of range: the dataset has {len(self)}")
        return position % len(self)

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
        in_order: bool = True,
        on_error: words.OnError = "raise",
        error_budget: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        dp: str | int | Sequence[str | int] | None = None,
        uneven: words.Uneven = "pad",
        epochs: float | None = None,
        device: Any = None,
        dtype: Any = None,
        layout: words.Layout = "NCHW",
        output: words.BatchOutput = "torch",
        timeout: float | None = None,
        buckets: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        repeat: int = 1,
        mixup: float = 0.0,
        cutmix: float = 0.0,
        num_classes: int | None = None,
        label_smoothing: float = 0.0,
        mix_probability: float = 1.0,
        switch_probability: float = 0.5,
        mix_mode: words.MixMode = "batch",
        partner: words.Partner | None = None,
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
            drop_last: leaves out a last batch that is not full. If that leaves none, a warning is given.
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
            rank, world_size: by default torch.distributed's, Ray Train's, or those of the launcher's environment
                variables; else 0 and 1. They are read at the first use of the loader, and each ``iter()`` compares
                them with torch.distributed: see docs/parallelism.md. Rank 0 logs the plan at INFO when the first epoch
                starts.
            mesh: a ``DeviceMesh`` of torch, instead of rank and world_size: the ranks are its data-parallel
                coordinates, and processes with the same coordinate get the same rows.
            dp: the data-parallel dimensions of ``mesh``: a name, a number, or several of them. By default those with a
                usual name, such as ``"dp"``, ``"dp_replicate"`` and ``"dp_shard"``.
            uneven: samples that do not divide evenly over ranks: ``"pad"`` repeats some from the start of the order,
                ``"drop"`` leaves some out, ``"exact"`` gives each once, so that ranks may differ by a batch.
            epochs: epochs that one ``iter()`` goes through, ``math.inf`` for ever. None is 1, and lets the engine
                fill the first batches of the next one ahead.
            device: where batches are: None or ``"cpu"``, or a GPU: ``"cuda"`` (torch's current one), ``"cuda:1"``, an
                index or a ``torch.device``. They are copied from page-locked memory as soon as they are filled, on a
                stream of their own; torch's current stream waits for a batch when ``next()`` returns it, and the host
                does not. See docs/device.md.
            dtype: of image fields, as by ``to_dtype(dtype, scale=True)``: ``"float16"``, ``"float32"``, ``"uint8"``,
                NumPy's or torch's; None is what the operations give. Or ``"bfloat16"``: their float32, rounded to the
                nearest even, as ``tensor.to(torch.bfloat16)`` does it.
            layout: ``"NCHW"`` or ``"NHWC"``.
            output: ``"torch"`` tensors, ``"numpy"`` arrays, or ``"tv_tensors"``: torchvision's Image, Mask,
                BoundingBoxes and KeyPoints, the latter two where they are lists, with the sample's canvas. Or
                ``"dlpack"``: objects with ``__dlpack__`` for any other library that takes arrays, also from a GPU, such
                as ``cupy.from_dlpack``; there a batch is free once its arrays and these objects are gone. All are
                views of the engine's memory, writable, and yours for as long as you hold them.
            timeout: seconds without a batch after which ``next()`` raises StalledError; None is never.
            buckets: of samples of different lengths, those of like length stand together: upper bounds of the
                lengths, ascending, the last one at least the longest sample's; or a number of buckets, with about as
                many samples each and bounds that are multiples of 8. A sample's length is that of its longest field.
            max_tokens: with buckets, rows times bound of a batch at most: short samples come in larger batches.
            repeat: repeated augmentation: every sample that comes in an epoch comes so many times, one right after
                the other, with other random numbers each time, and on different ranks where there are several. An
                epoch is as long as without, and so has a part of the samples, another one every time.
            mixup, cutmix: alpha of Beta(alpha, alpha), which the share of MixUp, or of CutMix's box, is drawn from;
                0 is without. Images must be float32 or float16 and of one size, and the label an integer.
            num_classes: classes of the targets; by default as many as the dataset has names for.
            label_smoothing: of the targets that mixing makes, as timm's.
            mix_probability: that a batch (a row, a pair: see ``mix_mode``) is mixed.
            switch_probability: with both, that it is CutMix and not MixUp.
            mix_mode: ``"batch"`` draws once for all rows; ``"elem"`` for every row, ``"pair"`` for every two rows that
                are mixed with each other; ``"half"`` mixes the first half of the rows with the second, and delivers
                that half.
            partner: a row is mixed with the one before it, ``"roll"`` (torchvision's, and the default of
                ``mix_mode="batch"``), or row i with row n - 1 - i, ``"flip"`` (timm's; the others know no other), for
                which ``batch_size`` must be even.

        With buckets every batch is of one of them, and padded to its bound, so that there are as many shapes as
        buckets; all ranks have the same shapes at the same step. Samples that do not fill a batch of all ranks go up
        into the next longer bucket, other ones in every epoch; ``uneven`` and ``drop_last`` are for what is left of
        the last. Shuffled, the batches of all buckets are mixed; else the shortest come first. A state goes on with
        the same bounds and the same rows over all ranks.

        With ``mixup`` or ``cutmix`` the label is float32 (rows, num_classes), shares that sum to 1, as torch's
        CrossEntropyLoss takes them. Every image of a sample is mixed alike; numbers, arrays and text stay as they are.
        Rows are mixed with others of the same rank's batch, by numbers that follow from the seed, the epoch, the
        batch and the rank. A batch of one row is not mixed, nor the middle row of an odd last batch that is flipped.

        Raises:
            ConfigError: a wrong argument or operation, a budget that does not hold one batch, endless epochs without a
                batch, a GPU that is not there or that torch cannot use; nothing is read. At the first use, no rank
                that is certain: see docs/parallelism.md. To be mixed: uint8 images, lists of images, a mask beside
                them, no integer label, or not known of how many classes.
            DataError: while it runs, under ``on_error``: a sample's class is not below num_classes.
        """
        options = LoaderOptions(
            batch_size=batch_size,
            shuffle=shuffle,
            shuffle_window=shuffle_window,
            seed=seed,
            drop_last=drop_last,
            num_workers=num_workers,
            memory_budget=memory_budget,
            in_order=in_order,
            on_error=on_error,
            error_budget=error_budget,
            rank=rank,
            world_size=world_size,
            mesh=mesh,
            dp=dp,
            uneven=uneven,
            epochs=epochs,
            device=device,
            dtype=dtype,
            layout=layout,
            output=output,
            timeout=timeout,
            buckets=buckets,
            max_tokens=max_tokens,
            repeat=repeat,
            mixup=mixup,
            cutmix=cutmix,
            num_classes=num_classes,
            label_smoothing=label_smoothing,
            mix_probability=mix_probability,
            switch_probability=switch_probability,
            mix_mode=mix_mode,
            partner=partner,
        )
        loader = options.make_loader(self._engine)
        if self._held:
            loader._held = self._held
        return loader


def _seed_and_epoch(where: str, seed: int, epoch: int) -> tuple[int, int]:
    high = 2**64 - 1
    return (
        arguments.integer(where, "seed", seed, low=0, high=high),
        arguments.integer(where, "epoch", epoch, low=0, high=high),
    )


def _tensor(value: Any) -> Any:
    """An array as torch's, over the same memory; all else as it is."""
    if not hasattr(value, "__array_interface__"):
        return value
    try:
        import torch
    except ImportError:
        raise ConfigError('sample: output="torch" and "tv_tensors" need torch; install it') from None
    return torch.from_numpy(value)


def _plain(value: Any) -> Any:
    """A number where it is an array of none but one; text, bytes and objects as they are."""
    return value.item() if getattr(value, "shape", None) == () else value
