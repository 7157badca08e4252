# SPDX-License-Identifier: Apache-2.0
"""Lowers `datasets.IterableDataset`: the engine decodes the images for a recognised function of map(), within each
worker.

    Parquet -> [shuffle, skip, ...] -> features decoded -> map(function) -> [shuffle, with_format, ...]

becomes, in each worker,

    the same -> features decoded, the image left encoded -> map(native replacement of the function) -> the same

so that the order, the shards for workers and ranks, and the buffers, states and errors in datasets' own steps do not
change.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..native.encoded_columns import MODES, Function, chain_for
from ..native.prefix import NativePrefix
from .datasets import arrow_images
from .functions import batch_functions
from .functions.batch_functions import OfImages
from .transforms import transforms

_MODULE = "datasets.iterable_dataset"
# Steps that pass on or omit samples without reading their contents.
_INERT = frozenset(
    (
        "BufferShuffledExamplesIterable",
        "InterleavedShardsExamplesIterable",
        "RepeatExamplesIterable",
        "SkipExamplesIterable",
        "StepExamplesIterable",
        "TakeExamplesIterable",
    )
)
# Steps that get samples from one other step.
_STEPS = _INERT | {
    "FilteredExamplesIterable",
    "FormattedExamplesIterable",
    "MappedExamplesIterable",
    "RebatchedArrowExamplesIterable",
    "SelectColumnsIterable",
}


@dataclass(frozen=True)
class Found:
    """A recognised function that was passed to map().

    Attributes:
        steps: the dataset's steps, from the last one back to the one with the recognised function.
        function: its effect.
        mode: the Pillow mode of the images that the function receives; None means each file's own mode.
    """

    steps: tuple[Any, ...]
    function: OfImages
    mode: str | None

    def chain(self) -> transforms.Chain:
        """Returns the chain of the function's supported transforms."""
        return chain_for(self.function.transform, self.mode or "RGB")


def is_one(dataset: Any) -> bool:
    """Returns whether `dataset` is exactly a `datasets.IterableDataset`, not a subclass."""
    return type(dataset) is getattr(sys.modules.get(_MODULE), "IterableDataset", None)


def find(dataset: Any) -> Found | str:
    """Returns the function whose images the engine decodes, or the reason why the engine decodes none."""
    steps = _steps_of(dataset)
    why = "there is no map() of a dataset with an Image feature"
    for i in reversed(range(len(steps))):  # the first map() decodes
        step = steps[i]
        if _name(step) != "MappedExamplesIterable" or _images_of(step) is None or _is_identity(step):
            continue
        found = _found(steps[: i + 1])
        if not isinstance(found, str):
            return found
        why = found
    return why


def _found(steps: tuple[Any, ...]) -> Found | str:
    step = steps[-1]
    features = _images_of(step)
    why = _why_not_plain(step)
    if why:
        return why
    function = batch_functions.of_images(step.function, step.batched)
    name = getattr(step.function, "__qualname__", type(step.function).__qualname__)
    if function is None:
        return f"{name} is not a function that the engine recognises"
    if features is None or function.image not in features:
        return f'{name}: the column "{function.image}" is not an Image feature with decoding enabled'
    if function.image != function.made and not _drops(steps, function.image):
        return f'a sample contains "{function.image}", a PIL image, in addition to "{function.made}"'
    mode = features[function.image].mode
    if mode not in (None, *MODES):
        return f"the dataset's images have mode {mode}, which the engine does not support"
    if function.converts and mode not in (None, "RGB"):
        return f"the dataset's images have mode {mode}, and are converted to RGB only after the transform"
    if mode is None and (function.converts or arrow_images.converts(function.transform)):
        mode = "RGB"
    return Found(steps, function, mode)


def _steps_of(dataset: Any) -> tuple[Any, ...]:
    """Returns the steps that are recognised, starting from the last one."""
    steps, step = [], dataset._ex_iterable
    while _name(step) in _STEPS:
        steps.append(step)
        step = step.ex_iterable
    return tuple(steps)


def _name(step: Any) -> str:
    """Returns the class name if `step` is exactly one of datasets' own steps; otherwise empty."""
    kind = type(step)
    return kind.__name__ if getattr(sys.modules.get(_MODULE), kind.__name__, None) is kind else ""


def _images_of(step: Any) -> dict[str, Any] | None:
    """Returns the columns that are decoded as images before a map(); None if there are none."""
    front = step.ex_iterable
    if _name(front) != "FormattedExamplesIterable" or front.ex_iterable.is_typed:
        return None
    kind = getattr(sys.modules.get("datasets.features.image"), "Image", None)
    images = {name: one for name, one in (front.features or {}).items() if type(one) is kind and one.decode}
    return images or None


def _why_not_plain(step: Any) -> str:
    """Returns why a map() function does not receive samples as Python objects, or an empty string if it does."""
    for name in ("with_indices", "input_columns", "fn_kwargs"):
        if getattr(step, name):
            return f"map() has {name}"
    if _is_formatted(step) or step.is_batch_accumulate_arrow_table_function:
        return "the function of map() receives tables or tensors"
    return ""


def _drops(steps: tuple[Any, ...], column: str) -> bool:
    """Returns whether a column is dropped before any other step reads it."""
    for step in reversed(steps):
        name = _name(step)
        if name == "SelectColumnsIterable":
            return column not in step.column_names
        if name == "MappedExamplesIterable" and (step is steps[-1] or _is_identity(step)):
            if column in (step.remove_columns or ()):
                return True
        elif name not in _INERT:
            return False
    return False


def _is_identity(step: Any) -> bool:
    return step.function is sys.modules[_MODULE].identity_func and not (_is_formatted(step) or step.input_columns)


def _is_formatted(step: Any) -> bool:
    return step.formatting is not None and step.formatting.format_type is not None


def with_native_images(dataset: Any) -> Any:
    """Returns a copy of `dataset` whose images the engine decodes, or `dataset` itself if the engine decodes none."""
    found = find(dataset)
    if isinstance(found, str):
        return dataset
    *later, mapped = found.steps
    front = copy.copy(mapped.ex_iterable)
    feature = copy.copy(front.features[found.function.image])
    feature.decode = False
    front._features = type(front.features)({**front.features, found.function.image: feature})
    step = copy.copy(mapped)
    step.ex_iterable = front
    step.function = Function(
        found.function,
        step.batched,
        found.mode,
        functools.partial(
            mapped.ex_iterable.features[found.function.image].decode_example,
            token_per_repo_id=front.token_per_repo_id,
        ),
    )
    for one in reversed(later):
        inner, step = step, copy.copy(one)
        step.ex_iterable = inner
    same = object.__new__(type(dataset))
    vars(same).update(vars(dataset))  # both share its epoch, a tensor
    same._ex_iterable = step
    return same


class ArrowStream(NativePrefix):
    """Replaces an IterableDataset in a worker. States, epochs and all other attributes come from the original
    dataset.
    """

    def __iter__(self) -> Iterator[Any]:
        native = with_native_images(self._inner)
        samples = iter(native)
        for sample in samples:
            self._inner._state_dict = native._state_dict  # which continues with it
            yield sample
        self._inner._state_dict = native._state_dict
