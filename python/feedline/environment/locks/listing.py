# SPDX-License-Identifier: Apache-2.0
"""What an environment should hold, or holds: one form for snapshots and all kinds of locks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PYPI = "https://pypi.org/simple"


@dataclass(frozen=True)
class Pin:
    """One package that is wanted.

    Attributes:
        name: as its manager calls it; a project's is normalised.
        manager: "conda" or "pip".
        version: exact; "": `spec` says which may be.
        spec: as ``>=1.2,<2`` (pip) or ``1.2.*`` (conda); "": any.
        build: conda's build string; "": any.
        channel: a short name or a URL; "": any.
        url: of the archive, or where a project is from if not from an index; "": not told.
        hashes: any of these is right, as ``sha256:...``; empty: not told.
        tags: of the wheel that was installed; empty: not told, or it was built here.
        content: of the installed files, as of :attr:`feedline.environment.reading.wheels.Installed.content`, or of
            conda's packages alike; "": not told.
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
        """Whether it was installed from a commit, a folder or an archive on the web, which no index has. Local archives
        do not count, since --find-links or an index may provide them."""
        is_archive = self.url.endswith((".whl", ".tar.gz", ".zip"))
        return self.url.startswith(("git+", "http")) or (self.url.startswith("file:") and not is_archive)

    @property
    def can_be_hashed(self) -> bool:
        """Whether pip accepts a hash: not for a commit, a folder or an editable project."""
        return self.content != "editable" and (not self.is_from_url or self.url.startswith("http"))

    @property
    def sha256(self) -> str:
        return next((one[7:] for one in self.hashes if one.startswith("sha256:")), "")


@dataclass(frozen=True)
class Listing:
    """What a file lists.

    Attributes:
        source: the file, for people.
        kind: "snapshot", "environment.yml", "conda list", "explicit", "conda-lock", "pixi.lock", "pixi.toml",
            "uv.lock", "pylock", "requirements".
        pins: the packages.
        python: version that it is for, exact or a spec; "": not told.
        channels: in their order.
        complete: what it does not list should not be there; False: what is listed draws in more.
        platform: as ``linux-64``; "": any.
        facts: of a snapshot, beyond the packages.
        fingerprint: of a snapshot; "": it is none.
        index_options: pip's options that name the indexes of these projects; empty: as pip is configured.
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
