# SPDX-License-Identifier: Apache-2.0
"""All ranks read the same samples."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script = analysis.script
    if script is None or script.distributed is None or script.shards_itself:
        return
    plain = [
        call for call in script.loaders if not call.is_open and not {"sampler", "batch_sampler"} & set(call.arguments)
    ]
    if plain:
        begins = f"line {script.distributed.line}: {script.distributed.what}"
        words = f"{begins}, but the DataLoader in line {plain[0].line} has no sampler"
        yield Found("warning", (words,), about={"line": plain[0].line})


CAUSE = Cause(
    page(
        "ranks_read_the_same",
        "all ranks read the same samples",
        means="A DataLoader does not know about ranks. Without a sampler that shards the samples, each rank "
        "reads all of them, and an epoch repeats the same work on every GPU.",
        recognised="The script creates a process group or DistributedDataParallel, but nothing in it shards samples.",
        to_do="Pass sampler=DistributedSampler(dataset), and call sampler.set_epoch(epoch) before each epoch; a "
        "loader of feedline.open(...) shards automatically.",
        example="line 14: init_process_group, but the DataLoader in line 20 has no sampler.",
    ),
    priority=SCRIPT + 80,
    evaluate=_evaluate,
)
