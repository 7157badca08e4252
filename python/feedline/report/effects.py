# SPDX-License-Identifier: Apache-2.0
"""The effects that a differing fact can have on the main metric: the findings of `feedline diff`."""

from __future__ import annotations

import sys

from ..findings import Entry, Threshold, thresholds_of

MOST = Threshold(0.5, "of the difference: a fact with at least this share explains the difference")
SOME = Threshold(
    0.2, "of the difference; a fact with this share explains a part, and stages that changed less had no effect"
)

WORKLOAD, EXPLAINS, PARTLY, POSSIBLE = "other workload", "explains", "explains part", "may explain"
UNSEEN, UNKNOWN, AGAINST = "none seen", "unknown", "speaks against"
# Changes of the measurement itself come before explanations.
BY_RANK = (WORKLOAD, EXPLAINS, PARTLY, POSSIBLE, UNSEEN, UNKNOWN, AGAINST)
SEVERITIES = {WORKLOAD: "warning", EXPLAINS: "critical", PARTLY: "warning"}  # severity of the others: note

_PAGES = {
    WORKLOAD: (
        "the runs measured different things",
        "Batch size, crop, dataset or command differ, so the figures measure different work.",
        "Compare runs in which these are equal.",
    ),
    EXPLAINS: (
        "the fact explains the difference",
        "The measurements attribute at least half of the difference to it.",
        "Use the same value in both runs; the difference should disappear.",
    ),
    PARTLY: (
        "the fact explains a part of the difference",
        "The measurements attribute at least a fifth of the difference to it.",
        "Use the same value in both runs; part of the difference will remain.",
    ),
    POSSIBLE: (
        "the fact may explain the difference",
        "The fact's stages took longer or were not recorded, and the direction of its effect is unknown.",
        "Run both with the same version, processor or file system.",
    ),
    UNSEEN: (
        "the fact had no visible effect",
        "The fact affects only stages that took no longer.",
        "Nothing.",
    ),
    UNKNOWN: (
        "the fact's effect is unknown",
        "No rule describes the fact's effect on loading.",
        "Nothing, unless all other facts are equal.",
    ),
    AGAINST: (
        "the fact contradicts the difference",
        "The fact should have made the slower run faster.",
        "Look further: something else accounts for more than the whole difference.",
    ),
}


def code_of(effect: str) -> str:
    """The code of the finding."""
    return effect.replace(" ", "_")


def entries() -> list[Entry]:
    """The pages of all effects."""
    recognised = (
        "A rate is capacity over work. A fact that changes capacity accounts for its own ratio, as a logarithm; one "
        "that changes stages for at most the time that those stages took longer."
    )
    abstains = "A record without a group of facts shows no difference there; the notes say so."
    thresholds = thresholds_of(sys.modules[__name__])
    return [
        Entry(code_of(effect), "diff", title, means, recognised, to_do, abstains, thresholds=thresholds)
        for effect, (title, means, to_do) in _PAGES.items()
    ]
