# SPDX-License-Identifier: Apache-2.0
"""The script starts workers with spawn or forkserver without a main guard."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page

_TEXT = r"before the\s+current process has finished its bootstrapping phase"


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT)
    if error is None:
        return None
    return Died(
        'the script starts workers outside `if __name__ == "__main__":`',
        (f"a new process imported the script, which started workers again{error.where}",),
        ('Move the code that creates and iterates over the loader below `if __name__ == "__main__":`.',),
    )


DEATH = Death(
    page(
        "main_guard_missing",
        "workers start the script again, because it has no main guard",
        means="With spawn and forkserver, each worker imports the script. Without a guard, the import creates a loader "
        "and starts workers itself, which multiprocessing refuses.",
        recognised="A process of the run raised multiprocessing's RuntimeError about its bootstrapping phase.",
        to_do='Move the script\'s code below `if __name__ == "__main__":`.',
        example="a new process imported the script, which started workers again.",
    ),
    priority=10,
    evaluate=_evaluate,
)
