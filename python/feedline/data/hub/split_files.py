# SPDX-License-Identifier: Apache-2.0
"""The files of each split, by their names or by patterns.

The rules are those of ``datasets.data_files`` 5.2. Files that no rule matches are left out, as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from ...errors import ConfigError
from .card import SPLIT_NAME

_IGNORED = {
    "README.md",
    "config.json",
    "dataset_info.json",
    "dataset_infos.json",
    "dummy_data.zip",
    "dataset_dict.json",
}
_SHARDED = "data/{split}-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*"
_SHARD_NAME = re.compile(r"(.+)-\d{5}-of-\d{5}.*\..*")
_KEYWORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_SEPARATORS = "[-._ 0-9]"
_IN_FOLDERS = ("**/{0}/**", "**/{0}{1}*/**", "**/*{1}{0}/**", "**/*{1}{0}{1}*/**")
_IN_FILES = ("**/{0}{1}*", "**/*{1}{0}{1}*")


def patterns_by_name(paths: Sequence[str]) -> dict[str, list[str]]:
    """Returns patterns by split for files without ``data_files``: those of the first rule that matches any file.

    Args:
        paths: relative to the folder of the data.
    """
    if shards := matching(_SHARDED.format(split="*"), paths):
        names = {found[1] for path in shards if (found := _SHARD_NAME.match(path.rpartition("/")[2]))}
        if wrong := sorted(name for name in names if not SPLIT_NAME.match(name)):
            raise ConfigError(f"open: {wrong[0]!r} in the names of files is not a name of a split; pass their pattern")
        usual = [name for name in _KEYWORDS if name in names]
        return {name: [_SHARDED.format(split=name)] for name in usual + sorted(names - set(usual))}
    for rule in (
        {"logs": ["**/*.eval"]},
        {"test": ["**/task.toml", "**/instruction.md"]},
        _by_keyword(_IN_FOLDERS),
        _by_keyword(_IN_FILES),
        {"train": ["**"]},
    ):
        splits = {
            split: patterns for split, patterns in rule.items() if any(matching(pattern, paths) for pattern in patterns)
        }
        if splits:
            return splits
    return {}


def _by_keyword(templates: Iterable[str]) -> dict[str, list[str]]:
    return {
        split: [template.format(keyword, _SEPARATORS) for keyword in keywords for template in templates]
        for split, keywords in _KEYWORDS.items()
    }


def matching(pattern: str, paths: Iterable[str]) -> list[str]:
    """Returns the sorted paths that match a pattern. ``*`` does not match slashes, ``**`` matches any folders. Hidden
    files, and folders that begin with ``__``, must be named by the pattern.

    Raises:
        ConfigError: ``**`` is only a part of a name.
    """
    pattern = pattern.removeprefix("./")
    expression = re.compile(_expression_of(pattern))
    ignored = _IGNORED - {pattern.rpartition("/")[2]}
    hidden, special = _hidden_parts(pattern), _special_parts(pattern)
    return sorted(
        path
        for path in paths
        if path.rpartition("/")[2] not in ignored
        and expression.match(path)
        and _hidden_parts(path) == hidden
        and _special_parts(path) == special
    )


def _hidden_parts(path: str) -> int:
    return sum(part.startswith(".") and set(part) != {"."} for part in PurePosixPath(path).parts)


def _special_parts(path: str) -> int:
    return sum(part.startswith("__") for part in PurePosixPath(path).parent.parts)


def _expression_of(pattern: str) -> str:
    """Translates a pattern as fsspec does."""
    *folders, last = pattern.split("/")
    text = ""
    for part in folders:
        text += "(?:.+/)?" if part == "**" else "[^/]+/" if part == "*" else _part_of(pattern, part) + "/"
    text += ".*" if last == "**" else "[^/]+" if last == "*" else _part_of(pattern, last)
    return rf"(?s:{text})\Z"


def _part_of(pattern: str, part: str) -> str:
    if "**" in part:
        raise ConfigError(f"open: in the pattern {pattern!r}, ** must be a whole name between slashes")
    text = ""
    at = 0
    while at < len(part):
        char, at = part[at], at + 1
        end = part.find("]", at + 1 + (part[at : at + 1] == "!")) if char == "[" else -1
        if char == "*":
            text += "[^/]*"
        elif char == "?":
            text += "[^/]"
        elif end > 0:
            members = part[at:end].replace("\\", r"\\").replace("[", r"\[")
            text += f"[{'^' + members[1:] if members.startswith('!') else members}]"
            at = end + 1
        else:
            text += re.escape(char)
    return text


def has_wildcard(path: str) -> bool:
    return any(char in path for char in "*?[")


def files_of(patterns: Mapping[str, Sequence[str]], paths: Sequence[str]) -> dict[str, list[str]]:
    """Returns the files of each split, in the order of the patterns and then of the paths.

    Raises:
        ConfigError: a name without wildcards matches no file.
    """
    found: dict[str, list[str]] = {}
    for split, wanted in patterns.items():
        files: list[str] = []
        for pattern in wanted:
            matched = matching(pattern, paths)
            if not matched and not has_wildcard(pattern):
                raise ConfigError(f"open: the file {pattern!r}, named by the split {split!r}, does not exist")
            files += matched
        found[split] = files
    return found
