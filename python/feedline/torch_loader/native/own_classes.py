# SPDX-License-Identifier: Apache-2.0
"""Reads the images of users' classes natively. The user's own expressions determine the paths and the other values."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate

from ...errors import Error
from ..lowering.datasets import sources
from ..lowering.datasets.stored_mode import is_stored_as_rgb
from ..lowering.functions.collate_functions import Stock
from ..lowering.own_code import own_classes
from ..lowering.own_code.sample_code import SampleCode
from ..lowering.own_code.sample_values import Refused
from ..lowering.transforms import transforms
from .images_iterator import Begun, NativeImageIterator, Pipeline
from .plans import ImagePlan
from .prefix import NativePrefix, Reader

_MASK = (1 << 64) - 1
_SPREAD = 0xD1B54A32D192ED03  # odd, so that the images of a sample draw from different numbers


class _Begun(Begun):
    """A batch of one or more images per sample.

    Attributes:
        firsts: the number of the first file, for each image of a sample.
        bad: rows that the dataset itself reads; at first those whose files are not stored in RGB, although the class
            does not convert them.
        taken: the batches that the engine has returned so far, in the order of a sample's images.
    """

    def __init__(self, firsts: list[int], labels: list[Any], unlike: set[int]) -> None:
        super().__init__(firsts[0], labels)
        self.firsts, self.bad = firsts, unlike
        self.taken: list[torch.Tensor] = []


class OwnClassIterator(NativeImageIterator):
    """One epoch over datasets of users' classes and image folders. The dataset itself reads each sample that differs
    from the plan.
    """

    def __init__(self, loader: Any, plan: ImagePlan) -> None:
        self._codes: dict[int, tuple[Any, SampleCode]] = {}  # each part with its code, by the part's identity
        self._more: list[Pipeline] = []  # pipelines for the other images of a sample
        super().__init__(loader, plan)

    def _start(self, loader: Any) -> None:
        leaves = sources.distinct_leaves(self._dataset)
        codes = [self._current_code(leaf) for leaf in leaves]
        found = [code for code in codes if code is not None]
        self._codes = {}
        fits = isinstance(self._plan.collation, Stock) or (bool(found) and found[0].is_pair)
        if found and fits and all(code.form == found[0].form for code in found):
            self._codes = {id(leaf): (leaf, code) for leaf, code in zip(leaves, codes, strict=True) if code is not None}
        self._sample = found[0].sample if found else None  # the same for all parts
        self._is_dict = bool(found) and found[0].kind is dict
        self._is_tuple = bool(found) and found[0].kind is tuple
        super()._start(loader)

    def _current_code(self, leaf: Any) -> SampleCode | None:
        """Returns a class's code with the current attributes; None if changed attributes have changed the
        transforms.
        """
        try:
            code = own_classes.code_of(leaf)
        except Refused:
            return None
        plans = (self._plan, *self._plan.more)
        if code.is_slow or len(plans) != len(code.images) or own_classes.why_not_apart(code):
            return None
        for image, plan in zip(code.images, plans, strict=True):
            assert plan.files is not None
            found = own_classes.chain(image, own_classes.decoded(plan.files, image))
            if found.rest or found.dataset.operations != plan.dataset.operations:
                return None
        return code

    def _begin(self, index: Any, batch: int) -> _Begun | None:
        codes, unlike = self._codes, set()
        paths: list[list[bytes]] = [[] for _ in range(1 + len(self._plan.more))]
        labels = []
        try:
            for row, i in enumerate(index):
                leaf, inner = sources.locate(self._dataset, i)
                code = codes[id(leaf)][1]
                found, others = code.row(inner)
                labels.append(others)
                for image, path, listed in zip(code.images, found, paths, strict=True):
                    listed.append(os.fsencode(path))
                    if not image.mode and not is_stored_as_rgb(path):
                        unlike.add(row)
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        if not labels:
            return None
        firsts = [self._ready(paths[0]).give(paths[0], draws)]
        for number, (pipeline, listed) in enumerate(zip(self._more, paths[1:], strict=True), 1):
            firsts.append(pipeline.give(listed, [(draw + number * _SPREAD) & _MASK for draw in draws]))
        return _Begun(firsts, labels, unlike)

    def _open(self) -> None:
        for pipeline in self._more:
            pipeline.give_back()
        super()._open()
        self._more = [self._opened(plan, image) for image, plan in enumerate(self._plan.more, 1)]

    def _abandon(self) -> None:
        super()._abandon()
        for pipeline in self._more:
            pipeline.give_back()
        self._more = []

    def _take(self, begun: Any) -> tuple[list[torch.Tensor], list[int]]:
        assert self._pipeline is not None
        pipelines = [self._pipeline, *self._more]
        for pipeline, first in list(zip(pipelines, begun.firsts, strict=True))[len(begun.taken) :]:
            batch = self._next_batch(pipeline)  # if this batch is late, the others are not requested again
            pipeline.forget(first)
            begun.taken.append(batch.to_torch()[0])
            begun.bad.update(row for row, _ in batch.bad)
        return begun.taken, sorted(begun.bad)

    def _first_rows(self, images: list[torch.Tensor], count: int) -> list[torch.Tensor]:
        return [image[:count] for image in images]

    def _samples(self, images: list[torch.Tensor], labels: list[Any]) -> list[Any]:
        assert self._sample is not None
        rows = zip(*(image.cpu() for image in images), strict=True)
        return [self._sample(row, others) for row, others in zip(rows, labels, strict=True)]

    def _collated(self, images: list[torch.Tensor], labels: list[Any], index: Any) -> Any:
        assert self._sample is not None
        if not isinstance(self._plan.collation, Stock):  # planned for an image and a label only
            return super()._collated(images[0], [label for (label,) in labels], index)
        try:
            columns = [
                default_collate(list(column) if self._is_dict else column) for column in zip(*labels, strict=True)
            ]
        except Exception:
            return self._in_python(index)  # raises it with torch's message
        batch = self._sample(images, columns)
        return list(batch) if self._is_tuple else batch


def same_chain(one: transforms.Chain, other: transforms.Chain) -> bool:
    """Returns whether the engine can apply two chains in one pipeline."""
    return (
        (one.rest, one.flows, one.channels, one.tv_image, one.crops)
        == (other.rest, other.flows, other.channels, other.tv_image, other.crops)
    ) and one.dataset.operations == other.dataset.operations


class OwnClassPrefix(NativePrefix):
    """Replaces a user's dataset in a worker. Supported transforms at the start run natively, the others in Python."""

    def __getitem__(self, index: Any) -> Any:
        leaf, inner_index = sources.locate(self._inner, index)
        reader = getattr(self._readers, "reader", None)
        if reader is None or reader.pid != os.getpid() or not _same_attributes(reader.attributes, vars(leaf)):
            reader = self._readers.reader = self._make_reader(leaf)
            reader.attributes = dict(vars(leaf))
        if reader.code is None:
            return self._inner[index]
        code: SampleCode = reader.code
        try:
            paths, others = code.row(inner_index)
            given = list(zip(code.images, reader.readers, paths, strict=True))
            if not all(image.mode or is_stored_as_rgb(path) for image, _, path in given):
                return self._inner[index]
            images = [r.read(path) if r.reads else own_classes.read_by_pillow(image, path) for image, r, path in given]
        except Exception:
            return self._inner[index]  # the dataset raises its own errors
        for transform in reader.readers[0].rest:  # empty if there are several images
            images[0] = transform(images[0])
        return code.sample(images, others)

    def _make_reader(self, leaf: Any) -> Any:
        try:
            code = own_classes.code_of(leaf)
            return _Unread() if own_classes.why_not_apart(code) else _CodeReaders(code)
        except (Refused, Error):
            return _Unread()


def _same_attributes(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Returns True if no attribute was set. In persistent workers, the dataset's set_epoch() may set attributes."""
    return len(before) == len(now) and all(now.get(name, before) is value for name, value in before.items())


class _CodeReaders:
    """A reader for each image of a sample.

    Attributes:
        attributes: those of the dataset when its code was read.
    """

    def __init__(self, code: SampleCode) -> None:
        self.pid, self.code = os.getpid(), code
        self.attributes: dict[str, Any] = {}
        self.readers = []
        for image in code.images:
            files = sources.GivenFiles("files")
            self.readers.append(Reader(files, own_classes.front(image, own_classes.decoded(files, image))))


class _Unread:
    """Represents a class that cannot be read natively in this process, because its source is missing."""

    def __init__(self) -> None:
        self.pid, self.code = os.getpid(), None
        self.attributes: dict[str, Any] = {}
