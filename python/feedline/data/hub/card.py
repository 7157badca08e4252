# SPDX-License-Identifier: Apache-2.0
"""The configurations in a dataset card: ``configs:`` in the YAML at the beginning of README.md.

The rules are those of ``datasets.utils.metadata.MetadataConfigs``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import _engine
from ...errors import ConfigError, DataError

CARD = "README.md"
OVERRIDE = ".huggingface.yaml"  # its keys replace those of the card
SPLIT_NAME = re.compile(r"^\w+(\.\w+)*$")


class Config(NamedTuple):
    """A configuration. `data_files`: patterns by split; None if the files' names determine the splits."""

    name: str
    data_dir: str = ""
    data_files: dict[str, list[str]] | None = None
    is_default: bool = False


def configs_of(dataset: str, readme: str | None, override: str | None) -> list[Config]:
    """Reads the configurations; empty if the files state none.

    Args:
        dataset: the dataset's URL, for errors.
        readme: the content of README.md; None if the dataset has none.
        override: the content of .huggingface.yaml; None if the dataset has none.

    Raises:
        DataError: the YAML is damaged, or its ``configs`` have another form.
    """
    data = _yaml_of(dataset, CARD, _front_matter(readme or ""))
    data |= _yaml_of(dataset, OVERRIDE, override or "")
    configs = data.get("configs")
    if not configs:
        return []
    if not isinstance(configs, list):
        raise DataError(f"{dataset}: 'configs' in {CARD} must be a list, not {configs!r:.200}")
    return [_config_of(dataset, config) for config in configs]


def default_of(dataset: str, configs: Sequence[Config]) -> Config:
    """Returns the only configuration, the one called "default", or the one with ``default: true``.

    Raises:
        ConfigError: there is no default, or there are several.
    """
    defaults = [one for one in configs if len(configs) == 1 or one.name == "default" or one.is_default]
    if len(defaults) == 1:
        return defaults[0]
    names = ", ".join(repr(one.name) for one in (defaults or configs))
    problem = "has several default configurations" if defaults else "has several configurations and no default"
    raise ConfigError(f"open: {dataset} {problem}: pass one of them as config=: {names}")


def _front_matter(readme: str) -> str:
    lines = readme.splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        return ""
    return "\n".join(lines[1 : lines.index("---", 1)])


def _yaml_of(dataset: str, file: str, text: str) -> dict[str, Any]:
    try:
        data = json.loads(_engine.card_as_json(text))
    except DataError as error:
        raise DataError(f"{dataset}: {file}: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise DataError(f"{dataset}: {file}: the YAML must be a mapping of keys to values")
    return data


def _config_of(dataset: str, config: Any) -> Config:
    if not isinstance(config, dict) or not isinstance(config.get("config_name"), str):
        raise DataError(f"{dataset}: a configuration in {CARD} has no 'config_name': {config!r:.200}")
    name = config["config_name"]
    data_files = config.get("data_files")
    return Config(
        name,
        str(config.get("data_dir") or "").strip("/"),
        None if data_files is None else _patterns_of(f"{dataset}: configuration {name!r} in {CARD}", data_files),
        config.get("default") is True,
    )


def _patterns_of(where: str, data_files: Any) -> dict[str, list[str]]:
    if isinstance(data_files, str):
        return {"train": [data_files]}
    if not isinstance(data_files, list):
        data_files = [None]
    if all(isinstance(one, str) for one in data_files):
        return {"train": data_files}
    patterns: dict[str, list[str]] = {}
    for one in data_files:
        is_entry = isinstance(one, dict) and set(one) == {"split", "path"} and isinstance(one["split"], str)
        paths = one["path"] if is_entry else None
        paths = [paths] if isinstance(paths, str) else paths
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise DataError(
                f"{where}: 'data_files' must be a path, a list of paths, or a list of entries with exactly the keys "
                f"'split' and 'path', not {one!r:.200}"
            )
        if not SPLIT_NAME.match(one["split"]) or one["split"] in patterns:
            problem = "is repeated" if one["split"] in patterns else "must consist of letters, digits, '_' and '.'"
            raise DataError(f"{where}: the split {one['split']!r} {problem}")
        patterns[one["split"]] = paths
    return patterns
