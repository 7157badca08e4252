# SPDX-License-Identifier: Apache-2.0
"""Schemes that the engine has no reader for, by fsspec where it is installed: ``sftp://``, ``hf://``, ``az://``, ...

Azure's are obstore's where that is installed (obstore_stores.py).

The engine's threads call these functions, many at once, and wait for them. What fsspec needs to know besides the URL
(accounts, keys, hosts) comes from its own configuration: environment variables and files, as of ``fsspec.config``.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from . import obstore_stores
from .stored_objects import Found, tag_of

# What fsspec reads a scheme by, where that is a package of its own.
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


def find(scheme: str) -> Store | obstore_stores.ObjectStore | str | None:
    """Who reads a scheme; None: nobody; words: what would have to be installed."""
    by_obstore = obstore_stores.find(scheme)
    if by_obstore is not None:
        return by_obstore
    package = _PACKAGES.get(scheme)
    try:
        import fsspec
    except ImportError:
        return f"install fsspec and {package}, which read it: `pip install fsspec {package}`" if package else None
    try:
        return Store(scheme, fsspec.get_filesystem_class(scheme))
    except ValueError:  # fsspec does not know it
        return None
    except ImportError as error:
        if package is None:
            return f"install what fsspec would read it by: {error}"
        other = "; or obstore" if scheme in obstore_stores.SCHEMES else ""
        return f"install {package}, by which fsspec reads it: `pip install {package}`{other}"


class Store:
    """The objects of one scheme. Thread-safe; a child after a fork opens connections of its own."""

    def __init__(self, scheme: str, kind: type) -> None:
        self._scheme, self._kind = scheme, kind
        self._lock = threading.Lock()
        self._systems: dict[tuple[int, str], Any] = {}  # by the process and the URL's host

    def explain(self) -> str:
        from importlib import metadata  # with all of `email`, which nobody else needs

        library = self._kind.__module__.partition(".")[0]
        with contextlib.suppress(metadata.PackageNotFoundError):
            library += f" {metadata.version(library)}"
        return f"{self._scheme}:// is read through Python, by {library} over fsspec's interface"

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
        """What a folder holds, by paths below it; with what lies deeper, if `all`, and then without folders."""
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
        listings.use_listings_cache = False  # what an object is by now is asked, not remembered
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
        raise OSError(f"the size of '{info.get('name')}' is not known, and so no part of it can be asked for")
    return path, int(size), tag_of(info), False


def _without_secrets(error: Exception, url: str) -> Exception:
    """The same, if its words tell neither the URL's user nor its password."""
    secret = urlsplit(url).netloc.rpartition("@")[0]
    if not secret or secret not in str(error):
        return error
    words = str(error).replace(secret, "hidden")
    kinds = (FileNotFoundError, PermissionError, IsADirectoryError)
    return next((kind(words) for kind in kinds if isinstance(error, kind)), OSError(words))
