# SPDX-License-Identifier: Apache-2.0
"""The last batch of a distributed run is smaller than the others."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...script.facts import LoaderCall


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    if script is None or script.distributed is None:
        return
    for call in script.loaders:
        if _is_for_training(call) and call.get("drop_last") is False and call.get("batch_sampler") is None:
            yield Found("note", (f"line {call.line}: a DataLoader without drop_last",), about={"line": call.line})


def _is_for_training(call: LoaderCall) -> bool:
    """Whether the loader shuffles or has a sampler, as loaders for evaluation rarely do."""
    return call.get("shuffle") is True or call.arguments.get("sampler") is not None


CAUSE = Cause(
    page(
        "drop_last_missing",
        "the last batch of a distributed run is smaller than the others",
        means="Without drop_last, each rank's last batch has the remaining samples. Gradients are averaged over ranks "
        "with equal weight, so these samples count more; batch normalisation may get a single sample, and compiled "
        "models and CUDA graphs see another shape.",
        recognised="The script uses DistributedDataParallel or init_process_group, and a DataLoader that shuffles or "
        "has a sampler does not set drop_last.",
        to_do="Set drop_last=True for training, and keep drop_last=False for evaluation.",
        example="line 20: a DataLoader without drop_last.",
    ),
    priority=SCRIPT + 130,
    evaluate=_evaluate,
)
