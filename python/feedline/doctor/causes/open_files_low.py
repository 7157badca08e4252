# SPDX-License-Identifier: Apache-2.0
"""Few files may be open."""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import Threshold
from ..case import MACHINE, Case, Cause, Found, page

FEW = Threshold(1024, "files: the default of Linux, with which most loaders run")


def _judge(case: Case) -> Iterator[Found]:
    limit = case.machine.limits.open_files
    if limit is not None and limit < FEW:
        yield Found("warning", (f"{limit} files may be open",))


CAUSE = Cause(
    page(
        "open_files_low",
        "few files may be open",
        means="torch hands each tensor over as a file descriptor; shards, sockets and pipes of workers come "
        "on top: OSError: Too many open files.",
        recognised="ulimit -n below what every Linux has by default.",
        to_do="ulimit -n 65536, or docker run --ulimit nofile=65536.",
        example="256 files may be open.",
    ),
    turn=MACHINE + 170,
    judge=_judge,
)
