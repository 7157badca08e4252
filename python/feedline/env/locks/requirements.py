# SPDX-License-Identifier: Apache-2.0
"""Reads pip's requirements files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ...errors import ConfigError
from ...machine.packages import normalised
from ..optional_deps import optional_dependency
from ..requirements import markers_for
from .listing import Listing, Pin

_MOST_DEPTH = 8  # limit for files that include themselves
_VALUED = ("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links")


def read(text: str, source: str, platform: str, python: str) -> Listing:
    lines = _lines(text)
    pins = tuple(pins_of_lines(lines, source, python))
    complete = bool(pins) and all(pin.version or pin.url for pin in pins)
    return Listing(source, "requirements", pins, complete=complete, index_options=index_options_of(lines))


def index_options_of(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the index options in pip's lines: ``--index-url URL`` and ``--extra-index-url URL``."""
    found: list[str] = []
    for line in lines:
        option = re.match(r"(-i|--index-url|--extra-index-url)[\s=]+(\S+)", line)
        if option is not None:
            found += ["--index-url" if option[1] == "-i" else option[1], option[2]]
    return tuple(found)


def pins_of_lines(lines: Iterable[str], source: str, python: str, depth: int = 0) -> list[Pin]:
    """Returns the packages of the lines whose markers apply on this machine, including files named by ``-r``."""
    found: list[Pin] = []
    for line in lines:
        words = line.split()
        if not words:
            continue
        option, _, joined = words[0].partition("=") if words[0].startswith("--") else (words[0], "", "")
        if option in ("-r", "--requirement"):
            file = Path(os.path.dirname(source)) / (joined or words[1])
            if depth > _MOST_DEPTH:
                raise ConfigError(f"{source}: -r {file} includes itself")
            found += pins_of_lines(_lines(file.read_text()), str(file), python, depth + 1)
        elif option in ("-e", "--editable"):
            place = joined or words[1]
            found.append(Pin(normalised(os.path.basename(place.rstrip("/"))), "pip", url=place, content="editable"))
        elif not option.startswith("-"):
            found += _pin(line, source, python)
        elif option not in _VALUED and option not in (
            "--no-binary",
            "--only-binary",
            "--require-hashes",
            "--pre",
            "--no-index",
        ):
            raise ConfigError(f"{source}: {line!r} is not a requirement")
    return found


def _pin(line: str, source: str, python: str) -> list[Pin]:
    hashes = tuple(re.findall(r"\s--hash[= ](\w+:\w+)", line))
    text = re.split(r"\s--", line, maxsplit=1)[0].strip()
    requirements = optional_dependency("packaging.requirements")
    try:
        one = requirements.Requirement(text)
    except requirements.InvalidRequirement as error:
        raise ConfigError(f"{source}: {text!r} is not a requirement: {str(error).splitlines()[0]}") from None
    if one.marker is not None and not one.marker.evaluate(markers_for(python or None)):
        return []
    exact = re.fullmatch(r"={2,3}([^*,]+)", str(one.specifier))
    return [
        Pin(
            normalised(one.name), "pip", exact[1] if exact else "", spec="" if exact else str(one.specifier),
            url=one.url or "", hashes=hashes,
        )
    ]  # fmt: skip


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    return [re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines()]
