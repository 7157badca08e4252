# SPDX-License-Identifier: Apache-2.0
"""Which forms there are, and one environment in one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import ConfigError
from ..archives import Archives
from ..locks.listing import Listing, Pin
from . import conda_forms, dockerfile, pip_forms, pixi_form


@dataclass(frozen=True)
class Export:
    """A file's text, and what it could not say."""

    text: str
    notes: tuple[str, ...] = ()


Writer = Callable[[Listing, str], str]
# by the name of the form: the usual name of its file, who writes it, and whether it wants hashes of archives
FORMS: dict[str, tuple[str, Writer, bool]] = {
    "environment.yml": ("environment.yml", conda_forms.environment, False),
    "explicit": ("explicit.txt", conda_forms.explicit, False),
    "requirements": ("requirements.txt", pip_forms.requirements, True),
    "pylock": ("pylock.toml", pip_forms.pylock, True),
    "pixi": ("pixi.toml", pixi_form.manifest, False),
    "dockerfile": ("Dockerfile", dockerfile.dockerfile, True),
}


def export(listing: Listing, name: str, form: str, archives: Archives) -> Export:
    """`listing` in a form of :data:`FORMS`.

    Args:
        listing: of a snapshot.
        name: what the environment is called.
        archives: where hashes are looked up, for forms that have them.

    Raises:
        ConfigError: the form cannot hold this environment, or an index cannot be asked.
    """
    _, writer, wants_hashes = FORMS[form]
    notes = [_of_place(pin) for pin in listing.pins if pin.content == "editable" or pin.url.startswith("file:")]
    if wants_hashes:
        listing, missing = _with_hashes(listing, archives)
        notes += missing
    if form == "explicit" and listing.of("pip"):
        count = len(listing.of("pip"))
        notes.append(f"a list of @EXPLICIT holds conda packages alone: {count} of pip are not in it; --to requirements")
    if form in ("requirements", "pylock") and listing.of("conda"):
        count = len(listing.of("conda"))
        notes.append(f"{form} holds projects of pip alone: {count} conda packages are not in it; --to environment.yml")
    if not listing.pins:
        raise ConfigError("there is nothing to export: the environment holds no packages")
    return Export(writer(listing, name), tuple(note for note in notes if note))


def _of_place(pin: Pin) -> str:
    return f"{pin.name} {pin.version} is from {pin.url}: on another machine it is not there"


def _with_hashes(listing: Listing, archives: Archives) -> tuple[Listing, list[str]]:
    pins: list[Pin] = []
    notes: list[str] = []
    for pin in listing.pins:
        if pin.manager == "conda" or pin.url:
            pins.append(pin)
            continue
        found = archives.of(pin)
        if found is None:
            pins.append(pin)
            notes.append(f"{pin.name} {pin.version} has no archive where was looked: no hash; name its --index-url")
        else:
            if not found.name.endswith(".whl"):
                notes.append(
                    f"{pin.name} {pin.version} was built here of {found.name}: elsewhere it may come out otherwise"
                )
            pins.append(replace(pin, hashes=(f"sha256:{found.sha256}",), url=found.url))
    return replace(listing, pins=tuple(pins)), notes
