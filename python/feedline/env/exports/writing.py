# SPDX-License-Identifier: Apache-2.0
"""Exports an environment to one of the supported formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...errors import ConfigError
from ..archives import Archive, Archives, without_login
from ..locks.listing import PYPI, Listing, Pin
from ..rules import names
from ..torch_indexes import torch_index
from . import conda_forms, dockerfile, pip_forms, pixi_form


@dataclass(frozen=True)
class Export:
    """The text of a file, and notes about data that the format cannot represent."""

    text: str
    notes: tuple[str, ...] = ()


Writer = Callable[[Listing, str], str]
# usual file name, writer and archive information by format name
FORMS: dict[str, tuple[str, Writer, str]] = {
    "environment.yml": ("environment.yml", conda_forms.environment, "nothing"),
    "explicit": ("explicit.txt", conda_forms.explicit, "nothing"),
    "requirements": ("requirements.txt", pip_forms.requirements, "hash"),
    "pylock": ("pylock.toml", pip_forms.pylock, "url and hash"),
    "pixi": ("pixi.toml", pixi_form.manifest, "nothing"),
    "dockerfile": ("Dockerfile", dockerfile.dockerfile, "hash"),
}


def export(listing: Listing, name: str, form: str, archives: Archives) -> Export:
    """Exports `listing` to a format in :data:`FORMS`.

    Args:
        listing: the listing of a snapshot.
        name: the environment's name.
        archives: used to find archives for formats that contain hashes.

    Raises:
        ConfigError: the format cannot represent this environment, or an index cannot be read.
    """
    if not listing.pins:
        raise ConfigError("the environment has no packages to export")
    _, writer, has = FORMS[form]
    notes = [_of_place(pin) for pin in listing.pins if pin.content == "editable" or pin.url.startswith("file:")]
    known: dict[str, Archive] = {}
    if has != "nothing":
        known, missing = _looked_up(listing.of("pip"), archives)
        notes += missing
    if form == "pylock":
        listing = _with_urls(listing, known)
    elif form != "explicit":
        listing, unhashed = _with_hashes(listing, known) if has == "hash" else (_without_hashes(listing), [])
        notes += unhashed
    options, hidden = _index_options(listing.of("pip"), archives, known)
    listing = replace(listing, index_options=options)
    notes += hidden if form in ("environment.yml", "requirements", "dockerfile") else []
    notes += _left_out(listing, form)
    return Export(writer(listing, name), tuple(notes))


def _of_place(pin: Pin) -> str:
    return f"{pin.name} {pin.version} was installed from {pin.url}, which does not exist on other machines"


def _left_out(listing: Listing, form: str) -> list[str]:
    conda, pip = listing.of("conda"), listing.of("pip")
    if form == "explicit" and pip:
        return [
            f"@EXPLICIT lists contain only conda packages: {len(pip)} pip packages are left out; use --to requirements"
        ]
    if form in ("requirements", "pylock") and conda:
        return [
            f"{form} supports only pip projects: {len(conda)} conda packages are left out; use --to environment.yml"
        ]
    if form in ("environment.yml", "dockerfile") and pip and conda and not any(pin.name == "pip" for pin in conda):
        return [f"this environment has no pip; the file adds pip, which installs {names([one.name for one in pip])}"]
    return []


def _looked_up(pins: tuple[Pin, ...], archives: Archives) -> tuple[dict[str, Archive], list[str]]:
    """Returns the archives found in indexes, by project name, and notes on projects that are not found."""
    known: dict[str, Archive] = {}
    notes: list[str] = []
    for pin in pins:
        if pin.is_from_url or pin.content == "editable" or pin.hashes:
            continue
        found = archives.of(pin)
        if found is None:
            notes.append(f"{pin.name} {pin.version} was not found on an index, so it has no hash; pass --index-url")
            continue
        known[pin.name] = found
        if not found.name.endswith(".whl"):
            notes.append(
                f"{pin.name} {pin.version} was built on this machine from {found.name}; another build may differ"
            )
    return known, [*notes, *archives.unreachable.values()]


def _with_hashes(listing: Listing, known: Mapping[str, Archive]) -> tuple[Listing, list[str]]:
    """Adds hashes to all projects or to none, because pip rejects files with hashes for only some projects."""
    pins = [
        replace(pin, hashes=(f"sha256:{known[pin.name].sha256}",))
        if pin.manager == "pip" and pin.name in known
        else pin
        for pin in listing.pins
    ]
    lacking = [pin.name for pin in pins if pin.manager == "pip" and not (pin.hashes and pin.can_be_hashed)]
    if not lacking:
        return replace(listing, pins=tuple(pins)), []
    note = f"no hashes are written, because pip requires hashes for all projects, and {names(lacking)} cannot have one"
    return _without_hashes(listing), [note] if len(lacking) < len(listing.of("pip")) else []


def _without_hashes(listing: Listing) -> Listing:
    pins = tuple(replace(pin, hashes=()) if pin.manager == "pip" else pin for pin in listing.pins)
    return replace(listing, pins=pins)


def _with_urls(listing: Listing, known: Mapping[str, Archive]) -> Listing:
    """Adds the archive of every project.

    Raises:
        ConfigError: an archive is not found.
    """
    pins = [
        replace(pin, hashes=(f"sha256:{known[pin.name].sha256}",), url=known[pin.name].url)
        if pin.name in known
        else pin
        for pin in listing.of("pip")
    ]
    lacking = [pin.name for pin in pins if pin.can_be_hashed and not (pin.url and pin.sha256)]
    if lacking:
        raise ConfigError(
            f"pylock.toml requires the archive of each project, and {names(lacking)} "
            f"{'have' if lacking[1:] else 'has'} none; pass the --index-url or --find-links that has it, or use "
            "--to requirements"
        )
    conda = [pin for pin in listing.pins if pin.manager == "conda"]
    return replace(listing, pins=(*conda, *pins))


def _index_options(
    pins: tuple[Pin, ...], archives: Archives, known: Mapping[str, Archive]
) -> tuple[tuple[str, ...], list[str]]:
    """Returns pip's index options for these projects, and notes about passwords that were removed from the URLs."""
    given = () if archives.indexes == (PYPI,) else archives.indexes
    options = [word for i, url in enumerate(given) for word in ("--extra-index-url" if i else "--index-url", url)]
    for pin in pins:
        found = known.get(pin.name)
        torchs = torch_index(pin.version) if found is None or not found.index else found.index
        if not pin.is_from_url and torch_index(pin.version) and torchs not in options:
            options += ["--extra-index-url", torchs]
    public = tuple(without_login(one) if "://" in one else one for one in options)
    notes = [
        f"the user name and password for {public[i]} are omitted" for i, one in enumerate(options) if one != public[i]
    ]
    return public, notes
