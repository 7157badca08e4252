# SPDX-License-Identifier: Apache-2.0
"""A dataset stores a connection, a lock or an open file."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...start_method import method_of


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    if script is None or not script.may_have_workers:
        return
    for location in script.held:
        severity = "critical" if method_of(analysis) != "fork" and script.most_workers else "warning"
        yield Found(severity, (f"{location.at}: the dataset stores {location.what}",), about=location.about)


CAUSE = Cause(
    page(
        "connection_in_dataset",
        "a dataset stores a connection, a lock or an open file",
        means="After a fork, all workers share the object: responses reach the wrong worker, file positions move "
        "unexpectedly, and a held lock is never released. With spawn, the object cannot be pickled.",
        recognised="The dataset's __init__ assigns such an object to self, and no __getstate__ omits it.",
        to_do="Open the object when a worker first needs it: store None in __init__, and open it in __getitem__ or "
        "worker_init_fn. Store the path, not the file.",
        example="line 8: the dataset stores a connection (sqlite3.connect).",
    ),
    priority=SCRIPT + 60,
    evaluate=_evaluate,
)
