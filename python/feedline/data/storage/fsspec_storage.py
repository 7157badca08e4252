# SPDX-License-Identifier: Apache-2.0
"""Reads schemes without a native reader through fsspec, if installed: ``sftp://``, ``hf://``, ``az://``, ...

Azure's schemes use obstore if it is installed (obstore_stores.py).

The engine's threads call these functions concurrently and wait for them. fsspec's own configuration (environment
variables and files, as in ``fsspec.config``) supplies accounts, keys and hosts.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from . import obstore_storage
from .stored_objects import Found, tag_of

# Packages that fsspec needs for a scheme.
_PACKAGES = {
    "abfs": "adlfs",
    "abfss": "adlfs",
    "adl": "adlfs",
    "az": "adlfs",
    "hf": "huggingface_hub",
    "oci": "ocifs",
    "oss": "ossfs",
    "sftp": "paramiko",
    "smb": "smbprotocol",
    "ssh": "paramiko",
}


def find(scheme: str) -> Store | obstore_storage.ObjectStore | str | None:
    """Returns the reader of a scheme; None if there is none, or text that names the missing package."""
    by_obstore = obstore_storage.find(scheme)
    if by_obstore is not None:
        return by_obstore
    package = _PACKAGES.get(scheme)
    try:
        import fsspec
    except ImportError:
        return f"to read this URL, install fsspec and {package}: `pip install fsspec {package}`" if package else None
    try:
        return Store(scheme, fsspec.get_filesystem_class(scheme))
    except ValueError:  # unknown to fsspec
        return None
    except ImportError as error:
        if package is None:
            return f"install the package that fsspec needs: {error}"
        other = "; or obstore" if scheme in obstore_storage.SCHEMES else ""
        return f"install {package}, which fsspec needs to read it: `pip install {package}`{other}"


class Store:
    """Reads objects with one URL scheme. Thread-safe; after a fork, the child opens its own connections."""

    def __init__(self, scheme: str, kind: type) -> None:
        self._scheme, self._kind = scheme, kind
        self._lock = threading.Lock()
        self._systems: dict[tuple[int, str], Any] = {}  # keyed by process and the URL's host

    def explain(self) -> str:
        from importlib import metadata  # imports all of `email`, which nothing else needs

        library = self._kind.__module__.partition(".")[0]
        with contextlib.suppress(metadata.PackageNotFoundError):
            library += f" {metadata.version(library)}"
        return f"{self._scheme}:// is read in Python by {library} through fsspec"

    def stat(self, url: str) -> Found:
        try:
            system, path = self._opened(url)
            return _found("", system.info(path))
        except Exception as error:
            raise _without_secrets(error, url) from None

    def read(self, url: str, offset: int, length: int) -> bytes:
        try:
            system, path = self._opened(url)
            read: bytes = system.cat_file(path, start=offset, end=offset + length)
            return read
        except Exception as error:
            raise _without_secrets(error, url) from None

    def list(self, url: str, all: bool) -> list[Found]:
        """Lists a folder as relative paths. With `all`, the listing is recursive and contains no folders."""
        try:
            system, path = self._opened(url)
            found = system.find(path, detail=True).values() if all else system.ls(path, detail=True)
            return _below(path, found)
        except FileNotFoundError:
            return []
        except Exception as error:
            raise _without_secrets(error, url) from None

    def _opened(self, url: str) -> tuple[Any, str]:
        key = os.getpid(), urlsplit(url).netloc
        with self._lock:
            system = self._systems.get(key)
            if system is None:
                system = self._systems[key] = _system_of(url)
        return system, system._strip_protocol(url)


def _system_of(url: str) -> Any:
    import fsspec

    system = fsspec.core.url_to_fs(url, skip_instance_cache=True)[0]
    listings: Any = getattr(system, "dircache", None)
    if listings is not None and hasattr(listings, "use_listings_cache"):
        listings.use_listings_cache = False  # query the object's current state, not a cached one
    return system


def _below(folder: str, found: Iterable[Mapping[str, Any]]) -> list[Found]:
    front = folder.strip("/") + "/" if folder.strip("/") else ""
    below = []
    for info in found:
        name = str(info["name"]).lstrip("/")
        path = name[len(front) :].rstrip("/")
        if name.startswith(front) and path:
            below.append(_found(path, info))
    return below


def _found(path: str, info: Mapping[str, Any]) -> Found:
    if info.get("type") == "directory":
        return path, 0, 0, True
    size = info.get("size")
    if size is None:
        raise OSError(
            f"the size of '{info.get('name')}' is unknown, but range reads require the size; copy the file to "
            "local storage"
        )
    return path, int(size), tag_of(info), False


def _without_secrets(error: Exception, url: str) -> Exception:
    """Returns the error, or, if its text contains the URL's user or password, a copy without them."""
    secret = urlsplit(url).netloc.rpartition("@")[0]
    if not secret or secret not in str(error):
        return error
    words = str(error).replace(secret, "hidden")
    kinds = (FileNotFoundError, PermissionError, IsADirectoryError)
    return next((kind(words) for kind in kinds if isinstance(error, kind)), OSError(words))
