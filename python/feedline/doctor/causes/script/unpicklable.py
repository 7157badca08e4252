# SPDX-License-Identifier: Apache-2.0
"""The workers' arguments cannot be pickled."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...start_method import method_of


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    method = method_of(analysis)
    if script is None or method == "fork" or not script.may_have_workers:
        return
    for location in script.unpicklable:
        words = f"line {location.line}: {location.what}, and workers start with {method}"
        yield Found("critical" if script.most_workers else "warning", (words,), about={"line": location.line})


CAUSE = Cause(
    page(
        "unpicklable",
        "the workers' arguments cannot be pickled",
        means="With spawn and forkserver, dataset, transforms, collate_fn and worker_init_fn are pickled for each "
        "worker. Lambdas, and functions and classes defined within functions, cannot be pickled: "
        "AttributeError: Can't pickle local object. Since Python 3.14, Linux uses forkserver unless set "
        "otherwise.",
        recognised="A lambda or a local function is passed to a loader, a dataset or transforms.Lambda, and workers "
        "are not forked.",
        to_do="Define the function at module level, and bind values with functools.partial; or use "
        "multiprocessing_context='fork' if nothing prevents it.",
        example="line 9: collate_fn=lambda, and workers start with spawn.",
    ),
    priority=SCRIPT + 40,
    evaluate=_evaluate,
)
