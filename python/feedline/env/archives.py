# SPDX-License-Identifier: Apache-2.0
"""Finds the archive and hash of an installed project. pip does not record this data, so indexes are searched."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..machine.packages import normalised
from .locks.listing import Pin
from .optional_deps import optional_dependency
from .reading.listed import sha256_of
from .torch_indexes import torch_index

_TIMEOUT_S = 30.0
_MOST_BYTES = 64 << 20
_JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class Archive:
    """A wheel or a source archive. `url` begins with ``file://`` if the archive is in a folder; `index` is the URL of
    the archive's index, or "".
    """

    name: str
    url: str
    sha256: str
    index: str = ""


class Archives:
    """Looks up archives in folders and indexes, each project once.

    Args:
        indexes: URLs of simple indexes (PEP 503, PEP 691), in search order; if empty, no index is searched.
        folders: folders of wheels, searched before the indexes.
        of_torch: whether to search PyTorch's own index, too, for versions with a label such as ``+cpu``.

    Attributes:
        unreachable: error messages of PyTorch's indexes that could not be read.
    """

    def __init__(self, indexes: Iterable[str] = (), folders: Iterable[Path] = (), *, of_torch: bool = False) -> None:
        self.indexes = tuple(indexes)
        self.unreachable: dict[str, str] = {}
        self._folders = tuple(folders)
        self._of_torch = of_torch
        self._known: dict[tuple[str, str], list[Archive]] = {}

    def of(self, pin: Pin) -> Archive | None:
        """Returns the archive of the pinned wheel, or the source archive of a wheel that was built locally; None if
        neither is found.

        Raises:
            ConfigError: an index cannot be read.
        """
        found = [one for one in self._of_project(pin) if _version(one.name) == _canonical(pin.version)]
        for one in found:
            if one.name.endswith(".whl") and (not pin.tags or _tags(one.name) == set(pin.tags)):
                return one
        return next((one for one in found if not one.name.endswith(".whl")), None)

    def _of_project(self, pin: Pin) -> list[Archive]:
        torchs = torch_index(pin.version) if self._of_torch else ""
        if (pin.name, torchs) not in self._known:
            found = list(self._in_folders(pin.name))
            for index in self.indexes:
                found += _in_index(index, pin.name)
            if torchs and torchs not in self.unreachable:
                try:
                    found += _in_index(torchs, pin.name)
                except ConfigError as error:  # a default index: only the hash is missing
                    self.unreachable[torchs] = str(error)
            self._known[pin.name, torchs] = found
        return self._known[pin.name, torchs]

    def _in_folders(self, name: str) -> Iterator[Archive]:
        for folder in self._folders:
            for path in sorted(folder.iterdir()):
                if path.suffix in (".whl", ".gz") and normalised(path.name.partition("-")[0]) == name:
                    yield Archive(path.name, path.absolute().as_uri(), sha256_of(path))


def _in_index(index: str, name: str) -> list[Archive]:
    url = f"{index.rstrip('/')}/{name}/"
    try:
        request = urllib.request.Request(without_login(url), headers=_headers(url))
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            body, kind = answer.read(_MOST_BYTES), answer.headers.get("Content-Type", "")
    except urllib.error.HTTPError as error:
        if error.code in (403, 404):
            return []
        raise ConfigError(f"cannot read {without_login(url)}: {error}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {without_login(url)}: {error}") from None
    try:
        found = (
            list(_of_json(json.loads(body), url)) if "json" in kind else _of_html(body.decode(errors="replace"), url)
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{without_login(url)} is not a simple index: {type(error).__name__}: {error}") from None
    return [replace(one, index=index) for one in found]


def _headers(url: str) -> dict[str, str]:
    headers = {"Accept": f"{_JSON}, text/html;q=0.5"}
    login = urllib.parse.urlsplit(url).netloc.rpartition("@")[0]
    if login:
        text = urllib.parse.unquote(login).encode()
        headers["Authorization"] = f"Basic {base64.b64encode(text).decode()}"
    return headers


def without_login(url: str) -> str:
    """Returns the URL without its user name and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _of_json(value: Any, base: str) -> Iterator[Archive]:
    for one in value.get("files", ()):
        digest = one.get("hashes", {}).get("sha256")
        if digest:
            yield Archive(str(one["filename"]), urllib.parse.urljoin(base, str(one["url"])), str(digest))


def _of_html(text: str, base: str) -> list[Archive]:
    found: list[Archive] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            target = urllib.parse.urljoin(base, dict(attributes).get("href") or "")
            url, _, fragment = target.partition("#")
            if tag == "a" and fragment.startswith("sha256="):
                found.append(Archive(urllib.parse.unquote(url.rpartition("/")[2]), url, fragment[7:]))

    Links().feed(text)
    return found


def _version(name: str) -> str:
    """Returns the version in an archive's file name, or "" if there is none."""
    parts = name.removesuffix(".whl").removesuffix(".tar.gz").split("-")
    return _canonical(parts[1] if name.endswith(".whl") and len(parts) > 1 else parts[-1])


def _canonical(version: str) -> str:
    versions = optional_dependency("packaging.version")
    try:
        return str(versions.Version(version))
    except ValueError:
        return version


def _tags(name: str) -> set[str]:
    python, abi, platform = name.removesuffix(".whl").split("-")[-3:]
    return {f"{a}-{b}-{c}" for a in python.split(".") for b in abi.split(".") for c in platform.split(".")}
