# SPDX-License-Identifier: Apache-2.0
"""All ranks would read the same samples."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    script = case.script
    if script is None or script.distributed is None or script.shards_itself:
        return
    plain = [
        call for call in script.loaders if not call.is_open and not {"sampler", "batch_sampler"} & set(call.arguments)
    ]
    if plain:
        begins = f"line {script.distributed.line}: {script.distributed.what}"
        words = f"{begins}, and the DataLoader in line {plain[0].line} has no sampler"
        yield Found("warning", (words,), about={"line": plain[0].line})


CAUSE = Cause(
    page(
        "ranks_read_the_same",
        "all ranks would read the same samples",
        means="A DataLoader knows nothing of ranks. Without a sampler that shares samples out, each rank "
        "reads all of them, and an epoch does the same work as often as there are GPUs.",
        recognised="The script makes a process group or DistributedDataParallel, and nothing in it shares samples out.",
        to_do="sampler=DistributedSampler(dataset), and sampler.set_epoch(epoch) before each epoch; a loader "
        "of feedline.open(...) shares out by itself.",
        example="line 14: init_process_group, and the DataLoader in line 20 has no sampler.",
    ),
    turn=SCRIPT + 80,
    judge=_judge,
)
