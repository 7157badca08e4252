# SPDX-License-Identifier: Apache-2.0
"""The common form of snapshots and all kinds of locks: expected or installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PYPI = "https://pypi.org/simple"


@dataclass(frozen=True)
class Pin:
    """A package in a listing.

    Attributes:
        name: the package's name in its manager; normalized for pip projects.
        manager: "conda" or "pip".
        version: the exact version; "" if only `spec` restricts it.
        spec: a range such as ``>=1.2,<2`` (pip) or ``1.2.*`` (conda); "" for any version.
        build: conda's build string; "" for any.
        channel: a short name or a URL; "" for any.
        url: URL of the archive, or of the source of a project that is not from an index; "" if unknown.
        hashes: accepted hashes, as ``sha256:...``; empty if unknown.
        tags: tags of the installed wheel; empty if unknown or built locally.
        content: hash of the installed files, see :attr:`feedline.env.reading.wheels.Installed.content` (the same for
            conda packages); "" if unknown.
    """

    name: str
    manager: str
    version: str = ""
    spec: str = ""
    build: str = ""
    channel: str = ""
    url: str = ""
    hashes: tuple[str, ...] = ()
    content: str = ""
    tags: tuple[str, ...] = ()

    @property
    def is_from_url(self) -> bool:
        """Whether the package was installed from a commit, a folder or an archive on the web, which no index contains.
        Local archives do not count, because --find-links or an index may provide them.
        """
        is_archive = self.url.endswith((".whl", ".tar.gz", ".zip"))
        return self.url.startswith(("git+", "http")) or (self.url.startswith("file:") and not is_archive)

    @property
    def can_be_hashed(self) -> bool:
        """Whether pip accepts a hash: it does not for a commit, a folder or an editable project."""
        return self.content != "editable" and (not self.is_from_url or self.url.startswith("http"))

    @property
    def sha256(self) -> str:
        return next((one[7:] for one in self.hashes if one.startswith("sha256:")), "")


@dataclass(frozen=True)
class Listing:
    """The content of a snapshot or lock.

    Attributes:
        source: name of the file, for messages.
        kind: "snapshot", "environment.yml", "conda list", "explicit", "conda-lock", "pixi.lock", "pixi.toml",
            "uv.lock", "pylock", "requirements".
        pins: the packages.
        python: the Python version, exact or a range; "" if unknown.
        channels: conda channels, in priority order.
        complete: whether unlisted packages should be absent; False if listed packages pull in dependencies.
        platform: platform such as ``linux-64``; "" for any.
        facts: a snapshot's data other than packages.
        fingerprint: fingerprint of a snapshot; "" for other kinds.
        index_options: pip's options for the indexes of these projects; if empty, pip's configuration applies.
    """

    source: str
    kind: str
    pins: tuple[Pin, ...]
    python: str = ""
    channels: tuple[str, ...] = ()
    complete: bool = True
    platform: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    index_options: tuple[str, ...] = ()

    def of(self, manager: str) -> tuple[Pin, ...]:
        return tuple(one for one in self.pins if one.manager == manager)
