# SPDX-License-Identifier: Apache-2.0
"""Writes requirements.txt with hashes, and pylock.toml (PEP 751)."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ..locks.listing import Listing, Pin


def requirements(listing: Listing, name: str) -> str:
    hashed = "--require-hashes " if all_hashed(listing) else ""
    several = len(listing.index_options) > 2 or "--extra-index-url" in listing.index_options
    for_uv = "; with uv, add --index-strategy unsafe-best-match" if several else ""
    lines = [
        f"# {name}: Python {listing.python}, {listing.platform}, fingerprint {listing.fingerprint}",
        f"# feedline env create NAME --from this file, or: pip install {hashed}--no-deps -r this file{for_uv}",
        *index_lines(listing),
    ]
    return "\n".join([*lines, *map(requirement, listing.of("pip"))]) + "\n"


def index_lines(listing: Listing) -> list[str]:
    """Returns pip's index options, one per line."""
    options = iter(listing.index_options)
    return [f"{option} {url}" for option, url in zip(options, options, strict=True)]


def requirement(pin: Pin) -> str:
    """Returns a requirement line: the exact version or URL, with hashes."""
    if pin.content == "editable":
        return f"-e {pin.url.removeprefix('file://')}"
    if pin.is_from_url:
        return f"{pin.name} @ {pin.url}" + _hashes(pin)
    return f"{pin.name}=={pin.version}" + _hashes(pin)


def all_hashed(listing: Listing) -> bool:
    """Whether every project has a hash; pip accepts hashes only for all projects or for none."""
    pins = listing.of("pip")
    return bool(pins) and all(pin.hashes for pin in pins)


def _hashes(pin: Pin) -> str:
    return "".join(f" \\\n    --hash={one}" for one in pin.hashes)


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
    """Returns a TOML basic string, which has the same escapes as JSON."""
    return json.dumps(text)


def _from(pin: Pin) -> list[str]:
    url, _, commit = pin.url.rpartition("@")
    if pin.url.startswith("git+") and url:
        return [f'vcs = {{type = "git", url = {quoted(url[4:])}, commit-id = {quoted(commit)}}}']
    if pin.content == "editable" or (pin.url.startswith("file:") and not pin.sha256):
        path = pin.url.removeprefix("file://")
        return [f"directory = {{path = {quoted(path)}, editable = {str(pin.content == 'editable').lower()}}}"]
    file = unquote(PurePosixPath(urlsplit(pin.url).path).name)
    table = f"name = {quoted(file)}, url = {quoted(pin.url)}, hashes = {{sha256 = {quoted(pin.sha256)}}}"
    return [f"wheels = [{{{table}}}]" if file.endswith(".whl") else f"sdist = {{{table}}}"]
