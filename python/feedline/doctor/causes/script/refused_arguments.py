# SPDX-License-Identifier: Apache-2.0
"""DataLoader rejects these arguments."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...script.facts import LoaderCall


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for call in analysis.script.loaders if analysis.script is not None else ():
        for problem in _problems(call):
            yield Found("critical", (f"line {call.line}: {problem}",), about={"line": call.line})


def _problems(call: LoaderCall) -> Iterator[str]:
    prefetch, workers = call.get("prefetch_factor"), call.workers
    if workers == 0:
        if isinstance(prefetch, int) and not (call.is_feedline and call.get("num_workers") == "auto"):
            yield f"prefetch_factor={prefetch} without workers"
        if call.get("persistent_workers") is True:
            yield "persistent_workers=True without workers"
        if isinstance(call.get("multiprocessing_context"), str):
            yield "multiprocessing_context without workers"
    elif workers is not None and workers < 0:
        yield f"num_workers={workers}"
    elif isinstance(prefetch, int) and prefetch <= 0:
        yield f"prefetch_factor={prefetch} is not allowed with workers: it must be at least 1"
    if call.get("shuffle") is True and _is_given(call, "sampler"):
        yield "shuffle=True together with a sampler"
    if _is_given(call, "batch_sampler"):
        size = call.get("batch_size")
        given = [name for name in ("shuffle", "drop_last") if call.get(name) is True]
        given += ["batch_size"] if isinstance(size, int) and size != 1 else []
        given += ["sampler"] if _is_given(call, "sampler") else []
        if given:
            yield f"{', '.join(given)} together with a batch_sampler"


def _is_given(call: LoaderCall, name: str) -> bool:
    return call.arguments.get(name) is not None


CAUSE = Cause(
    page(
        "refused_arguments",
        "DataLoader rejects these arguments",
        means="torch raises a ValueError, or an AssertionError at the first batch. prefetch_factor, "
        "persistent_workers and a start method need workers; prefetching cannot be disabled with "
        "workers; a sampler defines the order, so shuffle cannot be combined with it.",
        recognised="A DataLoader in the script has arguments with known values that torch rejects.",
        to_do="Pass worker arguments only with num_workers > 0, prefetch_factor of at least 1, and either "
        "shuffle or a sampler.",
        example="line 12: prefetch_factor=0 is not allowed with workers: it must be at least 1.",
    ),
    priority=SCRIPT + 10,
    evaluate=_evaluate,
)
