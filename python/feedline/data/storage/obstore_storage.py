# SPDX-License-Identifier: Apache-2.0
"""Reads Azure's schemes through obstore, if installed: ``az://container/key``, ``abfss://container@account.../key``.

obstore reads in Rust without the GIL, so it is preferred to fsspec's packages, whose reads run in a Python event loop.
obstore reads accounts, keys and endpoints from its own environment variables (``AZURE_STORAGE_ACCOUNT_NAME``, ...).
After fork(), obstore's threads do not exist in the child, where calls would block forever; using obstore there raises
an error.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from .stored_objects import Found, tag_of

SCHEMES = ("az", "azure", "abfs", "abfss")
_QUERY = re.compile(r"\?[^\s\"')]*")  # a URL in an error message: it may be signed
_Value = TypeVar("_Value")
_used_in: set[int] = set()  # ids of processes in which obstore has threads


class ObjectStore:
    """Reads objects of one URL scheme. Thread-safe."""

    def __init__(self, scheme: str, obstore: Any, kind: Any) -> None:
        self._scheme, self._obstore, self._kind = scheme, obstore, kind
        self._lock = threading.Lock()
        self._stores: dict[str, Any] = {}  # keyed by the URL's host

    def explain(self) -> str:
        return f"{self._scheme}:// is read in Python by obstore {self._obstore.__version__}"

    def stat(self, url: str) -> Found:
        def ask(store: Any, key: str) -> Found:
            if not key:
                return "", 0, 0, True
            try:
                return _found("", self._obstore.head(store, key))
            except FileNotFoundError:
                below = self._obstore.list_with_delimiter(store, key)
                if below["objects"] or below["common_prefixes"]:
                    return "", 0, 0, True
                raise

        return self._carried_out(url, ask)

    def read(self, url: str, offset: int, length: int) -> bytes:
        return self._carried_out(
            url, lambda store, key: bytes(self._obstore.get_range(store, key, start=offset, length=length))
        )

    def list(self, url: str, all: bool) -> list[Found]:
        """Lists a folder as relative paths. With `all`, the listing is recursive and contains no folders."""

        def ask(store: Any, key: str) -> list[Found]:
            front = f"{key}/" if key else ""
            if all:
                objects = [one for page in self._obstore.list(store, front or None) for one in page]
                return [_found(one["path"][len(front) :], one) for one in objects]
            below = self._obstore.list_with_delimiter(store, front or None)
            folders = [(path.rstrip("/")[len(front) :], 0, 0, True) for path in below["common_prefixes"]]
            return folders + [_found(one["path"][len(front) :], one) for one in below["objects"]]

        return self._carried_out(url, ask)

    def _carried_out(self, url: str, call: Callable[[Any, str], _Value]) -> _Value:
        if _used_in and os.getpid() not in _used_in:
            raise OSError(
                "obstore was used before fork(), and its threads exist only in the parent: open the dataset only "
                "in the child, or start the child with spawn"
            )
        _used_in.add(os.getpid())
        host, _, key = url.partition("://")[2].partition("/")  # unescaped, as names may have any characters
        try:
            return call(self._store_of(host), key.strip("/"))
        except Exception as error:
            raise _in_words(error) from None
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # a Rust panic, which is not an Exception
                raise _in_words(error) from None
            raise

    def _store_of(self, host: str) -> Any:
        with self._lock:
            store = self._stores.get(host)
            if store is None:
                container, _, account = host.partition("@")
                named = {"account_name": account.partition(".")[0]} if account else {}
                store = self._stores[host] = self._kind(container, **named)
        return store


def find(scheme: str) -> ObjectStore | None:
    """Returns the reader of a scheme; None if obstore does not support it or is not installed."""
    if scheme not in SCHEMES:
        return None
    try:
        import obstore
        from obstore.store import AzureStore
    except ImportError:
        return None
    return ObjectStore(scheme, obstore, AzureStore)


def _found(path: str, info: Any) -> Found:
    return path, int(info["size"]), tag_of({name: info[name] for name in ("e_tag", "last_modified")}), False


def _in_words(error: BaseException) -> Exception:
    """Returns the error text without debug output and query strings of URLs, which may contain signatures."""
    words = _QUERY.sub("?...", str(error).partition("\n\nDebug source")[0])
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(words)
    is_refused = type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
    return PermissionError(words) if is_refused else OSError(words)
