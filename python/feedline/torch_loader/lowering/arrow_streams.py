# SPDX-License-Identifier: Apache-2.0
"""`datasets.IterableDataset`: images that a known function of map() gets are decoded by the engine, within each worker.

    Parquet -> [shuffle, skip, ...] -> features decoded -> map(function) -> [shuffle, with_format, ...]

becomes, in each worker,

    the same -> features decoded, the image left encoded -> map(what stands for the function) -> the same

so that order, shards of workers and ranks, buffers, states and errors of datasets' own steps are what they were.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..known import arrow_images, known_batch_functions, transforms
from ..known.known_batch_functions import OfImages
from ..native.encoded_columns import MODES, Function, chain_for
from ..native.prefix import NativePrefix

_MODULE = "datasets.iterable_dataset"
# Steps that hand samples on, or leave some out, without a look at what is in them.
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
# Steps with one step in front of them, which they get samples from.
_STEPS = _INERT | {
    "FilteredExamplesIterable",
    "FormattedExamplesIterable",
    "MappedExamplesIterable",
    "RebatchedArrowExamplesIterable",
    "SelectColumnsIterable",
}


@dataclass(frozen=True)
class Found:
    """A function of map() that the engine knows.

    Attributes:
        steps: of the dataset, the last one first, up to the one whose function is known.
        function: what it does.
        mode: of Pillow's images that it gets; None: what each file has.
    """

    steps: tuple[Any, ...]
    function: OfImages
    mode: str | None

    def chain(self) -> transforms.Chain:
        """What the engine knows of the function's transforms."""
        return chain_for(self.function.transform, self.mode or "RGB")


def is_one(dataset: Any) -> bool:
    """A `datasets.IterableDataset`, by exact type."""
    return type(dataset) is getattr(sys.modules.get(_MODULE), "IterableDataset", None)


def find(dataset: Any) -> Found | str:
    """The images that the engine decodes, or why it decodes none."""
    steps = _steps_of(dataset)
    why = "no map() of a dataset whose features have an Image"
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
    function = known_batch_functions.of_images(step.function, step.batched)
    name = getattr(step.function, "__qualname__", type(step.function).__qualname__)
    if function is None:
        return f"{name} is not a function that the engine knows by what it does"
    if features is None or function.image not in features:
        return f'{name}: its column "{function.image}" is no Image that is decoded'
    if function.image != function.made and not _drops(steps, function.image):
        return f'a sample keeps "{function.image}", an image of Pillow\'s, beside "{function.made}"'
    mode = features[function.image].mode
    if mode not in (None, *MODES):
        return f"its images are {mode}, which the engine does not decode to"
    if function.converts and mode not in (None, "RGB"):
        return f"its images are {mode}, and converted to RGB then"
    if mode is None and (function.converts or arrow_images.converts(function.transform)):
        mode = "RGB"
    return Found(steps, function, mode)


def _steps_of(dataset: Any) -> tuple[Any, ...]:
    """The steps that are known, from the last one on."""
    steps, step = [], dataset._ex_iterable
    while _name(step) in _STEPS:
        steps.append(step)
        step = step.ex_iterable
    return tuple(steps)


def _name(step: Any) -> str:
    """The class of a step of datasets' own, by exact type; else nothing."""
    kind = type(step)
    return kind.__name__ if getattr(sys.modules.get(_MODULE), kind.__name__, None) is kind else ""


def _images_of(step: Any) -> dict[str, Any] | None:
    """The columns that are decoded as images in front of a map(); None: nothing is."""
    front = step.ex_iterable
    if _name(front) != "FormattedExamplesIterable" or front.ex_iterable.is_typed:
        return None
    kind = getattr(sys.modules.get("datasets.features.image"), "Image", None)
    images = {name: one for name, one in (front.features or {}).items() if type(one) is kind and one.decode}
    return images or None


def _why_not_plain(step: Any) -> str:
    """Why the function of a map() gets something else than samples of Python's; empty where it does not."""
    for name in ("with_indices", "input_columns", "fn_kwargs"):
        if getattr(step, name):
            return f"map() has {name}"
    if _is_formatted(step) or step.is_batch_accumulate_arrow_table_function:
        return "map() gets tables or tensors"
    return ""


def _drops(steps: tuple[Any, ...], column: str) -> bool:
    """Whether a column is gone before anybody looks at it."""
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
    """A copy of `dataset` whose images the engine decodes; itself, where none are."""
    found = find(dataset)
    if isinstance(found, str):
        return dataset
    *behind, mapped = found.steps
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
    for one in reversed(behind):
        inner, step = step, copy.copy(one)
        step.ex_iterable = inner
    same = object.__new__(type(dataset))
    vars(same).update(vars(dataset))  # its epoch is a tensor, which both have
    same._ex_iterable = step
    return same


class ArrowStream(NativePrefix):
    """Stands for an IterableDataset in a worker. States, epochs and everything else are those of the user's own."""

    def __iter__(self) -> Iterator[Any]:
        native = with_native_images(self._inner)
        samples = iter(native)
        for sample in samples:
            self._inner._state_dict = native._state_dict  # which goes on with it
            yield sample
        self._inner._state_dict = native._state_dict
