# SPDX-License-Identifier: Apache-2.0
"""Writes pixi.toml with exact versions and builds."""

from __future__ import annotations

from ..locks.listing import Listing, Pin
from ..torch_indexes import torch_index
from .pip_forms import quoted


def manifest(listing: Listing, name: str) -> str:
    conda = listing.of("conda")
    channels = ", ".join(quoted(one) for one in listing.channels or ("conda-forge",))
    lines = [
        f"# fingerprint {listing.fingerprint}",
        "[workspace]",
        f"name = {quoted(name)}",
        f"channels = [{channels}]",
        f"platforms = [{quoted(listing.platform)}]",
        "",
        "[dependencies]",
        *(
            f"{quoted(pin.name)} = {{version = {quoted(f'=={pin.version}')}, build = {quoted(pin.build)}}}"
            for pin in conda
        ),
    ]
    if not conda:
        lines.append(f"python = {quoted(f'=={listing.python}')}")
    if listing.of("pip"):
        lines += ["", "[pypi-dependencies]", *(f"{quoted(pin.name)} = {_wanted(pin)}" for pin in listing.of("pip"))]
    cuda = (listing.facts.get("torch") or {}).get("cuda")
    if cuda:  # without this, pixi installs the CPU build
        lines += ["", "[system-requirements]", f"cuda = {quoted(cuda)}"]
    return "\n".join(lines) + "\n"


def _wanted(pin: Pin) -> str:
    if pin.content == "editable":
        return f"{{path = {quoted(pin.url.removeprefix('file://'))}, editable = true}}"
    if pin.url.startswith("git+"):
        url, _, commit = pin.url[4:].rpartition("@")
        return f"{{git = {quoted(url)}, rev = {quoted(commit)}}}"
    version = quoted(f"=={pin.version}")
    index = torch_index(pin.version)
    if pin.is_from_url:
        return f"{{{'path' if pin.url.startswith('file:') else 'url'} = {quoted(pin.url.removeprefix('file://'))}}}"
    return f"{{version = {version}, index = {quoted(index)}}}" if index else version
