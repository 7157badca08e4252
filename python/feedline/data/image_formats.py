# SPDX-License-Identifier: Apache-2.0
"""The image formats that Feedline recognises, from the engine's table, and lists of their file extensions."""

from __future__ import annotations

from typing import NamedTuple

from .. import _engine


class ImageFormat(NamedTuple):
    """A row of the engine's table of image formats. Extensions are in lower case, without a dot.

    Attributes:
        name: the name in :class:`~feedline.ImageInfo`, such as ``"jpeg"``.
        title: the name for messages, such as ``"JPEG 2000"``.
        extensions: file extensions, the most common one first.
        image_folder_extensions: the extensions that torchvision's ImageFolder reads.
        is_native: whether the engine decodes the format; otherwise Pillow does.
        pillow_requires: the version or plugin of Pillow that decodes the format; empty if every version does.
        is_rotated_by_pillow: whether Pillow always applies the EXIF orientation.
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
NAMES = tuple(one.name for one in FORMATS)
_BY_NAME = {one.name: one for one in FORMATS}


def of(data: bytes) -> ImageFormat | None:
    """Returns the format of an image, from its first bytes; None if it is unknown."""
    return _BY_NAME.get(_engine.image_format_of(data))


def native_titles() -> str:
    """Returns the names of the formats that the engine decodes, for messages: ``"JPEG, PNG or WebP"``."""
    *titles, last = [one.title for one in FORMATS if one.is_native]
    return f"{', '.join(titles)} or {last}"
