# SPDX-License-Identifier: Apache-2.0
"""A worker starts processes."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    if script is None or not script.may_have_workers:
        return
    for location in script.pools:
        severity = "critical" if script.most_workers else "warning"
        yield Found(severity, (f"{location.at}: {location.what} in code that workers run",), about=location.about)


CAUSE = Cause(
    page(
        "nested_pool",
        "a worker starts processes",
        means="Workers are daemons, which cannot have children. They raise AssertionError: daemonic processes are "
        "not allowed to have children. Threads are fine.",
        recognised="The methods of a dataset that workers run, collate_fn, worker_init_fn, or functions that these "
        "call create a Pool, a Process, a ProcessPoolExecutor or a DataLoader with workers.",
        to_do="Remove the pool: the workers provide the parallelism. If a sample has parts to wait for, use "
        "concurrent.futures.ThreadPoolExecutor.",
        example="line 21: multiprocessing.Pool in code that workers run.",
    ),
    priority=SCRIPT + 20,
    evaluate=_evaluate,
)
