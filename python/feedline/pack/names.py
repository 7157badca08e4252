# SPDX-License-Identifier: Apache-2.0
"""Keys of packed samples, by WebDataset's rules.

A key is a member's name up to the first dot of its last path component. Without escapes, a file ``cat/1.5.jpg`` would
therefore have the key ``cat/1`` and the extension ``5.jpg``, and ``cat/1.jpg`` and ``cat/1.png`` would be one sample.
So dots within a file's name are escaped as ``%2E``, and if names differ only by extension, the keys include the
extension: ``cat/1%2Epng.png``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from .. import _engine
from ..errors import ConfigError


class FolderKeys:
    """Keys of the samples of a folder whose files are found by class folders or by patterns."""

    def __init__(self, dataset: _engine.Dataset) -> None:
        self._shared: set[str] = set()
        if dataset.classes:  # patterns already produce keys
            stems = Counter(_stem(dataset.key(i)) for i in range(len(dataset)))
            self._shared = {stem for stem, count in stems.items() if count > 1}

    def key(self, stem: str, extension: str) -> str:
        """Returns the key of a sample; ``stem`` is the path without its extension, or the key of a pattern."""
        if stem in self._shared:
            stem = f"{stem}.{extension}"
        folder, slash, name = stem.rpartition("/")
        first = folder.split("/")[0]
        if first.startswith("__") and first.endswith("__"):
            raise ConfigError(f"pack: tar readers skip names that begin with '{first}/': rename that class folder")
        return folder + slash + name.replace("%", "%25").replace(".", "%2E")


def _stem(path: str) -> str:
    return path.rpartition(".")[0]


# The first member of a shard with class names; src/format/tar/class_names.h reads it. Other readers skip names within
# double underscores as metadata, and names without a dot as belonging to no sample.
CLASS_NAMES_MEMBER = "__classes__"


def class_names_text(classes: Sequence[str]) -> bytes:
    """Returns the class names, one per line, sorted by label."""
    escaped = (name.replace("%", "%25").replace("\n", "%0A") for name in classes)
    return "".join(f"{name}\n" for name in escaped).encode("utf-8", "surrogateescape")


def text(name: bytes) -> str:
    """Decodes a stored name in any encoding; ``os.fsencode`` converts it back to the same bytes."""
    return os.fsdecode(name)
