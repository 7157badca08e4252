# SPDX-License-Identifier: Apache-2.0
"""The findings of `feedline diff`: the effects that a differing fact can have on the main metric."""

from __future__ import annotations

import sys

from ..findings import Entry, Threshold, thresholds_of

MOST = Threshold(0.5, "share of the difference that a fact must account for to explain the difference")
SOME = Threshold(
    0.2,
    "share of the difference that a fact must account for to explain part of it; smaller changes have no effect",
)

WORKLOAD, EXPLAINS, PARTLY, POSSIBLE = "other workload", "explains", "explains part", "may explain"
UNSEEN, UNKNOWN, AGAINST = "none seen", "unknown", "speaks against"
# Changes of the measurement itself come before explanations.
BY_RANK = (WORKLOAD, EXPLAINS, PARTLY, POSSIBLE, UNSEEN, UNKNOWN, AGAINST)
SEVERITIES = {WORKLOAD: "warning", EXPLAINS: "critical", PARTLY: "warning"}  # severity of the others: note

_PAGES = {
    WORKLOAD: (
        "the runs measured different work",
        "Batch size, crop, dataset or command differ, so the metrics measure different work.",
        "Compare runs in which these are equal.",
    ),
    EXPLAINS: (
        "the fact explains the difference",
        "The measurements attribute at least half of the difference to this fact.",
        "Use the same value in both runs; the difference should disappear.",
    ),
    PARTLY: (
        "the fact explains part of the difference",
        "The measurements attribute at least a fifth of the difference to this fact.",
        "Use the same value in both runs; part of the difference will remain.",
    ),
    POSSIBLE: (
        "the fact may explain the difference",
        "The stages that the fact affects took longer or were not recorded, and the direction of its effect is "
        "unknown.",
        "Run both commands with the same version, processor or file system.",
    ),
    UNSEEN: (
        "the fact had no visible effect",
        "The fact affects only stages that did not take longer.",
        "Nothing.",
    ),
    UNKNOWN: (
        "the fact's effect is unknown",
        "No rule describes the effect of the fact on loading.",
        "Do nothing, unless all other facts are equal.",
    ),
    AGAINST: (
        "the fact contradicts the difference",
        "The fact should have made the slower run faster.",
        "Look for other causes, which must account for more than the whole difference.",
    ),
}


def code_of(effect: str) -> str:
    """Returns the finding's code for an effect."""
    return effect.replace(" ", "_")


def entries() -> list[Entry]:
    """Returns the documentation pages of all effects."""
    recognised = (
        "A rate is capacity divided by work. A fact that changes the capacity accounts for its own ratio, "
        "as a logarithm; a fact that changes stages accounts for at most the additional time of those stages."
    )
    abstains = (
        "If a record lacks a group of facts, differences in these facts cannot be detected; the notes report this."
    )
    thresholds = thresholds_of(sys.modules[__name__])
    return [
        Entry(code_of(effect), "diff", title, means, recognised, to_do, abstains, thresholds=thresholds)
        for effect, (title, means, to_do) in _PAGES.items()
    ]
