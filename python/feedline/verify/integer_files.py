# SPDX-License-Identifier: Apache-2.0
"""Finds the label and the IDs among the integers in a sample's files."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .. import _engine

_TAR_INTEGERS = frozenset((b"cls", b"cls2", b"index", b"inx", b"id"))  # WebDataset decodes these to an integer
_IDS = {"id", "ids", "index", "idx", "inx", "key"}


@functools.cache
def _label_names() -> frozenset[str]:
    """Returns the names of label fields. This is not a constant, because the documentation imports this file without an
    engine.
    """
    return frozenset({*_engine.label_names(), "targets", "y"})


@dataclass(frozen=True)
class IntegerFiles:
    """Extensions of label and ID files, in lower case, as in the engine's `files`."""

    labels: frozenset[bytes]
    ids: frozenset[bytes]

    def is_label_or_id(self, extension: bytes) -> bool:
        return extension.lower() in self.labels or extension.lower() in self.ids

    def is_integer(self, extension: bytes) -> bool:
        return extension.lower() in _TAR_INTEGERS or extension.lower().endswith(b".cls")


def integer_files_of(dataset: _engine.Dataset) -> IntegerFiles:
    """Identifies labels: by extension in tars and folders, by field name in tables.

    In tables, the first integer field of a row is the file ``cls``, regardless of its name, and all other integer
    fields are ``NAME.cls``.
    """
    if dataset.format in ("tar", "folder"):
        return IntegerFiles(_TAR_INTEGERS, frozenset())
    integers = [name for name, shape, dtype, *_ in dataset.schema() if shape == () and dtype == "int64"]
    files = [b"cls", *(_plain(name).encode() + b".cls" for name in integers[1:])]
    named = list(zip(integers, files, strict=False))
    labels = [file for name, file in named if _is_label(name)][:1]
    if not labels and dataset.classes:  # class names belong to a field with another name
        labels = [file for name, file in named if not _is_id(name)][:1]
    return IntegerFiles(frozenset(labels), frozenset(file for name, file in named if _is_id(name)) - {*labels})


def _is_label(name: str) -> bool:
    words = _words(name)
    return words[-1] in _label_names() or (words[-1] == "id" and words[-2:-1] != [] and words[-2] in _label_names())


def _is_id(name: str) -> bool:
    return _words(name)[-1] in _IDS and not _is_label(name)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower()) or [""]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "_", name.lower())
