# SPDX-License-Identifier: Apache-2.0
"""Datasets whose sequences of tokens are packed into rows of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from .. import _engine
from ..errors import ConfigError
from ..loader import gpu
from ..loader.batches import Batch
from ..loader.loader import Output
from ..loader.pack_presets import PRESETS, MegatronBatch, ThdBatch, TorchTitanInput, TransformersBatch
from ..loader.packed_loader import PackedLoader
from ..machine import limits as host_limits
from ..machine import ranks
from . import arguments, literals
from .loader_options import engine_options, epoch_count, warn_of_blocks

if TYPE_CHECKING:
    from torch import Tensor

    from ..loader.image_packed_loader import BatchImages

_WHERE = "pack_sequences"
_BIG = 2**63 - 1
_DEFAULT_LABELS = "input_ids"


class LoaderOptions(TypedDict, total=False):
    """The options of :meth:`PackedSequences.loader` except for the preset, for type checkers."""

    shuffle: bool | Literal["shards"]
    shuffle_window: int
    seed: int
    drop_last: bool
    num_workers: int | Literal["auto"]
    memory_budget: int | str | None
    rank: int | None
    world_size: int | None
    mesh: Any
    dp: str | int | Sequence[str | int] | None
    uneven: literals.Uneven
    epochs: float | None
    device: Any
    output: Literal["torch", "numpy"]
    timeout: float | None
    on_error: Literal["raise", "skip"]


def pack(engine: _engine.Dataset, options: dict[str, Any], labels: str | None) -> PackedSequences:
    """Implements :meth:`Dataset.pack_sequences`."""
    return PackedSequences(_engine.pack_sequences(engine, options), options, labels)


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    """Checks the arguments of :meth:`Dataset.pack_sequences`, and returns the engine's options."""
    field = given["field"]
    if field is not None and (not isinstance(field, str) or not field):
        raise ConfigError(f"{_WHERE}: field must be the name of a field, not {field!r}")
    vocabulary, labels = given["vocabulary"], given["labels"]
    if labels is not None:
        arguments.choice(_WHERE, "labels", labels, ("input_ids", "next_token"))
    return {
        "field": field or "",
        "length": arguments.integer(_WHERE, "length", given["length"], low=2, high=_BIG),
        "method": arguments.choice(_WHERE, "method", given["method"], ("best_fit", "concat")),
        "long": arguments.choice(_WHERE, "long", given["long"], ("split", "truncate", "drop")),
        "window": arguments.integer(_WHERE, "window", given["window"], low=1, high=_BIG),
        "pad": arguments.integer(_WHERE, "pad", given["pad"], low=0, high=_BIG),
        "pad_to_multiple_of": arguments.integer(
            _WHERE, "pad_to_multiple_of", given["pad_to_multiple_of"], low=1, high=_BIG
        ),
        "vocabulary": 0
        if vocabulary is None
        else arguments.integer(_WHERE, "vocabulary", vocabulary, low=1, high=_BIG),
    }


class PackedSequences:
    """The documents of a dataset, packed into rows of equal length. Created by :meth:`Dataset.pack_sequences`."""

    def __init__(self, engine: _engine.PackedDataset, options: dict[str, Any], labels: str | None) -> None:
        self._engine = engine
        self._options = options
        self._labels = labels  # None: the preset's
        self._revisions: list[str] = []  # as in Loader
        self._images: BatchImages | None = None

    @property
    def documents(self) -> int:
        """The number of documents, including empty ones."""
        return self._engine.documents

    def __repr__(self) -> str:
        long, method = self._options["long"], self._options["method"]
        return (
            f"<feedline.PackedSequences of {self.documents} documents: length={self._options['length']}, "
            f"{method=}, {long=}, window={self._options['window']}>"
        )

    if TYPE_CHECKING:

        @overload
        def loader(
            self, batch_size: int, *, preset: None = None, **options: Unpack[LoaderOptions]
        ) -> PackedLoader[Batch]: ...
        @overload
        def loader(
            self, batch_size: int, *, preset: Literal["transformers"], **options: Unpack[LoaderOptions]
        ) -> PackedLoader[TransformersBatch]: ...
        @overload
        def loader(
            self, batch_size: int, *, preset: Literal["torchtitan"], **options: Unpack[LoaderOptions]
        ) -> PackedLoader[tuple[TorchTitanInput, Tensor]]: ...
        @overload
        def loader(
            self, batch_size: int, *, preset: Literal["megatron"], **options: Unpack[LoaderOptions]
        ) -> PackedLoader[MegatronBatch]: ...
        @overload
        def loader(
            self, batch_size: int, *, preset: Literal["thd"], **options: Unpack[LoaderOptions]
        ) -> PackedLoader[ThdBatch]: ...
        @overload
        def loader(
            self, batch_size: int, *, preset: literals.PackPreset | None, **options: Unpack[LoaderOptions]
        ) -> PackedLoader[Any]: ...

    def loader(
        self,
        batch_size: int,
        *,
        shuffle: bool | Literal["shards"] = False,
        shuffle_window: int = 16,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int | Literal["auto"] = "auto",
        memory_budget: int | str | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        dp: str | int | Sequence[str | int] | None = None,
        uneven: literals.Uneven = "pad",
        epochs: float | None = None,
        device: Any = None,
        output: Literal["torch", "numpy"] = "torch",
        preset: literals.PackPreset | None = None,
        timeout: float | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> PackedLoader[Any]:
        """Returns a loader of batches of packed rows.

        The documents are permuted globally in every epoch, as by :meth:`Dataset.loader`, and packed window by window.
        The stream of packs is the same for any number of ranks, threads and batches: a global batch is the next
        ``batch_size * world_size`` packs of it. They are divided among the ranks so that the sums of squared
        document lengths, and therefore the times for attention, are similar. A state can be loaded with a different
        number of ranks or batch size, and resumes at the same pack.

        Args:
            batch_size: rows per batch, on each rank.
            shuffle, shuffle_window, seed: order of the documents, as for :meth:`Dataset.loader`. Packs of a window are
                permuted too if ``shuffle`` is set.
            drop_last: drops an incomplete last global batch.
            uneven: handling of an incomplete last global batch: ``"pad"`` repeats packs from the start of the epoch,
                so that every rank has the same number of rows, ``"drop"`` drops some, and ``"exact"`` delivers each
                pack once, so that ranks may differ by one row or batch.
            preset: returns batches in the form of a trainer instead of named tuples, with B rows of L tokens (int64,
                unless stated otherwise):

                - ``"transformers"``: a dict for ``model(**batch)``, like ``DataCollatorWithFlattening``: ``input_ids``,
                  ``labels`` and ``position_ids`` (1, B*L), ``seq_idx`` int32 (1, B*L), ``cu_seq_lens_q`` and
                  ``cu_seq_lens_k`` int32 (segments + 1), ``max_length_q`` and ``max_length_k`` int.
                - ``"torchtitan"``: ``({"input": ..., "positions": ...}, labels)``, each (B, L).
                - ``"megatron"``: a dict like that of ``GPTDataset`` with ``inter_document_masking``: ``tokens``,
                  ``labels``, ``loss_mask`` float32 and ``position_ids`` (B, L), ``cu_seqlens`` int32 (B, L + 1),
                  ``max_seqlen`` int32 (B,).
                - ``"thd"``: a dict with ``tokens``, ``labels``, ``loss_mask`` float32 and ``position_ids`` (1, B*L),
                  and ``packed_seq_params``, a dict of arguments for TransformerEngine's attention and for Megatron's
                  ``PackedSeqParams``. ``pack_sequences(pad_to_multiple_of=)`` pads documents.

                Labels are the next tokens, except for ``"transformers"``. ``"megatron"`` and ``"thd"`` have the label 0
                where the loss mask is 0.
            memory_budget: as for :meth:`Dataset.loader`, and also the most bytes of images in memory before their batch
                is requested; by default, those of three batches. Those of one batch are always in memory.
            num_workers, rank, world_size, mesh, dp, epochs, device, output, timeout: as for
                :meth:`Dataset.loader`; ranks are data-parallel ranks. Presets need ``output="torch"``.
            on_error: with ``"skip"``, the labels of a document with a damaged image are -100 and the values of its
                images 0, which is logged and counted in ``bad_documents``. Only for documents with images.

        Raises:
            ConfigError: an argument is wrong, a batch has 2^31 tokens or more, or the preset needs other labels than
                those passed to ``pack_sequences``.
            DataError, StorageError: a document cannot be read; raised by ``next()`` instead of its batch. Its location
                is that of the document.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        padded = self._options["pad_to_multiple_of"] > 1
        loader = make_packed_loader(self._engine, given, self._labels, padded=padded, images=self._images)
        loader._revisions = self._revisions
        return loader

    def count(
        self, epoch: int = 0, *, shuffle: bool = True, seed: int = 0, windows: int | None = None
    ) -> dict[str, int | float]:
        """Returns the effect of packing on the documents of an epoch, computed only from their lengths.

        Args:
            epoch, shuffle, seed: select the order, as for :meth:`loader`.
            windows: counts only the first windows. With images, ``truncated`` and ``lost_tokens`` are those of all
                documents.

        Returns:
            Numbers of documents: ``documents`` (all), ``empty`` (without tokens, so they are skipped), ``dropped`` and
            ``truncated`` (longer than a row), and ``split`` (in several rows). ``pieces`` and ``tokens`` are the
            numbers of pieces and tokens in rows, ``lost_tokens`` those of dropped and truncated documents. ``packs`` is
            the number of rows, and ``fill`` the fraction of their positions that contain tokens.
        """
        loader = _engine.make_packed_loader(
            self._engine,
            {
                "batch_size": 1,
                "shuffle": arguments.flag("count", "shuffle", shuffle),
                "seed": arguments.integer("count", "seed", seed, low=0, high=2**64 - 1),
                "num_workers": 1,
            },
            _DEFAULT_LABELS,
        )
        first = arguments.integer("count", "epoch", epoch, low=0, high=_BIG)
        most = None if windows is None else arguments.integer("count", "windows", windows, low=1, high=_BIG)
        counts = loader.pack_counts(first, most)
        if self._images is not None:
            (cut, lost), left_out = self._images.truncated(), self._images.left_out()
            nothing_left = counts["empty"] - left_out
            counts |= {"truncated": cut - nothing_left, "lost_tokens": counts["lost_tokens"] + lost}
            counts |= {"dropped": counts["dropped"] + nothing_left, "empty": left_out}
        places = counts["packs"] * self._options["length"]
        return {**counts, "fill": counts["tokens"] / places if places else 0.0}

    def explain(self) -> str:
        """Returns a text with the packs of epoch 0: fill, documents per pack, and documents that are split, truncated,
        dropped or empty. If there are very many documents, only the first windows are counted. Images have a separate
        line, because documents with images are truncated before they are packed.
        """
        options = {"batch_size": 1, "shuffle": True, "num_workers": 1}
        loader = _engine.make_packed_loader(self._engine, options, self._labels or _DEFAULT_LABELS)
        lines = [line for line in loader.explain().split("\n") if line.startswith(("format ", "packing "))]
        if self._images is not None:
            cut, lost = self._images.truncated()
            lines.append(f"images     {self._images.count()} images; {cut} documents were truncated by {lost} tokens")
        return "".join(f"{line}\n" for line in lines)


def make_packed_loader(
    packed: _engine.PackedDataset,
    given: dict[str, Any],
    labels: str | None,
    *,
    padded: bool,
    images: BatchImages | None = None,
) -> PackedLoader[Any]:
    """Creates a loader.

    Args:
        given: all arguments of `PackedSequences.loader`, by name.
        labels: the labels; None: those of the preset.
        padded: whether documents are padded.
        images: the documents' images, if they have any.
    """
    where = "loader"
    skips = arguments.choice(where, "on_error", given["on_error"], ("raise", "skip")) == "skip"
    if images is None and skips:
        raise ConfigError(f'{where}: on_error="skip" is only supported for packed documents with images')
    output = Output(arguments.choice(where, "output", given["output"], ("torch", "numpy")))
    preset, name = None, given["preset"]
    if name is not None:
        preset = PRESETS[arguments.choice(where, "preset", name, tuple(PRESETS))]
        if output is not Output.TORCH:
            raise ConfigError(f"{where}: preset={name!r} needs output='torch', not 'numpy'")
        if labels not in (None, preset.labels):
            raise ConfigError(
                f"{where}: preset={name!r} needs labels={preset.labels!r}, but pack_sequences was called with "
                f"{labels=}; omit labels="
            )
    chosen = preset.labels if preset else labels or _DEFAULT_LABELS
    cuda_device = gpu.index_of(where, given["device"], output)
    share = ranks.Share(where, given["rank"], given["world_size"], given["mesh"], given["dp"])
    try:
        place = share.place()
    except ConfigError:  # raised again at the first use, unless a process group is initialised by then
        place = ranks.ProcessRank(0, 1, "")
    options = engine_options({**given, "on_error": "raise"}) | {"cuda_device": cuda_device}
    epochs = epoch_count(given["epochs"])

    def make_engine(place: ranks.ProcessRank) -> _engine.Loader:
        given_rank = {"rank": place.rank, "world_size": place.world_size}
        return _engine.make_packed_loader(packed, options | given_rank, chosen)

    engine = make_engine(place)
    warn_of_blocks(engine)
    kind: Any = PackedLoader
    if images is not None:
        from ..loader.image_packed_loader import ImagePackedLoader  # imports NumPy

        threads = options["num_workers"] or host_limits.usable_cpus()
        own: dict[str, Any] = {"threads": threads, "budget": options.get("memory_budget")}
        kind = partial(ImagePackedLoader, images=images, skips=skips, device=cuda_device, **own)
    loader: PackedLoader[Any] = kind(
        engine,
        output,
        place=place,
        share=share,
        make_engine=make_engine,
        remake=lambda num_workers: make_packed_loader(
            packed, {**given, "num_workers": num_workers}, labels, padded=padded, images=images
        ),
        epochs=epochs,
        on_gpu=cuda_device is not None,
        batch_size=options["batch_size"],
        form=partial(preset.form, padded=padded) if preset else None,
    )
    return loader
