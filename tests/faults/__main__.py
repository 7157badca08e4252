# SPDX-License-Identifier: Apache-2.0
"""Fault campaigns: failing calls, killed processes, and little memory.

    tools/faults calls [--job TEXT] [--stride N]   every writing call of every job fails once
    tools/faults kills [--count N]                 SIGKILL at random times
    tools/faults memory                            every job with less and less memory
    tools/faults soak                              loaders for a long time: memory, descriptors, threads and /dev/shm
    tools/faults remote [--count N]                faults of networks and servers (tests/python/remote/campaign.py)

Each takes --for MINUTES and --seed N, and appends its result to tests/faults/record.jsonl with --record.
Exit status 1: something was wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("campaign", choices=("calls", "kills", "memory", "soak", "remote"))
    parser.add_argument("--for", dest="minutes", type=float, default=60.0, metavar="MINUTES")
    parser.add_argument("--job", default="", metavar="TEXT", help="only jobs whose names contain this")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="only every N-th fault or limit")
    parser.add_argument("--count", type=int, metavar="N", help="number of kills (1,000) or faults (10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="append the result to tests/faults/record.jsonl")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # the folder, in the process that forks
    options = parser.parse_args()
    if options.inside is not None:
        from . import campaigns

        return campaigns.run(options)
    from . import children

    with tempfile.TemporaryDirectory(prefix="feedline-faults-") as folder:
        environment = children.environment(Path(folder))
        tests = ("", "python", "python/remote", "python/proofs")
        paths = [*(str(TESTS / name) for name in tests), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        (Path(folder) / "root" / "tmp").mkdir(parents=True)
        os.chdir(folder)
        arguments = [sys.executable, "-m", "faults", *sys.argv[1:], "--inside", folder]
        return os.spawnve(os.P_WAIT, sys.executable, arguments, environment)


if __name__ == "__main__":
    sys.exit(main())
