# SPDX-License-Identifier: Apache-2.0
"""requirements.txt with hashes, and pylock.toml (PEP 751)."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ..locks.listing import Listing, Pin


def requirements(listing: Listing, name: str) -> str:
    lines = [
        f"# {name}: Python {listing.python}, {listing.platform}, fingerprint {listing.fingerprint}",
        f"# feedline env create NAME --from this file, or: pip install {_hashed(listing)}--no-deps -r this file",
    ]
    return "\n".join([*lines, *map(requirement, listing.of("pip"))]) + "\n"


def requirement(pin: Pin) -> str:
    """One line: exact, with its hash where that is known."""
    if pin.content == "editable":
        return f"-e {pin.url.removeprefix('file://')}"
    if pin.url and not pin.hashes:
        return f"{pin.name} @ {pin.url}"
    return f"{pin.name}=={pin.version}" + "".join(f" \\\n    --hash={one}" for one in pin.hashes)


def pylock(listing: Listing, name: str) -> str:
    lines = [
        f"# {name}: {listing.platform}, fingerprint {listing.fingerprint}",
        'lock-version = "1.0"',
        'created-by = "feedline"',
        f"requires-python = {quoted(f'=={listing.python}')}",
    ]
    for pin in listing.of("pip"):
        lines += ["", "[[packages]]", f"name = {quoted(pin.name)}", f"version = {quoted(pin.version)}", *_from(pin)]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """As a basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text)


def _from(pin: Pin) -> list[str]:
    url, _, commit = pin.url.rpartition("@")
    if pin.url.startswith("git+") and url:
        return [f'vcs = {{type = "git", url = {quoted(url[4:])}, commit-id = {quoted(commit)}}}']
    if pin.content == "editable" or (pin.url.startswith("file:") and not pin.sha256):
        path = pin.url.removeprefix("file://")
        return [f"directory = {{path = {quoted(path)}, editable = {str(pin.content == 'editable').lower()}}}"]
    if not pin.sha256:
        return []
    file = unquote(PurePosixPath(urlsplit(pin.url).path).name)
    table = f"name = {quoted(file)}, url = {quoted(pin.url)}, hashes = {{sha256 = {quoted(pin.sha256)}}}"
    return [f"wheels = [{{{table}}}]" if file.endswith(".whl") else f"sdist = {{{table}}}"]


def _hashed(listing: Listing) -> str:
    pins = listing.of("pip")
    return "--require-hashes " if pins and all(pin.hashes for pin in pins) else ""
