# SPDX-License-Identifier: Apache-2.0
"""Thresholds shared by the rules of several causes."""

from feedline.findings import Threshold

NAMED = Threshold(0.05, "of the time: a smaller share does not justify a change")
IDLE_LOADER = Threshold(0.10, "of the time: if the loop waits less for its loader, the loader is not the problem")
LARGE = Threshold(0.3, "of the time: above this share, a busy machine cannot be the only cause")
CROWDED = Threshold(3.0, "workers per usable CPU")
EXPLAINED = Threshold(0.3, "of the passing time: share of pickling and unpickling that explains it")
UNCERTAIN = Threshold(0.85, "maximum confidence if a signal is missing")
DOUBTFUL = Threshold(0.6, "maximum confidence if the measurement is in doubt")
MUCH_KERNEL = Threshold(0.3, "of the CPU time, in the kernel: more than reading and passing batches need")
FEW_FAULTS = Threshold(20.0, "pages per second: normal while programs start, not a sign of too little memory")
HELPS = Threshold(1.15, "times as many batches, measured with more workers: below this, they do not help")
SAME = Threshold(0.9, "of the rate: a measured rate above this counts as equal")
NO_SHORTER = Threshold(0.95, "of a time: a change that leaves more than this is not an improvement")
