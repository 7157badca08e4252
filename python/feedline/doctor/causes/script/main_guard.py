# SPDX-License-Identifier: Apache-2.0
"""Loading is not guarded by if __name__ == '__main__'."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page
from ...start_method import method_of


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    script, method = analysis.script, method_of(analysis)
    if script is None or script.unguarded is None or not script.most_workers:
        return
    words = f"line {script.unguarded} starts loading outside the guard, and workers start with {method}"
    yield Found("note" if method == "fork" else "critical", (words,), about={"line": script.unguarded})


CAUSE = Cause(
    page(
        "main_guard",
        "loading is not guarded by if __name__ == '__main__'",
        means="With spawn and forkserver, each worker imports the script again. Code outside the guard runs again in "
        "each worker, which raises RuntimeError: An attempt has been made to start a new process before the "
        "current process has finished its bootstrapping phase.",
        recognised="The script starts a loop over a loader with workers outside the guard: critical if workers "
        "are not forked, otherwise a note, as on Linux before Python 3.14.",
        to_do="Move the code into a function main(), and call it under if __name__ == '__main__'.",
        example="line 30 starts loading outside the guard, and workers start with spawn.",
    ),
    priority=SCRIPT + 50,
    evaluate=_evaluate,
)
