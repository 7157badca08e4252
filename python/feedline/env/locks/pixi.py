# SPDX-License-Identifier: Apache-2.0
"""Reads pixi.lock, and the exact versions in a pixi.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from ...errors import ConfigError
from ...machine.packages import normalised
from ..optional_deps import optional_dependency
from ..reading.conda import channel_name
from .conda_files import conda_pin, of_url
from .listing import Listing, Pin

_KNOWN = (5, 6)


def read_lock(text: str, source: str, platform: str, python: str) -> Listing:
    value = optional_dependency("yaml").safe_load(text)
    if value.get("version") not in _KNOWN:
        known = " and ".join(map(str, _KNOWN))
        raise ConfigError(f"{source} is a pixi.lock of version {value.get('version')}; supported versions: {known}")
    environments = value["environments"]
    if "default" not in environments:
        raise ConfigError(f"{source} has no environment `default`, only {', '.join(environments)}")
    own = environments["default"]
    if platform not in own["packages"]:
        raise ConfigError(f"{source} is for {', '.join(own['packages'])}, not for {platform}")
    told = {str(one.get("conda") or one.get("pypi") or one.get("url")): one for one in value["packages"]}
    pins = [_pin(kind, str(url), told.get(str(url), {}), source)
            for one in own["packages"][platform] for kind, url in one.items()]  # fmt: skip
    version = next((pin.version for pin in pins if pin.name == "python" and pin.manager == "conda"), "")
    channels = tuple(channel_name(str(one["url"])) for one in own.get("channels", ()))
    return Listing(source, "pixi.lock", tuple(pins), python=version, channels=channels, platform=platform)


def _pin(kind: str, url: str, told: Mapping[str, Any], source: str) -> Pin:
    hashes = tuple(f"{name}:{told[name]}" for name in ("sha256", "md5") if told.get(name))
    if kind == "conda":
        return of_url(url, source, hashes)
    return Pin(normalised(str(told["name"])), "pip", str(told["version"]), hashes=hashes)


def read_manifest(text: str, source: str, platform: str, python: str) -> Listing:
    value = tomllib.loads(text)
    workspace = value.get("workspace") or value.get("project")
    if not isinstance(workspace, dict):
        raise ConfigError(f"{source} is not a pixi.toml: it has no [workspace]")
    pins = [_wanted(name, wanted, source) for name, wanted in value.get("dependencies", {}).items()]
    pins += [_project(name, wanted) for name, wanted in value.get("pypi-dependencies", {}).items()]
    version = next((pin.version for pin in pins if pin.name == "python" and pin.manager == "conda"), "")
    complete = bool(pins) and all(pin.version and (pin.build or pin.manager == "pip") for pin in pins)
    channels = tuple(channel_name(str(one)) for one in workspace.get("channels", ()))
    return Listing(source, "pixi.toml", tuple(pins), python=version, channels=channels, complete=complete)


def _wanted(name: str, wanted: Any, source: str) -> Pin:
    table = wanted if isinstance(wanted, dict) else {"version": wanted}
    version, build = str(table.get("version", "*")), str(table.get("build", ""))
    pin = conda_pin(f"{name} {'' if version == '*' else version}", source)
    channel = channel_name(str(table.get("channel", "")))
    return Pin(name, "conda", pin.version, spec=pin.spec, build=build or pin.build, channel=channel)


def _project(name: str, wanted: Any) -> Pin:
    table = wanted if isinstance(wanted, dict) else {"version": wanted}
    spec = str(table.get("version", "")).replace("*", "")
    exact = spec[2:] if spec.startswith("==") else ""
    return Pin(
        normalised(name), "pip", exact, spec="" if exact else spec, url=str(table.get("url") or table.get("git") or "")
    )
