# SPDX-License-Identifier: Apache-2.0
"""python -m api_fuzz [SEEDS | --seed N | --case JSON | --minutes M] [--only PATTERN]: random use of the public API.

Exit status 0: every case ran or was refused by a ConfigError. 1: a crash, a hang, an undocumented exception, or rows
that are lost, repeated or wrong; the seed and a script with the smallest case that fails in the same way are printed.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from . import case as cases
from . import sources
from .runner import PROCESSES, Failure, Runner
from .smallest import smallest


def _drawn(first: int, only: str) -> Iterator[cases.Case]:
    """The cases of all seeds whose text has the pattern."""
    return (one for one in map(cases.drawn, itertools.count(first)) if re.search(only, one.as_text()))


def _cases(given: argparse.Namespace) -> Iterator[cases.Case]:
    if given.case is not None:
        yield given.case
    elif given.seed is not None:
        yield cases.drawn(given.seed)
    elif given.minutes is not None:
        end = time.monotonic() + 60 * given.minutes
        yield from itertools.takewhile(lambda _: time.monotonic() < end, _drawn(given.first, given.only))
    else:
        yield from itertools.islice(_drawn(given.first, given.only), given.seeds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/check api", description=__doc__.partition(":")[2].partition(".")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=200, help="number of seeds (200)")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--case", type=cases.from_text, help="only this case, as printed in a report")
    parser.add_argument("--minutes", type=float, help="as many seeds as fit")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument(
        "--only", default="", help="only cases whose text has this regular expression: remote|coco|meshes"
    )
    parser.add_argument("--processes", type=int, default=PROCESSES)
    given = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    failures: list[tuple[cases.Case, Failure]] = []
    drawn, lock, start = _cases(given), threading.Lock(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="feedline_api_") as folder:
        root = Path(folder)
        sources.make(root)

        def work() -> None:
            with Runner(root) as runner:
                while True:
                    with lock:
                        one = next(drawn, None)
                    if one is None:
                        return
                    result = runner.run(one)
                    counts[result if isinstance(result, str) else result.verdict] += 1
                    if isinstance(result, Failure):
                        print(f"seed {one.seed}: {result.verdict}", flush=True)
                        failures.append((one, result))

        threads = [threading.Thread(target=work) for _ in range(given.processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - start  # without the search for smaller cases
        for one, failure in failures[:10]:
            _report(one, failure, root)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    print(f"api: {counts.total()} seeds in {seconds:.0f} s: {summary}; {len(failures)} failures")
    return 1 if failures else 0


def _report(one: cases.Case, failure: Failure, root: Path) -> None:
    print(f"\n== seed {one.seed}: {failure.verdict}: {failure.detail.strip()[-4000:]}")
    with Runner(root) as runner:
        least, again = smallest(one, failure, runner)
    print(
        "-- the smallest case that was found" if again else "-- it does not fail again when run alone; the whole case"
    )
    print(_SCRIPT.format(least.as_text()))


_SCRIPT = """# with PYTHONPATH=tests:tests/python
import tempfile
from pathlib import Path
from api_fuzz import case, sources

if __name__ == "__main__":
    root = Path(tempfile.mkdtemp())
    sources.make(root)
    print(case.run(case.from_text({!r}), root))"""


if __name__ == "__main__":
    sys.exit(main())
