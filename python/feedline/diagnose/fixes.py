# SPDX-License-Identifier: Apache-2.0
"""What to change, in one or two sentences per cause."""

from __future__ import annotations

import math
import re

from feedline.diagnose.experiments.intervals import GAIN
from feedline.diagnose.model import prediction
from feedline.diagnose.summary.figures import DROP_IN, Summary

_IN_ORDER_SINCE = (2, 6)  # of torch
_FIXES = {
    "compute_bound": "Nothing to do in the loader: the loop's own work sets the pace.",
    "storage_latency": "Have more reads under way: more workers, or Feedline's loader, which reads ahead in threads; "
    "or pack the samples into shards so that one read brings many.",
    "storage_bandwidth": "Read fewer bytes: smaller files, a local copy on a faster disk, or a cache of the hot part.",
    "small_files": "Pack the files into shards (WebDataset tars): one large read instead of thousands of small ones.",
    "blocked_outside_files": "Find out what it waits for there: no disk, shard or cache changes it.",
    "cpu_decode": "Decode less: `from feedline import DataLoader` decodes only the needed region natively; or store "
    "smaller images.",
    "cpu_transform": "Move work out of the data set's Python: native operations (feedline.DataLoader lowers "
    "torchvision's), vectorised NumPy, or prepare it once offline.",
    "python_main_process": "Or `from feedline import DataLoader`: data sets that it knows are read by native threads.",
    "collate": "Collate less in Python: return equal-shaped tensors or arrays, and stack them once.",
    "worker_handover": "Send fewer Python objects: tensors or NumPy arrays instead of lists, dicts and strings per "
    "sample; feedline.DataLoader hands arrays over without pickling.",
    "shared_memory_limit": "Enlarge /dev/shm (docker run --shm-size), or fewer workers and a smaller prefetch_factor.",
    "cpu_quota": "Raise the container's CPU limit, or use no more workers than the quota has CPUs.",
    "memory_pressure": "Hold less: fewer workers, prefetch_factor=2, data shared between workers (memory-mapped).",
    "straggling_sample": "Find out why that sample is slow (size, damage, network). Feedline's own loader divides "
    "samples, not batches, among threads.",
    "straggling_rank": "Give every rank the same work: look at that rank's storage, CPUs and share of the samples.",
    "epoch_border": "Begin the next epoch's batches before this one ends: feedline.DataLoader(prefetch_epochs=True, "
    "persistent_workers=True); or make epochs longer.",
    "loop_synchronisation": "Keep values as tensors and read them every some steps: sum on the device, one .item() "
    "per log line.",
    "unpinned_copy": "pin_memory=True of the loader and .to(device, non_blocking=True) together.",
    "blocking_copy": ".to(device, non_blocking=True), under torch.cuda.stream(...) with a stream of its own one batch "
    "ahead.",
    "host_to_device": "Copy the next batch on a stream of its own, torch.cuda.Stream(), while this one computes; or "
    "send uint8 and convert on the GPU.",
    "precision_not_reduced": "torch.autocast with bfloat16 (float16 and GradScaler before Ampere), or "
    "torch.set_float32_matmul_precision('high').",
    "nested_pool": "Let the DataLoader's workers be the only pool: raise num_workers, and do the work in the worker.",
}

# Where Feedline's threads make the batches already.
_OWN_FIXES = {
    "storage_latency": "Reads are ahead of the threads already, and the storage gives no more: keep what was read near "
    'with .cache(PATH) or .cache("memory"), or pack the files into shards (feedline pack).',
    "storage_bandwidth": 'Read fewer bytes: .cache(PATH) on a faster disk or .cache("memory"), or smaller files.',
    "small_files": "feedline pack SOURCE 'shards/{:06d}.tar': one large read instead of thousands of small ones.",
    "cpu_decode": 'Decode once: .cache("memory") or .cache(PATH) behind the resize, or feedline pack --raw SIZE; or '
    'decode less: .decode(fidelity="fast"), smaller images.',
    "cpu_transform": 'Transform less per epoch: what is not random goes in front of .cache(...), and dtype="uint8" '
    "leaves normalising to the device.",
    "collate": "Copy less: a smaller dtype, or shorter rows; samples of like length together (buckets=).",
    "straggling_sample": "in_order=False lets finished batches pass; find out why that sample is slow (size, damage, "
    "network).",
    "epoch_border": "Leave epochs at its default, or give their number (epochs=N): the next one's first batches are "
    "then filled while this one ends.",
    "memory_pressure": "Hold less: a smaller memory_budget, and a budget for .cache(...).",
    "cpu_quota": "Raise the container's CPU limit; num_workers up to the quota's CPUs is all that it allows.",
}
# By what most of the waiting outside of files is for: probe/system_calls.py.
_OUTSIDE = {
    "sleep": "Take the sleep out, or wait for what it stands for: no disk, shard or cache changes it.",
    "lock": "Hold that lock for less, or give each worker one of its own: workers that share it wait for each other.",
    "network": "Ask for more at a time, or keep what was fetched in files near; no packing of local files changes it.",
    "events": "Ask for more at a time, or keep what was fetched in files near; no packing of local files changes it.",
    "process": "Ask the other process for more at a time, or do its work in the worker.",
}
_OWN_COPIES = {  # batches of Feedline's threads are in pageable memory
    "unpinned_copy": ".pin_memory() of a batch's tensors in a thread of your own, then .to(device, non_blocking=True).",
}
_NOT_AHEAD = (
    "Have more reads under way: more memory_budget, so that they are made ahead of the threads, or more threads; or "
    "pack the files into shards (feedline pack)."
)
_LOWERED_FIXES = {
    "storage_latency": "Have more reads under way: more threads, or feedline.open(...).loader(...), which reads ahead; "
    "or pack the files into shards (feedline pack).",
    "cpu_decode": 'Decode once: feedline.open(SOURCE)...cache("memory").loader(...), or feedline pack --raw SIZE; or '
    "store smaller images.",
    "cpu_transform": 'Transform less per epoch: feedline.open(SOURCE)...cache("memory") behind what is not random.',
    "collate": "Copy less: a smaller dtype, or shorter rows.",
}


def workers_of(cause: str, summary: Summary) -> int | None:
    """The number of workers that is the change to make; None: another change is."""
    if cause == "python_main_process" and summary.workers > 0:
        return None
    if cause in ("python_main_process", "too_few_workers"):
        return prediction.advised_workers(summary, range(summary.workers + 1, 65))
    if cause == "worker_handover":
        return prediction.fewer_workers(summary)
    if cause in ("storage_latency", "blocked_outside_files"):
        if cause == "blocked_outside_files" and _waits_outside_for(summary) == "lock":
            return None  # it may be the same one
        return prediction.advised_workers(summary, prediction.within_reach(summary))
    if cause == "oversubscribed":
        fewer = max(int(summary.host.cpus), 1)
        return None if _is_slower(summary, fewer) else fewer
    return None


def _is_slower(summary: Summary, workers: int) -> bool:
    """Whether the present number was measured to give more than this one."""
    both = workers in summary.rungs and summary.workers in summary.rungs
    return both and summary.rungs[workers] < summary.rungs[summary.workers] / GAIN


def fix_of(cause: str, summary: Summary) -> str:
    workers = workers_of(cause, summary)
    if cause == "python_main_process" and workers is None and summary.workers == 0:
        known = "not shown to gain" if prediction.some_are_better(summary) else "measured to gain nothing"
        own = f"Make a batch with less work in its process: workers were {known}."
        return f"{own} {_sentence(cause, summary)}".rstrip()
    if cause == "python_main_process" and workers is None:
        return "Draw the order before the epoch begins, all at once (a list of batches), or draw it with less work."
    if cause == "oversubscribed" and workers is None:
        return "Leave their number: fewer were measured to make fewer batches. More CPUs are what they want."
    if cause == "oversubscribed":
        return f"num_workers={workers}: as many workers as there are CPUs to run them."
    if workers is not None:
        return f"num_workers={workers}. {_sentence(cause, summary)}".rstrip()
    if cause == "worker_startup":
        if summary.loader.get("persistent_workers"):
            return "Make the start lighter: import less at the script's top, open files and models at first use."
        return "persistent_workers=True keeps workers from epoch to epoch; import less at the script's top."
    return _sentence(cause, summary)


def _waits_outside_for(summary: Summary) -> str:
    return summary.making.waited_for.outside if summary.making.waited_for is not None else ""


def _sentence(cause: str, summary: Summary) -> str:
    if cause == "blocked_outside_files":
        return _OUTSIDE.get(_waits_outside_for(summary), _FIXES[cause])
    if summary.native:
        lowered = summary.loader.get("class") != "feedline.Loader"
        if cause == "storage_latency" and not lowered and not summary.making.read_ahead_ms:
            return _NOT_AHEAD
        own = {**_OWN_FIXES, **_LOWERED_FIXES} if lowered else {**_OWN_FIXES, **_OWN_COPIES}
        return own.get(cause, _FIXES.get(cause, ""))
    if cause == "python_main_process" and summary.tried.get(DROP_IN, (0.0, 0.0, math.inf))[2] <= GAIN:
        return ""  # measured: it gains nothing
    if cause == "straggling_sample" and _takes_in_order(summary):
        return f"{_FIXES[cause]} in_order=False lets finished batches pass."
    return _FIXES.get(cause, "")


def _takes_in_order(summary: Summary) -> bool:
    """Whether the script's torch has a DataLoader with that argument."""
    version = re.match(r"(\d+)\.(\d+)", str(summary.loader.get("torch") or ""))
    return version is None or tuple(map(int, version.groups())) >= _IN_ORDER_SINCE
