# SPDX-License-Identifier: Apache-2.0
"""Registers Python's readers with the engine: storages by fsspec, images by Pillow.

The package imports this module, so the readers are registered whichever part of it is used first. foreign_images is
imported here and not by the first engine thread that needs it: a module that is being imported during fork() stays
half imported in the child. fsspec and Pillow themselves are imported on first use.
"""

from __future__ import annotations

from typing import Any

from .. import _engine
from . import foreign_images


def _find_store(scheme: str) -> Any:
    from . import other_stores

    return other_stores.find(scheme)


def _open_image(data: bytes, applies_exif: bool) -> Any:
    return foreign_images.opened(data, applies_exif)


def _decode_image(*arguments: Any) -> bytes | str:
    return foreign_images.decoded(*arguments)


_engine.find_stores_by(_find_store)
_engine.read_foreign_images_by(_open_image, _decode_image)
