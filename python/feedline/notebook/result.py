# SPDX-License-Identifier: Apache-2.0
"""The result of ``%%feedline``: a cell's diagnosis as text, HTML, and a run record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from feedline import record as records
from feedline.findings import Finding
from feedline.report import page


class Diagnosed:
    """The diagnosis of a cell, which a notebook displays automatically.

    Attributes:
        findings: the findings, ordered by share of the time, largest first.
        record: the run record, as written by ``feedline diagnose --record``; see docs/run-record.md.
    """

    def __init__(self, record: dict[str, Any], findings: list[Finding], text: str) -> None:
        self.record = record
        self.findings = findings
        self._text = text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record for ``feedline report`` and ``feedline diff``, or, if the path ends in ``.html``, the page.

        Raises:
            OSError: the file cannot be written.
        """
        if Path(path).suffix in (".html", ".htm"):
            records.replace(path, page(self.record).encode("utf-8", "replace"))
        else:
            records.write(self.record, path)

    def __repr__(self) -> str:
        return self._text.strip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        from feedline.report import inline

        return inline.block(self.record)
