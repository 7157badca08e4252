# SPDX-License-Identifier: Apache-2.0
"""A process has no file descriptors left."""

from __future__ import annotations

import errno
import resource

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = r"Too many open files|received \d+ items of ancdata"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT)
    if error is None and run.has_number(errno.EMFILE):
        error = next(run.errors(), None)
    if error is None:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    evidence = (
        raised_text(error),
        f"the limit is {_words(soft)} open files per process; the hard limit is {_words(hard)}",
    )
    raise_it = (
        f"Raise the limit: `ulimit -n {_words(hard)}` before the command."
        if soft != hard
        else ("Raise the hard limit: LimitNOFILE= in systemd, or `docker run --ulimit nofile=1048576`.")
    )
    return Died(
        f"a process had no file descriptors left{error.where}",
        evidence,
        (
            "Close files that __getitem__ opens (use `with open(...)`), and open archives once per worker, not once "
            "per sample.",
            raise_it,
            'If batches have many tensors, call torch.multiprocessing.set_sharing_strategy("file_system"), which needs '
            "no descriptor per tensor but can leave files in /dev/shm.",
            "Use fewer workers or a smaller prefetch_factor: each tensor of a queued batch takes a descriptor.",
        ),
    )


def _words(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


DEATH = Death(
    page(
        "open_files_exhausted",
        "a process has too many open files",
        means="Each open file and, with torch's default sharing strategy, each tensor of a queued batch takes a file "
        "descriptor. Datasets that do not close files exhaust them after some steps.",
        recognised='The run ended with "Too many open files" (EMFILE), or with "received 0 items of ancdata", which is '
        "how the same limit appears when tensors are passed between processes.",
        to_do="Close files in the dataset; raise `ulimit -n`; use the file_system sharing strategy; queue fewer "
        "batches.",
        example="OSError: [Errno 24] Too many open files (raised at train.py:12 in __getitem__() in worker 0).",
    ),
    priority=50,
    evaluate=_evaluate,
)
