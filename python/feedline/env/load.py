# SPDX-License-Identifier: Apache-2.0
"""Loads the listing of an environment's folder, a snapshot or a lock that the user names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .locks.listing import Listing
from .locks.reading import read_lock
from .reading.place import platform_name
from .scan import read_environment
from .snapshot import VERSION, listing_of, seen_listing


def listing_at(path: str | os.PathLike[str], python: str | None = None) -> Listing:
    """Returns the listing of an environment's folder, a snapshot or a lock.

    Args:
        path: the folder or the file.
        python: the version used to evaluate a lock's markers.

    Raises:
        ConfigError: `path` is none of these, is damaged, or has an unsupported version.
        OSError: `path` cannot be read.
    """
    place = Path(path)
    if place.is_dir():
        return seen_listing(read_environment(place))
    if place.suffix == ".json" and not _is_for_conda(place):
        return _snapshot(place)
    return read_lock(place, platform_name(), python)


def listing_of_own() -> Listing:
    """Returns the listing of the environment that runs this process."""
    return seen_listing(read_environment())


def read_snapshot(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a snapshot's JSON.

    Raises:
        ConfigError, OSError: the same errors as :func:`listing_at`.
    """
    try:
        value = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{os.fspath(path)} is not a snapshot: it is not JSON ({error})") from None
    if not isinstance(value, dict) or "environment_snapshot" not in value:
        raise ConfigError(f"{os.fspath(path)} is not a snapshot: `feedline env snapshot > FILE` writes one")
    version = value["environment_snapshot"]
    if version != VERSION:
        raise ConfigError(f"{os.fspath(path)} is a snapshot of version {version}; only version {VERSION} is supported")
    return value


def _is_for_conda(place: Path) -> bool:
    """Whether a JSON file is an environment.yml, as `conda export --format environment-json` writes it."""
    try:
        return "dependencies" in json.loads(place.read_bytes())
    except (ValueError, RecursionError, TypeError):
        return False


def _snapshot(place: Path) -> Listing:
    value = read_snapshot(place)
    try:
        return listing_of(value, str(place))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{place} is a damaged snapshot: {type(error).__name__}: {error}") from None
