# SPDX-License-Identifier: Apache-2.0
"""Shows the messages that differ from the stored table; with --update, stores them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from messages import refusals  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/python/messages", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the table")
    parser.add_argument("subject", nargs="*", help="only these subjects")
    given = parser.parse_args()
    changed = 0
    with tempfile.TemporaryDirectory() as root, refusals.prepared(Path(root).resolve()) as samples:
        for subject, cases in refusals.all_cases().items():
            if given.subject and subject not in given.subject:
                continue
            before, now = refusals.stored(subject), {}
            for name, case in cases.items():
                try:
                    now[name] = refusals.run(case, samples)
                except AssertionError as error:
                    print(f"{subject}: {name}: {error}")
                    changed += 1
            for name in {**before, **now}:
                if before.get(name) != now.get(name):
                    changed += 1
                    print(f"{subject}: {name}\n  - {before.get(name)}\n  + {now.get(name)}")
            if given.update:
                refusals.store(subject, now)
    return 1 if changed and not given.update else 0


if __name__ == "__main__":
    sys.exit(main())
