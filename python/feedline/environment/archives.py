# SPDX-License-Identifier: Apache-2.0
"""The archive that an installed project came from, with its hash: pip does not record it, so indexes are asked."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..machine.packages import normalised
from .locks.listing import Pin
from .needed import needed
from .reading.listed import sha256_of

PYPI = "https://pypi.org/simple"
_TIMEOUT_S = 30.0
_MOST_BYTES = 64 << 20
_JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True)
class Archive:
    """A wheel or a source archive. `url`: where it is; of a folder, ``file://...``."""

    name: str
    url: str
    sha256: str


class Archives:
    """Looks archives up in folders and indexes; each project once.

    Args:
        indexes: URLs of simple indexes (PEP 503, PEP 691), in their order; empty: none is asked.
        folders: with wheels in them, looked into first.
    """

    def __init__(self, indexes: Iterable[str] = (), folders: Iterable[Path] = ()) -> None:
        self._indexes = tuple(indexes)
        self._folders = tuple(folders)
        self._known: dict[str, list[Archive]] = {}

    def of(self, pin: Pin) -> Archive | None:
        """The archive of exactly this wheel; where it was built here, the source archive; None: nobody has it.

        Raises:
            ConfigError: an index cannot be asked.
        """
        found = [one for one in self._of_project(pin.name) if _version(one.name) == _canonical(pin.version)]
        for one in found:
            if one.name.endswith(".whl") and (not pin.tags or _tags(one.name) == set(pin.tags)):
                return one
        return next((one for one in found if not one.name.endswith(".whl")), None)

    def _of_project(self, name: str) -> list[Archive]:
        if name not in self._known:
            self._known[name] = [*self._in_folders(name), *self._in_indexes(name)]
        return self._known[name]

    def _in_folders(self, name: str) -> Iterator[Archive]:
        for folder in self._folders:
            for path in sorted(folder.iterdir()):
                if path.suffix in (".whl", ".gz") and normalised(path.name.partition("-")[0]) == name:
                    yield Archive(path.name, path.absolute().as_uri(), sha256_of(path))

    def _in_indexes(self, name: str) -> Iterator[Archive]:
        for index in self._indexes:
            url = f"{index.rstrip('/')}/{name}/"
            try:
                request = urllib.request.Request(url, headers={"Accept": f"{_JSON}, text/html;q=0.5"})
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                    body, kind = answer.read(_MOST_BYTES), answer.headers.get("Content-Type", "")
            except urllib.error.HTTPError as error:
                if error.code in (403, 404):
                    continue
                raise ConfigError(f"{url} cannot be asked for archives: {error}") from None
            except (OSError, ValueError) as error:
                raise ConfigError(f"{url} cannot be asked for archives: {error}") from None
            yield from _of_json(json.loads(body)) if "json" in kind else _of_html(body.decode(errors="replace"), url)


def _of_json(value: Any) -> Iterator[Archive]:
    for one in value.get("files", ()):
        digest = one.get("hashes", {}).get("sha256")
        if digest:
            yield Archive(str(one["filename"]), str(one["url"]), str(digest))


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
    """Of an archive's file name; "": it has none."""
    parts = name.removesuffix(".whl").removesuffix(".tar.gz").split("-")
    return _canonical(parts[1] if name.endswith(".whl") and len(parts) > 1 else parts[-1])


def _canonical(version: str) -> str:
    versions = needed("packaging.version")
    try:
        return str(versions.Version(version))
    except ValueError:
        return version


def _tags(name: str) -> set[str]:
    python, abi, platform = name.removesuffix(".whl").split("-")[-3:]
    return {f"{a}-{b}-{c}" for a in python.split(".") for b in abi.split(".") for c in platform.split(".")}
