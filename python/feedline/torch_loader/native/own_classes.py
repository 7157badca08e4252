# SPDX-License-Identifier: Apache-2.0
"""Reads the images of users' classes natively; the user's own expressions find the paths and the other values."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate

from ...errors import Error
from ..known import own_classes, sources
from ..known.known_collate import Stock
from ..known.sample_code import SampleCode, sample_code
from ..known.sample_values import Refused
from ..known.stored_mode import is_stored_as_rgb
from .images_iterator import Begun, NativeImageIterator
from .plans import ImagePlan
from .prefix import NativePrefix, Reader


class _Begun(Begun):
    def __init__(self, first: int, labels: list[Any], unlike: list[int]) -> None:
        """`unlike`: rows whose files are not stored in RGB, which the class does not convert."""
        super().__init__(first, labels)
        self.unlike = unlike


class OwnClassIterator(NativeImageIterator):
    """One epoch over a user's class. The dataset itself reads each sample that differs from the plan."""

    def __init__(self, loader: Any, plan: ImagePlan) -> None:
        self._code: SampleCode | None = None
        super().__init__(loader, plan)

    def _start(self, loader: Any) -> None:
        self._code = self._current_code()
        super()._start(loader)

    def _current_code(self) -> SampleCode | None:
        """The class's code with the present attributes; None if they changed the transforms."""
        assert self._plan.files is not None
        try:
            code = sample_code(sources.leaves(self._dataset)[0])
            found = own_classes.chain(code, own_classes.decoded(self._plan.files, code))
        except Refused:
            return None
        same = not found.rest and not code.called
        return code if same and found.dataset.operations == self._plan.dataset.operations else None

    def _begin(self, index: Any, batch: int) -> _Begun | None:
        code = self._code
        if code is None:
            return None
        try:
            rows = [code.row(i) for _, i in (sources.locate(self._dataset, i) for i in index)]
            paths = [os.fsencode(path) for path, _ in rows]
            draws = [self._draw(int(i), batch, row) for row, i in enumerate(index)]
        except Exception:
            return None  # the dataset raises it again at the point where torch would
        if not paths:
            return None
        unlike = [] if code.mode else [row for row, path in enumerate(paths) if not is_stored_as_rgb(path)]
        return _Begun(self._ready(paths).give(paths, draws), [others for _, others in rows], unlike)

    def _take(self, begun: Any) -> tuple[torch.Tensor, list[int]]:
        images, bad = super()._take(begun)
        return images, sorted({*bad, *begun.unlike})

    def _samples(self, images: torch.Tensor, labels: list[Any]) -> list[Any]:
        assert self._code is not None
        return [self._code.sample(image, others) for image, others in zip(images, labels, strict=True)]

    def _collated(self, images: torch.Tensor, labels: list[Any], index: Any) -> Any:
        code = self._code
        assert code is not None
        if not isinstance(self._plan.collation, Stock):  # planned for an image and a label only
            return super()._collated(images, [label for (label,) in labels], index)
        try:
            columns = [
                default_collate(list(column) if code.kind is dict else column) for column in zip(*labels, strict=True)
            ]
        except Exception:
            return self._in_python(index)  # raises it with torch's message
        batch = code.sample(images, columns)
        return list(batch) if code.kind is tuple else batch


class OwnClassPrefix(NativePrefix):
    """Replaces a user's dataset in a worker: known transforms at the start run natively, the others in Python."""

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
            path, others = code.row(inner_index)
            if not code.mode and not is_stored_as_rgb(path):
                return self._inner[index]
            image = reader.read(path) if reader.reads else own_classes.read_by_pillow(code, path)
        except Exception:
            return self._inner[index]  # the dataset raises its own errors
        for transform in reader.rest:
            image = transform(image)
        return code.sample(image, others)

    def _make_reader(self, leaf: Any) -> Any:
        try:
            return _CodeReader(sample_code(leaf))
        except (Refused, Error):
            return _Unread()


def _same_attributes(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether no attribute was set: the dataset's set_epoch() may set some in persistent workers."""
    return len(before) == len(now) and all(now.get(name, before) is value for name, value in before.items())


class _CodeReader(Reader):
    def __init__(self, code: SampleCode) -> None:
        files = sources.GivenFiles("files")
        super().__init__(files, own_classes.front(code, own_classes.decoded(files, code)))
        self.code = code
        self.attributes: dict[str, Any] = {}  # of the dataset, when its code was read


class _Unread:
    """Stands for a class that cannot be read natively in this process, where its source is missing."""

    def __init__(self) -> None:
        self.pid, self.code = os.getpid(), None
        self.attributes: dict[str, Any] = {}
