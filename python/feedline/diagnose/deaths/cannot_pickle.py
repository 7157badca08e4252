# SPDX-License-Identifier: Apache-2.0
"""The dataset or a function of the loader cannot be sent to workers."""

from __future__ import annotations

from feedline.diagnose.rules.death import DeadRun, Death, Died, page, raised_text

_TEXT = (
    r"can('t|not) pickle|Can't get local object|Can't get attribute '[^']*' on <module|not the same object as|"
    r"object is not picklable"
)


def _evaluate(run: DeadRun) -> Died | None:
    error = run.error(_TEXT, "PicklingError", "UnpicklingError")
    if error is None:
        return None
    method = error.settings.get("start_method") or run.setting("start_method")
    known = (f"workers are started with {method}, so the dataset is pickled",) if method not in (None, "fork") else ()
    unpickled = "Can't get attribute" in error.message
    first = (
        "Move the class or function into a module that workers can import, instead of a notebook cell, -c or stdin."
        if unpickled
        else "Replace lambdas and nested functions with module-level functions or functools.partial."
    )
    return Died(
        f"the loader's arguments cannot be sent to its workers{error.where}",
        (raised_text(error), *known),
        (
            first,
            "Open files, locks, connections and generators in worker_init_fn or at the first sample, not in "
            "__init__: they cannot be pickled.",
            'If neither is possible, set multiprocessing_context="fork", and start no threads or GPU work beforehand.',
        ),
    )


DEATH = Death(
    page(
        "cannot_pickle",
        "the dataset or a function cannot be sent to workers",
        means="With spawn and forkserver, the dataset, collate_fn and worker_init_fn are pickled. Lambdas, nested "
        "functions, open files, locks and connections cannot be pickled. Python 3.14 uses forkserver by default.",
        recognised="The run ended with a pickle error, in the script or in a worker that unpickles its arguments.",
        to_do="Use functions at module level, and open resources in the worker.",
        example="AttributeError: Can't pickle local object 'main.<locals>.<lambda>'.",
    ),
    priority=120,
    evaluate=_evaluate,
)
