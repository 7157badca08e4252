# SPDX-License-Identifier: Apache-2.0
"""Numbers that the rules of several causes compare with."""

from feedline.findings import Threshold

NAMED = Threshold(0.05, "of the time: a smaller share is no cause worth a change")
IDLE_LOADER = Threshold(0.10, "of the time: where the loop waits less for its loader, the loader is not the problem")
LARGE = Threshold(0.3, "of the time: a share that a busy machine does not make by itself")
CROWDED = Threshold(3.0, "workers per usable CPU")
EXPLAINED = Threshold(0.3, "of a hand-over's time: CPU of packing and unpacking that explains it")
UNCERTAIN = Threshold(0.85, "the most that a confidence can be where a signal is missing")
DOUBTFUL = Threshold(0.6, "the most that a confidence can be where the measurement itself is in doubt")
MUCH_KERNEL = Threshold(0.3, "of the CPU, in the kernel: more than reading and handing over take")
FEW_FAULTS = Threshold(20.0, "pages per second: of programs that start, and not of one that has too little memory")
HELPS = Threshold(1.15, "times the batches, measured with more workers: below, they do not help")
SAME = Threshold(0.9, "of the rate: what is measured so near to it is as fast")
NO_SHORTER = Threshold(0.95, "of a time: a change that leaves more of it is none")
