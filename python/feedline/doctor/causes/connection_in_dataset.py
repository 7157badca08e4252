# SPDX-License-Identifier: Apache-2.0
"""A dataset keeps a connection, a lock or an open file."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page
from ..starting import method_of


def _judge(case: Case) -> Iterator[Found]:
    script = case.script
    if script is None or not script.may_have_workers:
        return
    for place in script.held:
        severity = "critical" if method_of(case) != "fork" and script.most_workers else "warning"
        yield Found(severity, (f"{place.at}: the dataset keeps {place.what}",), about=place.about)


CAUSE = Cause(
    page(
        "connection_in_dataset",
        "a dataset keeps a connection, a lock or an open file",
        means="After fork all workers share it: answers reach the wrong one, positions in files move under "
        "each other, and a lock that was held stays so for ever. With spawn it cannot be pickled.",
        recognised="Assigned to self in the dataset's __init__, and no __getstate__ that leaves it out.",
        to_do="Open it when a worker first needs it: keep None in __init__, and open in __getitem__ or "
        "worker_init_fn. Keep the path, not the file.",
        example="line 8: the dataset keeps a connection (sqlite3.connect).",
    ),
    turn=SCRIPT + 60,
    judge=_judge,
)
