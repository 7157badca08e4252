# SPDX-License-Identifier: Apache-2.0
"""Counts the cases and compares them with baseline.json; `bench/gate/run` builds the program and calls this.

Exit status 0: no case is worse, or the comparison was skipped (a message states the reason); 1: a case is worse; 3: a
case cannot be counted.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

import callgrind
import comparison

BASELINE = Path(__file__).with_name("baseline.json")


def output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def environment_of(program: Path) -> dict[str, str]:
    """Returns everything that affects counts except for this code."""
    machine = {"valgrind": output_of(["valgrind", "--version"]), "machine": os.uname().machine}
    return {**json.loads(output_of([str(program), "--environment"])), **machine}


def count_all(program: Path, wanted: list[str]) -> dict[str, dict[str, int]]:
    known = output_of([str(program), "--list"]).split()
    if unknown := set(wanted) - set(known):
        raise RuntimeError(f"no case {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    cases = wanted or known
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(cases, pool.map(lambda case: callgrind.count(program, case), cases), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/gate/run", description="compares instruction counts of fixed work with a baseline"
    )
    parser.add_argument("--program", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--update", action="store_true", help="write the baseline; give the reason in the commit message"
    )
    parser.add_argument("--force", action="store_true", help="compare even if the environment differs")
    parser.add_argument("case", nargs="*", help="only these cases")
    options = parser.parse_args()
    if options.update and options.case:
        parser.error("--update must not be combined with cases: the baseline must be from one environment")

    environment = environment_of(options.program)
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"environment": {}, "cases": {}}
    differences = comparison.differences(baseline["environment"], environment)
    if differences and not options.update and not options.force:
        print("gate: SKIPPED, the baseline is from another environment (--force compares anyway):")
        print("\n".join(f"  {line}" for line in differences))
        return 0
    counts = count_all(options.program, options.case)
    if options.case:
        baseline["cases"] = {case: n for case, n in baseline["cases"].items() if case in options.case}
    verdicts = comparison.compare(baseline, counts)
    print(comparison.table(verdicts))
    if options.update:
        BASELINE.write_text(json.dumps(comparison.to_baseline(environment, counts), indent=1) + "\n")
        print(f"gate: wrote {BASELINE.name}; give the reason in the commit message")
        return 0
    worse = comparison.fails(verdicts)
    if any(verdict.word in ("better", "added") for verdict in verdicts):
        print("gate: run bench/gate/run --update to store the gain")
    print(f"gate: {'FAILED' if worse else 'passed'} (within {100 * comparison.TOLERANCE:g} %)")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"gate: {error}", file=sys.stderr)
        sys.exit(3)
