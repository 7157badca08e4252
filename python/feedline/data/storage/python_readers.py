# SPDX-License-Identifier: Apache-2.0
"""Registers Python libraries with the engine as readers of other storage, credentials and image formats.

The parent package imports this module, so the engine always knows these readers. The libraries are imported on first
use.
"""

from __future__ import annotations

from typing import Any

from ... import _engine


def _find_store(scheme: str) -> Any:
    from . import fsspec_storage

    return fsspec_storage.find(scheme)


def _find_credentials(scheme: str) -> Any:
    from . import credentials

    return credentials.find(scheme)


def _open_image(data: bytes, applies_exif: bool) -> Any:
    from . import foreign_images

    return foreign_images.opened(data, applies_exif)


def _decode_image(*arguments: Any) -> bytes | str:
    from . import foreign_images

    return foreign_images.decoded(*arguments)


_engine.find_stores_by(_find_store)
_engine.find_credentials_by(_find_credentials)
_engine.read_foreign_images_by(_open_image, _decode_image)
