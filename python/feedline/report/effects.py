# SPDX-License-Identifier: Apache-2.0
"""What a fact that differs between two runs does to the figure that counts: the findings of `feedline diff`."""

from __future__ import annotations

import sys

from ..findings import Entry, Threshold, thresholds_of

MOST = Threshold(0.5, "of the difference: a fact that gives so much explains it")
SOME = Threshold(
    0.2, "of the difference: a fact that gives so much explains a part, and stages that moved less did not"
)

WORKLOAD, EXPLAINS, PARTLY, POSSIBLE = "other workload", "explains", "explains part", "may explain"
UNSEEN, UNKNOWN, AGAINST = "none seen", "unknown", "speaks against"
# What changes the measurement itself comes before what explains it.
BY_RANK = (WORKLOAD, EXPLAINS, PARTLY, POSSIBLE, UNSEEN, UNKNOWN, AGAINST)
SEVERITIES = {WORKLOAD: "warning", EXPLAINS: "critical", PARTLY: "warning"}  # of the others: note

_PAGES = {
    WORKLOAD: (
        "the runs measured different things",
        "Batch size, crop, dataset or verb differ, so the figures are not of the same work.",
        "Compare runs in which these are equal.",
    ),
    EXPLAINS: (
        "the fact explains the difference",
        "By what was measured it gives at least half of the difference.",
        "Make it equal, and the difference should go.",
    ),
    PARTLY: (
        "the fact explains a part of the difference",
        "By what was measured it gives at least a fifth of the difference.",
        "Make it equal; something else is left.",
    ),
    POSSIBLE: (
        "the fact may explain the difference",
        "Its stages took longer, or were not seen, and no one knows which way it acts.",
        "Run both with the same version, processor or file system.",
    ),
    UNSEEN: (
        "the fact did nothing that was seen",
        "It acts on stages that took no longer, or on nothing that differs.",
        "Nothing.",
    ),
    UNKNOWN: (
        "nothing is known of the fact's effect",
        "No rule says how it acts on loading.",
        "Nothing, unless all else is equal.",
    ),
    AGAINST: (
        "the fact speaks against the difference",
        "It should have made the slower run the faster one.",
        "Look further: something else gives more than the whole difference.",
    ),
}


def code_of(effect: str) -> str:
    """The code of the finding."""
    return effect.replace(" ", "_")


def entries() -> list[Entry]:
    """The pages of all effects."""
    recognised = (
        "A rate is capacity over work. A fact that acts by capacity gives its own ratio of the figures' logarithm, one "
        "that acts on stages at most what those stages took longer."
    )
    abstains = "A record without a group of facts shows no difference there; the notes say so."
    thresholds = thresholds_of(sys.modules[__name__])
    return [
        Entry(code_of(effect), "diff", title, means, recognised, to_do, abstains, thresholds=thresholds)
        for effect, (title, means, to_do) in _PAGES.items()
    ]
