# SPDX-License-Identifier: Apache-2.0
"""No further process or thread can be started."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = r"can't start new thread|Resource temporarily unavailable|pthread_create|Cannot fork"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT, "BlockingIOError")
    if error is None:
        return None
    return Died(
        f"no further process or thread could be started{error.where}",
        (raised_text(error),),
        (
            "Limit threads per process: OMP_NUM_THREADS=1 and torch.set_num_threads(1) in workers, and "
            "cv2.setNumThreads(0).",
            "Use fewer workers.",
            "Raise the limit: `ulimit -u`, or pids.max of the container (`docker run --pids-limit`).",
        ),
    )


DEATH = Death(
    page(
        "process_limit",
        "no further process or thread can be started",
        means="The user's limit (`ulimit -u`) or the container's limit (pids.max) counts threads too.",
        recognised="The run ended with an error when it started a thread or process (EAGAIN).",
        to_do="Use fewer threads and workers, or raise the limit.",
        example="RuntimeError: can't start new thread.",
    ),
    priority=130,
    evaluate=_evaluate,
)
