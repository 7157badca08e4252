# SPDX-License-Identifier: Apache-2.0
"""What may happen to the files of a sample on their way into a shard."""

from __future__ import annotations

from typing import Any, Protocol

from .. import _engine
from ..data import arguments

_MOST_MCUS = 65_535  # 16 bits in the file
_IMAGES = ("jpg", "jpeg", "png", "webp")


class Transcoder(Protocol):
    """Makes one file of a sample into another one. Called from several threads at once; keeps nothing between calls."""

    @property
    def description(self) -> dict[str, Any]:
        """JSON for the manifest: packing goes on only with the same. Equal ones must give equal bytes."""

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        """The extension and the bytes that are stored instead; the same objects where the file stays as it is.

        Raises DataError where the file is damaged.
        """


def is_image(extension: str) -> bool:
    """Does the last part of a member's extension name an image that Feedline decodes (``"seg.png"`` does)?"""
    return extension.rpartition(".")[2].lower() in _IMAGES


class RestartMarkers:
    """JPEGs with restart markers, without loss, so that regions of them decode faster; other files stay as they are.

    Args:
        interval: MCUs (blocks of 8 to 16 pixels square) between markers, 1 to 65,535; ``None``: what suits the size of
            each image, which for small ones is none at all.
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
    """Every image is decoded, and stays as it is: a damaged one is found now instead of in a training run."""

    @property
    def description(self) -> dict[str, Any]:
        return {"check": True}

    def __call__(self, extension: str, content: bytes) -> tuple[str, bytes]:
        if is_image(extension):
            _engine.decode_image(content, None, "RGB")
        return extension, content
