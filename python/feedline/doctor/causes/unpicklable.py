# SPDX-License-Identifier: Apache-2.0
"""What workers need cannot be sent to them."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page
from ..starting import method_of


def _judge(case: Case) -> Iterator[Found]:
    script = case.script
    method = method_of(case)
    if script is None or method == "fork" or not script.may_have_workers:
        return
    for place in script.unpicklable:
        words = f"line {place.line}: {place.what}, and workers start by {method}"
        yield Found("critical" if script.most_workers else "warning", (words,), about={"line": place.line})


CAUSE = Cause(
    page(
        "unpicklable",
        "what workers need cannot be sent to them",
        means="With spawn and forkserver, dataset, transforms, collate_fn and worker_init_fn are pickled for "
        "each worker. Lambdas, and functions and classes defined within functions, cannot be: "
        "AttributeError: Can't pickle local object. Since Python 3.14 Linux has forkserver unless told "
        "otherwise.",
        recognised="A lambda or a local function given to a loader, a dataset or transforms.Lambda, where workers "
        "are not forked.",
        to_do="Define it at the top of the file, and give values by functools.partial; or "
        "multiprocessing_context='fork' where nothing else speaks against it.",
        example="line 9: collate_fn=lambda, and workers start by spawn.",
    ),
    turn=SCRIPT + 40,
    judge=_judge,
)
