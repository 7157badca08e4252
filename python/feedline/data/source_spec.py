# SPDX-License-Identifier: Apache-2.0
"""Sources for `feedline.open`, with the engine's options for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import _engine


class SourceSpec(NamedTuple):
    """A source, and the options that determine its samples. The attributes after `source` have the names of the
    engine's options.

    `annotations`: the options for annotated images (images, split, crowd) that were passed.
    """

    source: str
    format: str = ""
    fields: Sequence[str] = ()
    index_directory: str = ""
    missing: str = "error"
    allow_commands: bool = False
    annotations: Mapping[str, str] = {}
    documents: bool = False

    def open(self, **options: Any) -> _engine.Dataset:
        """Opens the source; `options` are further options of the engine, such as cache_directory."""
        return _engine.open(self.source, self._options() | options)

    def inspect(self) -> _engine.Inspection:
        return _engine.inspect(self.source, self._options())

    def _options(self) -> dict[str, Any]:
        options = self._asdict()
        del options["source"]
        annotations = {"images": "", "split": "", "crowd": "", **self.annotations}
        return {**options, "fields": list(self.fields), "annotations": annotations}
