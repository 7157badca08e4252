# SPDX-License-Identifier: Apache-2.0
"""Thresholds shared by the rules of several causes."""

from feedline.findings import Threshold

NAMED = Threshold(0.05, "of the time: a smaller share does not justify a change")
IDLE_LOADER = Threshold(0.10, "of the time: if the loop waits less for its loader, the loader is not the problem")
LARGE = Threshold(0.3, "of the time: a busy machine alone does not cause this share")
CROWDED = Threshold(3.0, "workers per usable CPU")
EXPLAINED = Threshold(0.3, "of a hand-over's time: CPU time of packing and unpacking that explains it")
UNCERTAIN = Threshold(0.85, "maximum confidence if a signal is missing")
DOUBTFUL = Threshold(0.6, "maximum confidence if the measurement itself is in doubt")
MUCH_KERNEL = Threshold(0.3, "of the CPU time, in the kernel: more than reading and handing over need")
FEW_FAULTS = Threshold(20.0, "pages per second: normal when programs start, not a sign of too little memory")
HELPS = Threshold(1.15, "times the batches, measured with more workers: below this, they do not help")
SAME = Threshold(0.9, "of the rate: a measured rate above this counts as equal")
NO_SHORTER = Threshold(0.95, "of a time: a change that leaves more is not an improvement")
