# SPDX-License-Identifier: Apache-2.0
"""The encoded images of a sample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _engine
from ...errors import Error
from ..map.mapping import BadField, UnusableFunction
from ..recorded_calls import call_of
from .processors import EncoderInput, Processor


class SampleImages:
    """Reads the images of samples from fields.

    A field has one image (bytes), a list of images, or None. An image is bytes, the path of a local file, or an object
    with ``bytes`` or else ``path``, as the library ``datasets`` stores it. Relative paths refer to ``folder``, and are
    refused if it is None.
    """

    def __init__(self, fields: Sequence[str], folder: str | None) -> None:
        self.fields, self.folder = tuple(fields), folder

    def __call__(self, sample: Mapping[str, Any], most: int | None = None) -> list[Any]:
        """Returns the encoded images, the first ``most`` of them. Raises BadField."""
        found: list[Any] = []
        for field in self.fields:
            if field not in sample:
                raise UnusableFunction(f"field '{field}' does not exist; the fields are {', '.join(sample)}")
            values = sample[field]
            values = values if isinstance(values, list | tuple) else [] if values is None else [values]
            for value in values[: None if most is None else max(most - len(found), 0)]:
                found.append(self._encoded(field, len(found), value))
        return found

    def _encoded(self, field: str, number: int, value: Any) -> Any:
        if isinstance(value, Mapping) and ("bytes" in value or "path" in value):
            value = value.get("path") if value.get("bytes") is None else value["bytes"]
        if isinstance(value, bytes | bytearray | memoryview):
            return value
        if not isinstance(value, str) or not value:
            hint = "; open the field as bytes, with ':bytes' after its name" if hasattr(value, "dtype") else ""
            raise BadField(
                field, f"image {number} must be bytes, a path, or an object with one, not {type(value).__name__}{hint}"
            )
        if "://" in value:
            raise BadField(field, f"image {number} is at {value!r:.200}; only local files are read")
        if self.folder is None and not os.path.isabs(value):
            raise BadField(
                field,
                f"image {number} has the relative path {value!r:.200}, but the dataset is not in one local folder; use "
                "absolute paths",
            )
        try:
            with open(os.path.join(self.folder or "", value), "rb") as file:
                return file.read()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadField(field, f"image {number} cannot be read: {value!r:.200}: {why}") from None


def inputs_of(processor: Processor, field: str, images: Sequence[Any]) -> list[EncoderInput]:
    """Returns the encoder's inputs for encoded images, from their headers. Raises BadField."""
    made = []
    for number, encoded in enumerate(images):
        try:
            made.append(processor.input_of(_engine.upright_size(encoded)))
        except (Error, ValueError) as error:
            raise BadField(field, f"image {number}: {error}") from None
    return made


def _sources(dataset: Any) -> list[str]:
    mixed = call_of(dataset, "data.mixtures:mix")
    if mixed is None:
        return [dataset.source]
    return [source for part in mixed.arguments[0] for source in _sources(part)]


def folder_of(source: str) -> str | None:
    """Returns the folder to which paths in a source are relative; None if it is remote, or if there are several."""
    folders = set()
    for one in source.split("::"):
        path = one.removeprefix("file://")
        folders.add(path if os.path.isdir(path) else os.path.dirname(path))
    (folder, *others) = folders
    return None if others or "://" in folder or any(letter in folder for letter in "*?[{") else folder


def folder_of_dataset(dataset: Any) -> str | None:
    """Like :func:`folder_of`, for a dataset or a mixture."""
    return folder_of("::".join(_sources(dataset)))
