# SPDX-License-Identifier: Apache-2.0
"""Thresholds shared by the rules of several causes."""

from feedline.findings import Threshold

NAMED = Threshold(0.05, "minimum share of the time that justifies a change")
IDLE_LOADER = Threshold(0.10, "share of the time waiting for the loader below which the loader is not a problem")
LARGE = Threshold(0.3, "share of the time above which a busy machine cannot be the only cause")
CROWDED = Threshold(3.0, "workers per usable CPU")
EXPLAINED = Threshold(
    0.3, "minimum fraction of the hand-over time that pickling and unpickling must take to explain it"
)
UNCERTAIN = Threshold(0.85, "maximum confidence if a signal is missing")
DOUBTFUL = Threshold(0.6, "maximum confidence if the measurement is in doubt")
MUCH_KERNEL = Threshold(0.3, "fraction of CPU time spent in the kernel that reading and passing batches does not need")
FEW_FAULTS = Threshold(20.0, "pages per second; normal while programs start, even if memory is not short")
HELPS = Threshold(1.15, "minimum ratio of the measured rates for which more workers count as helpful")
SAME = Threshold(0.9, "fraction of the rate above which a measured rate counts as equal")
NO_SHORTER = Threshold(0.95, "fraction of the original time above which a change is not an improvement")
