# SPDX-License-Identifier: Apache-2.0
"""The images of packed documents: their sizes are stored next to the tokens, and their samples are read again."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import _engine
from ...errors import DataError, Error
from ...loader.image_packed_loader import mrope_positions
from ..map.mapping import BadField
from .chats import ImageChatTokens, facts, values_shape
from .processors import EncoderInput


class _DocumentImages:
    """The parts of PackedImages and MixedImages that follow from the encoder's inputs of each document."""

    def __init__(self, function: ImageChatTokens) -> None:
        self.function = function
        self.names = tuple(function.image_fields)

    def inputs_of(self, document: int) -> list[EncoderInput]:
        raise NotImplementedError

    def allocate(
        self, documents: Sequence[int], empty: Callable[[tuple[int, ...]], Any]
    ) -> tuple[list[Any], list[Any]]:
        processor = self.function.processor
        inputs = [self.inputs_of(document) for document in documents]
        every = [one for of_one in inputs for one in of_one]
        values = empty(values_shape(processor, every))
        parts: list[Any] = []
        at = 0
        for of_one in inputs:
            rows = sum(one.shape[0] for one in of_one)
            parts.append(values[at : at + rows] if of_one else None)
            at += rows
        return [values, *([facts(processor, every)] if processor.facts else [])], parts

    def positions(self, batch: Any) -> Any:
        processor = self.function.processor
        if processor.facts != "image_grid_thw":
            return None
        import torch

        ids, positions, grids = (
            getattr(batch, name).cpu().numpy() for name in ("input_ids", "position_ids", processor.facts)
        )
        merge = processor.patches[1]
        made = mrope_positions(ids, positions, self.function.image_id, grids, merge)
        return torch.from_numpy(made).to(batch.input_ids.device)


class PackedImages(_DocumentImages):
    """The images of the documents in a token file, whose numbers are those of the samples.

    The file with sizes has int32 pairs: height and width of each image, and after each document's images 0 and the
    number of tokens that were cut off because they did not fit in a row; -1 for a sample that was left out.
    """

    def __init__(self, function: ImageChatTokens, samples: Any, sizes: Path) -> None:
        super().__init__(function)
        self._samples, self._folder = samples, sizes.parent
        self._sizes = np.memmap(sizes, "<i4", "r").reshape(-1, 2)
        self._ends = np.flatnonzero(self._sizes[:, 0] == 0)

    def truncated(self) -> tuple[int, int]:
        """Returns the number of documents that were truncated to the length of a row, and of tokens cut off."""
        lost = self._sizes[self._ends, 1]
        return int((lost > 0).sum()), int(lost.clip(min=0).sum(dtype=np.int64))

    def left_out(self) -> int:
        """Returns the number of samples that were left out."""
        return int((self._sizes[self._ends, 1] < 0).sum())

    def count(self) -> int:
        """Returns the number of images."""
        return len(self._sizes) - len(self._ends)

    def inputs_of(self, document: int) -> list[EncoderInput]:
        """Returns the encoder's inputs of a document, whose last images may be truncated."""
        begin = int(self._ends[document - 1]) + 1 if document else 0
        sizes = self._sizes[begin : int(self._ends[document])].tolist()
        return [self.function.processor.input_of((height, width)) for height, width in sizes]

    def read(self, document: int, out: Any) -> None:
        function = self.function
        inputs = self.inputs_of(document)
        at = 0
        try:
            encoded = function.images(dict(self._samples._engine.sample(document, 0, 0)), len(inputs))
            if len(encoded) < len(inputs):
                raise self._error(document, f"{len(inputs)} images had been found, now {len(encoded)}; {self._again}")
            for number, (image, one) in enumerate(zip(encoded, inputs, strict=True)):
                try:
                    function.processor.write(image, one, out[at : at + one.shape[0]])
                except DataError as error:
                    why = f"image {number}: {error.message}"
                    if self._has_changed(image, one):
                        why += f"; {self._again}"
                    raise self._error(document, why) from error
                at += one.shape[0]
        except BadField as error:
            raise self._error(document, str(error)) from error

    @property
    def _again(self) -> str:
        return f"the images have changed since they were tokenized: remove {self._folder}"

    @staticmethod
    def _has_changed(encoded: Any, image: EncoderInput) -> bool:
        try:
            return _engine.upright_size(encoded) != image.size
        except Error:
            return False

    def _error(self, document: int, why: str) -> DataError:
        source, field = self._samples.source, self.function.images.fields[0]
        return DataError(f"loader: field '{field}': {why} [dataset {source}, sample {document}]", dataset=source)


class MixedImages(_DocumentImages):
    """The images of a mixture of tokenized datasets, whose documents are numbered one dataset after the other.

    Args:
        parts: the images of each dataset, for the same model.
        documents: the number of documents of each dataset.
    """

    def __init__(self, parts: Sequence[PackedImages | MixedImages], documents: Sequence[int]) -> None:
        super().__init__(parts[0].function)
        self._parts = parts
        self._firsts = [0, *itertools.accumulate(documents)][:-1]

    def _part_of(self, document: int) -> tuple[PackedImages | MixedImages, int]:
        part = bisect.bisect_right(self._firsts, document) - 1
        return self._parts[part], document - self._firsts[part]

    def truncated(self) -> tuple[int, int]:
        documents, tokens = zip(*(part.truncated() for part in self._parts), strict=True)
        return sum(documents), sum(tokens)

    def left_out(self) -> int:
        return sum(part.left_out() for part in self._parts)

    def count(self) -> int:
        return sum(part.count() for part in self._parts)

    def inputs_of(self, document: int) -> list[EncoderInput]:
        part, number = self._part_of(document)
        return part.inputs_of(number)

    def read(self, document: int, out: Any) -> None:
        part, number = self._part_of(document)
        part.read(number, out)
