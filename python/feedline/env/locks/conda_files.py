# SPDX-License-Identifier: Apache-2.0
"""Reads environment.yml, output of `conda list --export`, @EXPLICIT lists (CEP 23), and conda-lock.yml."""

from __future__ import annotations

import re
from typing import Any

from ...errors import ConfigError
from ...machine.packages import normalised
from ..optional_deps import optional_dependency
from ..reading.conda import channel_name
from .listing import Listing, Pin
from .requirements import index_options_of, pins_of_lines

_ARCHIVE = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)$")
_SPEC = re.compile(r"^(?:(?P<channel>[^\s]+)::)?(?P<name>[A-Za-z0-9_.\-]+)\s*(?P<rest>.*)$")


def read_environment(text: str, source: str, platform: str, python: str) -> Listing:
    value = optional_dependency("yaml").safe_load(text)
    if not isinstance(value, dict) or not isinstance(value.get("dependencies"), list):
        raise ConfigError(f"{source} is not an environment.yml: it has no list `dependencies`")
    pins: list[Pin] = []
    lines: list[str] = []  # file name in messages about the pip section
    for one in value["dependencies"]:
        if isinstance(one, dict):
            lines += map(str, one.get("pip") or ())
        else:
            pins.append(conda_pin(str(one), source))
    conda = list(pins)
    pins += pins_of_lines(lines, source, python)
    own = next((pin for pin in conda if pin.name == "python"), None)
    return Listing(
        source, "environment.yml", tuple(pins), python=own.version if own else "",
        channels=tuple(channel_name(str(one)) for one in value.get("channels") or ()),
        complete=bool(pins) and all(pin.version for pin in pins) and all(pin.build for pin in conda),
        index_options=index_options_of(lines),
    )  # fmt: skip


def conda_pin(text: str, source: str) -> Pin:
    """Parses ``conda-forge::numpy=2.1.0=py311_0``, ``numpy>=2`` and ``numpy 2.1.*``."""
    found = _SPEC.match(text.strip())
    if found is None:
        raise ConfigError(f"{source}: {text!r} is not a conda package")
    rest = found["rest"].strip()
    channel = channel_name(found["channel"]) if found["channel"] else ""
    exact = re.fullmatch(r"={1,2}\s*([^=<>!,*|\s]+)=([^=<>!,|\s]+)|([^=<>!,*|\s]+)\s+([^=<>!,|\s*]+)", rest)
    if exact:
        version, build = (exact[1], exact[2]) if exact[1] else (exact[3], exact[4])
        return Pin(found["name"], "conda", version, build=build, channel=channel)
    exact = re.fullmatch(r"==\s*([^=<>!,*|\s]+)", rest)
    if exact:
        return Pin(found["name"], "conda", exact[1], channel=channel)
    fuzzy = re.fullmatch(r"=\s*([^=<>!,*|\s]+?)(\.?\*)?", rest)
    spec = f"{fuzzy[1]}.*" if fuzzy else rest.replace(" ", "")
    return Pin(found["name"], "conda", spec=spec, channel=channel)


LIST = "$ conda create --name <env> --file <this file>"  # header of conda's files, with or without @EXPLICIT
_OF_PIP = "pypi_0"


def read_list(text: str, source: str, platform: str, python: str) -> Listing:
    """Reads ``name=version=build`` lines from `conda list --export`, or specs from
    `conda export --format requirements`.
    """
    told = re.search(r"^#\s*platform:\s*(\S+)", text, re.MULTILINE)
    pins = [conda_pin(line, source) for line in map(str.strip, text.splitlines()) if line and line[0] not in "#@"]
    pins = [Pin(normalised(one.name), "pip", one.version) if one.build == _OF_PIP else one for one in pins]
    own = next((pin.version for pin in pins if pin.name == "python"), "")
    complete = bool(pins) and all(pin.version for pin in pins)
    return Listing(source, "conda list", tuple(pins), python=own, complete=complete, platform=told[1] if told else "")


def read_explicit(text: str, source: str, platform: str, python: str) -> Listing:
    pins = []
    told = re.search(r"^#\s*platform:\s*(\S+)", text, re.MULTILINE)
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#@":
            url, _, digest = line.partition("#")
            pins.append(of_url(url, source, (_hash(digest),) if digest else ()))
    own = next((pin.version for pin in pins if pin.name == "python"), "")
    channels = tuple(dict.fromkeys(pin.channel for pin in pins))
    return Listing(source, "explicit", tuple(pins), python=own, channels=channels, platform=told[1] if told else "")


def of_url(url: str, source: str, hashes: tuple[str, ...] = ()) -> Pin:
    """Returns the package that an archive's URL names."""
    folder, _, file = url.rpartition("/")
    found = _ARCHIVE.match(file)
    if found is None:
        raise ConfigError(f"{source}: {url} is not an archive of a conda package")
    return Pin(
        found["name"],
        "conda",
        found["version"],
        build=found["build"],
        channel=channel_name(folder),
        url=url,
        hashes=hashes,
    )


def read_conda_lock(text: str, source: str, platform: str, python: str) -> Listing:
    value = optional_dependency("yaml").safe_load(text)
    if value.get("version") != 1:
        raise ConfigError(
            f"{source} is a conda-lock.yml of version {value.get('version')}; only version 1 is supported"
        )
    platforms = value["metadata"].get("platforms") or []
    if platforms and platform not in platforms:
        raise ConfigError(f"{source} is for {', '.join(platforms)}, not for {platform}")
    pins = [
        _locked(one, source)
        for one in value["package"]
        if one.get("platform") in (platform, None) and one.get("category", "main") == "main" and not one.get("optional")
    ]
    own = next((pin.version for pin in pins if pin.name == "python"), "")
    channels = tuple(
        str(one["url"] if isinstance(one, dict) else one) for one in value["metadata"].get("channels") or ()
    )
    return Listing(source, "conda-lock", tuple(pins), python=own, channels=channels, platform=platform)


def _locked(one: dict[str, Any], source: str) -> Pin:
    hashes = tuple(f"{kind}:{digest}" for kind, digest in (one.get("hash") or {}).items())
    if one["manager"] == "conda":
        return of_url(str(one["url"]), source, hashes)
    return Pin(str(one["name"]).lower().replace("_", "-"), "pip", str(one["version"]), url="", hashes=hashes)


def _hash(text: str) -> str:
    if ":" in text:
        return text
    return f"sha256:{text}" if len(text) == 64 else f"md5:{text}"
