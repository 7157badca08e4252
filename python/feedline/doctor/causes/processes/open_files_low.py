# SPDX-License-Identifier: Apache-2.0
"""The limit on open files is low."""

from __future__ import annotations

from collections.abc import Iterator

from ....findings import Threshold
from ...rules import MACHINE, Analysis, Cause, Found, page

FEW = Threshold(1024, "number of files; this is Linux's default, and sufficient for most loaders")


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    limit = analysis.machine.limits.open_files
    if limit is not None and limit < FEW:
        yield Found("warning", (f"only {limit} files can be open",))


CAUSE = Cause(
    page(
        "open_files_low",
        "the limit on open files is low",
        means="torch passes each tensor as a file descriptor; shards, sockets and pipes of workers need further "
        "descriptors. Above the limit, runs fail with OSError: Too many open files.",
        recognised="ulimit -n is below Linux's default.",
        to_do="Set ulimit -n 65536, or use docker run --ulimit nofile=65536.",
        example="only 256 files can be open.",
    ),
    priority=MACHINE + 170,
    evaluate=_evaluate,
)
