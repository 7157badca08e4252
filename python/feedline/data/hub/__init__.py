# SPDX-License-Identifier: Apache-2.0
"""Datasets on the Hugging Face Hub: their configurations and splits, by the rules of ``datasets``.

The modules are imported when a source is such a dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_PREFIX = "hf://datasets/"


def is_source(source: Any) -> bool:
    """Whether a source is a dataset on the Hub, or a list that contains files of one without a commit."""
    if isinstance(source, list | tuple):
        return any(isinstance(one, str) and one.lower().startswith(_PREFIX) and not _is_pinned(one) for one in source)
    return isinstance(source, str) and source.lower().startswith(_PREFIX)


def _is_pinned(url: str) -> bool:
    name, _, commit = url.split("/", 5)[4].partition("@") if url.count("/") > 4 else ("", "", "")
    return bool(name) and len(commit) == 40 and all(char in "0123456789abcdef" for char in commit)


def source_of(
    source: Any, format: str | None, annotations: Mapping[str, str]
) -> tuple[list[str], str | None, dict[str, str]]:
    """Returns the URLs of a source's files at their commits, their format, and the other annotations.

    Raises:
        ConfigError, DataError, StorageError: as :func:`opening.find`; the files cannot be read as one source.
    """
    from . import opening

    return opening.source_of(source, format, annotations)


def are_files(source: Any, format: str | None, annotations: Mapping[str, str]) -> bool:
    """Whether :func:`open_dataset` opens a source as a list of images or audio files."""
    from . import opening

    return opening.are_files(source, format, annotations)


def open_dataset(options: dict[str, Any], open_source: Callable[..., Any]) -> Any:
    """Opens a source of the Hub with the arguments of :func:`feedline.open`, which is `open_source`."""
    from . import opening

    return opening.open_dataset(options, open_source)
