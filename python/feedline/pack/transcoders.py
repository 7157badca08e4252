# SPDX-License-Identifier: Apache-2.0
"""Conversions of a sample's files while packing."""

from __future__ import annotations

from typing import Any, Protocol

from .. import _engine
from ..data import arguments
from ..data.image_formats import NATIVE_EXTENSIONS

_MOST_MCUS = 65_535  # limit of its 16-bit field in the file


class Transcoder(Protocol):
    """A conversion of one file of a sample. The transcoder is called from several threads concurrently, so it must be
    stateless."""

    @property
    def description(self) -> dict[str, Any]:
        """Returns JSON for the manifest; packing only resumes with transcoders whose JSON is equal. Equal transcoders
        must produce equal bytes.
        """

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        """Returns the new extension and bytes, or the same objects if the file is unchanged.

        Raises DataError if the file is damaged.
        """


def is_image(extension: str) -> bool:
    """Whether the engine decodes images with this extension; only its last part counts (``png`` in ``"seg.png"``)."""
    return extension.rpartition(".")[2].lower() in NATIVE_EXTENSIONS


class RestartMarkers:
    """Adds restart markers to JPEGs losslessly, so that regions decode faster; leaves other files unchanged.

    Args:
        interval: MCUs (blocks of 8 to 16 pixels square) between markers, 1 to 65,535; ``None`` selects an interval from
            the size of each image, and adds no markers to small images.
    """

    def __init__(self, interval: int | None = None) -> None:
        where, name = "pack", "restart_interval"
        self._interval = 0 if interval is None else arguments.integer(where, name, interval, 1, _MOST_MCUS)

    @property
    def description(self) -> dict[str, Any]:
        return {"restart_interval": self._interval or "auto"}

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        if not is_image(extension):
            return extension, content
        written = _engine.jpeg_with_restarts(content, self._interval)
        return extension, content if written is None else written


class Check:
    """Decodes every image without changing it, to find damaged images before training."""

    @property
    def description(self) -> dict[str, Any]:
        return {"check": True}

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        if is_image(extension):
            _engine.decode_image(content, None, "RGB")
        return extension, content
