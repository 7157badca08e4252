# SPDX-License-Identifier: Apache-2.0
"""Samples were skipped or replaced."""

from ...findings import Entry
from ..rules import LOADERS, Alarm, Occurrences, Seen


def _evaluate(seen: Seen) -> Occurrences:
    for at, (name, loader, _, _) in enumerate(seen.now.loaders):
        if loader.bad_samples:
            yield at, False, f"{name}: {loader.bad_samples:,.0f} bad samples; see loader.errors"


ALARM = Alarm(
    Entry(
        code="bad_samples",
        verb="top",
        title="samples could not be read",
        means="The loader's `on_error` setting lets it continue without these samples.",
        recognised="At least one bad sample was counted (a note).",
        to_do="`loader.errors` has the latest errors, with shard, key and stage; `feedline inspect` checks all "
        "samples.",
        example="pid 13075, loader 0: 3 bad samples; see loader.errors",
    ),
    priority=LOADERS + 20,
    evaluate=_evaluate,
)
