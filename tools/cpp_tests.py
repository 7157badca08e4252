#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the C++ test programs of a build folder, several at a time, and prints how many tests passed.

    tools/cpp_tests.py build/asan                      all programs feedline_*_tests
    tools/cpp_tests.py build/tsan --only storage cache     only the programs of two folders
    tools/cpp_tests.py build/asan --filter PngDecoder      tests with a full name that matches a regular expression

A failed test is run once more, alone. If it then passes, it still counts as failed unless tests/flaky.txt lists it.
A program that crashes or hangs is not run again: sanitizer reports are never flakes.

Exit status 0: all passed; 1: a test failed, or none ran.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import flaky

# The slowest program takes two minutes under a sanitizer on two idle CPUs.
_LIMIT_S = 1200
# If more tests fail, they are not run again.
_MOST_AGAIN = 5


@dataclass
class Outcome:
    program: str
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    broken: str = ""  # how the program was stopped; empty if it exited itself
    output: str = ""
    seconds: float = 0.0


def run(program: Path, tests: list[str] | None = None) -> Outcome:
    """Runs a program's tests, all of them if none are named."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, flags = Path(folder) / "report.json", Path(folder) / "flags"
        flags.write_text(f"--gtest_filter={':'.join(tests)}\n" if tests else "")
        command = [program, f"--gtest_output=json:{report}", f"--gtest_flagfile={flags}"]
        done = Outcome(program.name)
        with tempfile.TemporaryFile() as output:
            try:
                status = subprocess.run(
                    command,
                    cwd=program.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_LIMIT_S,
                ).returncode
                ended = f"exit status {status}"
            except subprocess.TimeoutExpired:
                status, ended = -1, f"not finished after {_LIMIT_S} s"
            output.seek(0)
            done.output = output.read().decode(errors="replace")
        count(report, done)
    if status not in (0, 1) or (status == 1 and not done.failed):
        done.broken = f"{ended} in {last_begun(done.output)}"
    done.seconds = time.monotonic() - begun
    return done


def count(report: Path, done: Outcome) -> None:
    if not report.exists():
        return
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("status") != "RUN":
                continue
            if test.get("failures"):
                done.failed.append(f"{suite['name']}.{test['name']}")
            elif test.get("result") == "SKIPPED":
                done.skipped += 1
            else:
                done.passed += 1


def last_begun(output: str) -> str:
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return begun[-1] if begun else "no test"


def tests_of(program: Path, expression: str) -> list[str]:
    """Returns the names that match, without the comments about parameters."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names, suite = [], ""
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        elif re.search(expression, suite + name.strip()):
            names.append(suite + name.strip())
    return names


def again(programs: dict[str, Path], outcomes: list[Outcome]) -> list[str]:
    """Runs failed tests once more, alone, and returns those that now pass. `failed` retains those that failed twice."""
    if sum(len(done.failed) for done in outcomes) > _MOST_AGAIN:
        return []
    passed = []
    for done in outcomes:
        for test in list(done.failed):
            second = run(programs[done.program], [test])
            if not second.failed and not second.broken:
                done.failed.remove(test)
                done.passed += 1
                passed.append(f"{done.program} {test}")
    return passed


def programs_in(tree: Path, only: list[str]) -> dict[str, Path]:
    """Sorts programs by size, largest first: these run longest, while the others run in parallel."""
    wanted = {f"feedline_{name}_tests" for name in only}
    found = [path for path in tree.rglob("feedline_*_tests") if path.is_file() and os.access(path, os.X_OK)]
    found = [path for path in found if not wanted or path.name in wanted]
    return {path.name: path for path in sorted(found, key=lambda path: -path.stat().st_size)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    programs = programs_in(arguments.tree.resolve(), arguments.only)
    chosen: dict[str, list[str] | None] = dict.fromkeys(programs)
    if arguments.filter:
        chosen = {name: tests for name in programs if (tests := tests_of(programs[name], arguments.filter))}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda name: run(programs[name], chosen[name]), chosen))
    for done in outcomes:
        counts = f"{done.passed} passed, {len(done.failed)} failed, {done.skipped} skipped"
        print(f"{done.program}: {counts} in {done.seconds:.0f} s")
        if done.broken or done.failed:
            print(done.output)
    unsteady = again(programs, outcomes)
    unlisted = flaky.report(unsteady)
    failed = [f"{done.program} {test}" for done in outcomes for test in done.failed]
    failed += [f"{done.program}: {done.broken}" for done in outcomes if done.broken]
    for name in failed:
        print(f"FAILED {name}")
    passed, skipped = (sum(getattr(done, kind) for done in outcomes) for kind in ("passed", "skipped"))
    print(f"{passed} passed, {len(failed) + len(unlisted)} failed, {skipped} skipped")
    if not passed and not failed:
        print(f"no test ran in {arguments.tree}")
        return 1
    return 1 if failed or unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
