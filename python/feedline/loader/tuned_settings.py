# SPDX-License-Identifier: Apache-2.0
"""Loader settings in a file: the result of ``feedline tune``, with the machine and the data that they were measured
on.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError, SettingsWarning

VERSION = 1
_LARGEST_FILE = 1 << 20
# The facts that the best settings depend on. Other facts of a machine vary from day to day, or do not matter.
MACHINE_FACTS = ("cpu", "usable_cpus", "memory_bytes", "memory_limit_bytes", "architecture", "gpus", "gpu0_name")
_TARGETS = ("DataLoader", "torch.DataLoader", "feedline.DataLoader", "loader")
# Name: (type, minimum, whether None is allowed). `feedline tune` writes nothing else, so other values are damage.
_DATA_LOADER: dict[str, tuple[type, int, bool]] = {
    "num_workers": (int, 0, False),
    "prefetch_factor": (int, 1, True),
    "persistent_workers": (bool, 0, False),
    "pin_memory": (bool, 0, False),
    "batch_size": (int, 1, False),
}
_LOADER: dict[str, tuple[type, int, bool]] = {
    "num_workers": (int, 0, False),
    "memory_budget": (int, 1, True),
    "batch_size": (int, 1, False),
}
_MOST = 2**63 - 1


def load_settings(path: str | os.PathLike[str], for_: str = "DataLoader", *, source: Any = None) -> dict[str, Any]:
    """Returns the settings saved by ``feedline tune --settings PATH`` as keyword arguments.

    ::

        loader = DataLoader(dataset, batch_size=64, **feedline.load_settings("tuned.json"))
        loader = dataset.loader(batch_size=64, **feedline.load_settings("tuned.json", for_="loader"))

    Args:
        path: the file.
        for_: the loader to configure. Use ``"torch.DataLoader"``, ``"feedline.DataLoader"``, or ``"DataLoader"`` for
            either of the two; use ``"loader"`` for :meth:`Dataset.loader`, with settings that were measured for a
            source.
        source: the data to load (a path, or a dataset with a length), which is compared with the data that was
            measured.

    Returns:
        Arguments by name; ``batch_size`` is included only if ``feedline tune`` was allowed to change it.

    Raises:
        ConfigError: the file is damaged, was written by a later version, or was not measured for such a loader.
        OSError: the file cannot be read.

    Warns:
        SettingsWarning: the settings were measured on another machine, for other data, or with Feedline's DataLoader
            although `for_` does not name it; the warning lists the differences.
    """
    if not isinstance(for_, str) or for_ not in _TARGETS:
        raise ConfigError(f"load_settings: for_ must be one of {', '.join(map(repr, _TARGETS))}, not {for_!r}")
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"load_settings: path must be a path, not {path!r}")
    name = os.fspath(path)
    saved = check(_read(path), name)
    arguments = _arguments_for(saved, for_, name)
    differences = _other_machine(saved["machine"]) + _other_data(saved["data"], source)
    found = []
    if differences:
        found.append(
            f"{name} was measured on a different machine or for different data: {'; '.join(differences)}. "
            "Run `feedline tune` again"
        )
    if for_ == "DataLoader" and saved.get("use") == "feedline":
        found.append(
            f"{name} was measured with Feedline's DataLoader (from feedline import DataLoader), and does not apply to "
            "torch's. Call load_settings(..., for_=\"feedline.DataLoader\") if you use Feedline's"
        )
    if found:
        import warnings

        for text in found:
            warnings.warn(text, SettingsWarning, stacklevel=2)
    return arguments


def _arguments_for(saved: Mapping[str, Any], for_: str, name: str) -> dict[str, Any]:
    """Returns the arguments in `saved` for the loader `for_`. Raises ConfigError if `saved` was measured for another
    kind of loader.
    """
    for_source = saved["arguments"].get("loader")
    if for_ == "loader":
        if for_source is None:
            raise ConfigError(
                f"{name} was measured for a script's DataLoader, whose number of workers does not apply to native "
                "threads: run `feedline tune SOURCE`"
            )
        return dict(for_source)
    if for_source is not None:
        raise ConfigError(
            f"{name} was measured for Feedline's own loader, feedline.open(...).loader(...), whose number of threads "
            "does not apply to "
            'the workers of a DataLoader. Use load_settings(..., for_="loader"), or run '
            "`feedline tune -- COMMAND` for a script with a DataLoader"
        )
    if for_ == "torch.DataLoader" and saved.get("use") == "feedline":
        raise ConfigError(
            f"{name} was measured with Feedline's DataLoader, and does not apply to torch's: use `from feedline "
            "import DataLoader`"
        )
    return dict(saved["arguments"]["DataLoader"])


def check(settings: Any, name: str) -> dict[str, Any]:
    """Returns `settings`, or raises a ConfigError naming `name` if they do not have the form that ``feedline tune``
    writes.
    """
    if not isinstance(settings, dict) or "feedline_settings" not in settings:
        raise ConfigError(f"{name} contains no settings; write them with `feedline tune --settings FILE`")
    version = settings["feedline_settings"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ConfigError(f"{name} is damaged: feedline_settings is {version!r}, which is not a version number")
    if version > VERSION:
        raise ConfigError(
            f"{name} has version {version}, but this Feedline reads only versions up to {VERSION}: update Feedline"
        )
    for part in ("arguments", "machine", "data"):
        if not isinstance(settings.get(part), dict):
            raise ConfigError(f"{name} is damaged: {part} is missing")
    arguments = settings["arguments"]
    for target, known in (("DataLoader", _DATA_LOADER), ("loader", _LOADER)):
        found = arguments.get(target)
        other = arguments.get("loader" if target == "DataLoader" else "DataLoader")
        if found is None and other is not None:
            continue
        _check_arguments(found, known, f"{name} is damaged: arguments.{target}")
    return settings


def _check_arguments(found: Any, known: Mapping[str, tuple[type, int, bool]], where: str) -> None:
    if not isinstance(found, dict) or "num_workers" not in found:
        raise ConfigError(f"{where} is missing or has no num_workers")
    for argument, value in found.items():
        if argument not in known:
            raise ConfigError(f"{where} has {argument[:40]!r}, which is not a setting")
        kind, least, may_be_none = known[argument]
        is_one = type(value) is kind and isinstance(value, int) and least <= value <= _MOST
        is_word = known is _LOADER and argument == "num_workers" and value == "auto"
        right = may_be_none if value is None else is_one or is_word
        if not right:
            raise ConfigError(f"{where}.{argument} is {repr(value)[:40]}")
    if found.get("num_workers") == 0 and (found.get("prefetch_factor") or found.get("persistent_workers")):
        raise ConfigError(f"{where}: without workers, prefetching and persistent workers are impossible")


def write(settings: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the file atomically. Raises OSError."""
    import json
    from pathlib import Path

    check(dict(settings), os.fspath(path))
    target = Path(path)
    text = json.dumps(settings, indent=2, allow_nan=False) + "\n"
    if target.exists() and not target.is_file():  # /dev/stdout and pipes cannot be replaced
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def machine_fingerprint() -> dict[str, Any]:
    """Returns the properties of this machine that affect the best settings."""
    from ..machine.facts import machine_facts

    facts, _ = machine_facts()
    return {name: facts.get(name) for name in MACHINE_FACTS}


def _read(path: str | os.PathLike[str]) -> Any:
    import json  # not imported with the package: few processes read settings

    name = os.fspath(path)
    if os.stat(path).st_size > _LARGEST_FILE:
        raise ConfigError(f"{name} contains no settings: it is larger than any settings file")
    try:
        return json.loads(_bytes_of(path), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} contains no settings: it is not JSON ({error})") from None


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _other_machine(measured: Mapping[str, Any]) -> list[str]:
    here = machine_fingerprint()
    return [
        f"{name} is {here[name]!r} here, and was {measured[name]!r} when measured"
        for name in MACHINE_FACTS
        if name in measured and not _alike(measured[name], here[name])
    ]


def _other_data(measured: Mapping[str, Any], source: Any) -> list[str]:
    if source is None:
        return []
    if isinstance(source, (str, os.PathLike)):
        was = measured.get("source")
        here = os.fspath(source)
        same = was is None or os.path.abspath(str(was)) == os.path.abspath(here)
        return [] if same else [f"the source is {here!r}, and was {was!r} when measured"]
    differences = []
    samples = len(source) if hasattr(source, "__len__") else None
    if samples is not None and isinstance(measured.get("samples"), int) and samples != measured["samples"]:
        differences.append(f"the dataset has {samples} samples, and had {measured['samples']} when measured")
    kind = type(source).__qualname__
    if isinstance(measured.get("dataset"), str) and kind != measured["dataset"]:
        differences.append(f"the dataset is a {kind}, and was a {measured['dataset']} when measured")
    return differences


def _alike(one: Any, other: Any) -> bool:
    """Returns whether two values are equal. Memory sizes in bytes may differ by a few pages, as they do between
    boots.
    """
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other))
    return math.isclose(one, other, rel_tol=0.05) if numbers else bool(one == other)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
