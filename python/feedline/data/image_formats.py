# SPDX-License-Identifier: Apache-2.0
"""The image formats that Feedline recognises: the engine's table, and extensions by who decodes or lists them."""

from __future__ import annotations

from typing import NamedTuple

from .. import _engine


class ImageFormat(NamedTuple):
    """A row of the table. Extensions are in lower case, without a dot.

    Attributes:
        name: as in :class:`~feedline.ImageInfo`: ``"jpeg"``.
        title: for readers: ``"JPEG 2000"``.
        extensions: the usual one first.
        image_folder_extensions: those that torchvision's ImageFolder reads.
        is_native: the engine decodes it; otherwise Pillow does.
        pillow_requires: the version or plugin of Pillow that decodes it; empty if every Pillow does.
        is_rotated_by_pillow: Pillow always applies the EXIF orientation.
    """

    name: str
    title: str
    extensions: tuple[str, ...]
    image_folder_extensions: tuple[str, ...]
    is_native: bool
    pillow_requires: str
    is_rotated_by_pillow: bool


FORMATS = tuple(ImageFormat(**row) for row in _engine.image_formats())
EXTENSIONS = tuple(extension for one in FORMATS for extension in one.extensions)
NATIVE_EXTENSIONS = tuple(extension for one in FORMATS if one.is_native for extension in one.extensions)
IMAGE_FOLDER_EXTENSIONS = tuple(extension for one in FORMATS for extension in one.image_folder_extensions)
_BY_NAME = {one.name: one for one in FORMATS}


def of(data: bytes) -> ImageFormat | None:
    """The format of an image, by its first bytes; None if it is unknown."""
    return _BY_NAME.get(_engine.image_format_of(data))


def native_titles() -> str:
    """The formats that the engine decodes, for messages: ``"JPEG, PNG or WebP"``."""
    *titles, last = [one.title for one in FORMATS if one.is_native]
    return f"{', '.join(titles)} or {last}"
