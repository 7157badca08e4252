# SPDX-License-Identifier: Apache-2.0
"""No if __name__ == '__main__' around the loading."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page
from ..starting import method_of


def _judge(case: Case) -> Iterator[Found]:
    script, method = case.script, method_of(case)
    if script is None or script.unguarded is None or not script.most_workers:
        return
    words = f"line {script.unguarded} begins to load outside the guard, and workers start by {method}"
    yield Found("note" if method == "fork" else "critical", (words,), about={"line": script.unguarded})


CAUSE = Cause(
    page(
        "main_guard",
        "no if __name__ == '__main__' around the loading",
        means="With spawn and forkserver each worker imports the script again. What stands outside the guard "
        "runs once more in each: RuntimeError: An attempt has been made to start a new process before "
        "the current process has finished its bootstrapping phase.",
        recognised="The script begins to loop over a loader with workers outside the guard: critical where workers "
        "are not forked, and a note where they are, as on Linux before Python 3.14.",
        to_do="Put what runs into a function main(), and call it under if __name__ == '__main__'.",
        example="line 30 begins to load outside the guard, and workers start by spawn.",
    ),
    turn=SCRIPT + 50,
    judge=_judge,
)
