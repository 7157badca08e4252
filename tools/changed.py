#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what changed since tools/nightly passed, because CI checks only changes.

The commit and result of each part of nightly are in tools/nightly.json.

    tools/changed.py threads        changed folders of src/ with tests for the thread sanitizer; `all` if unknown
    tools/changed.py headers        changed headers; all patterns if unknown
    tools/changed.py integrations   a line if the tests of other frameworks must run

Changes are unknown if nightly has not passed that part, or if the part's commit is not in this clone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "nightly.json"

# The part of tools/nightly that covers each kind.
PARTS = {"threads": "tsan", "headers": "sources", "integrations": "integrations"}
HEADERS = ("include/*.h", "src/*.h")
INTEGRATIONS = (
    "examples/",
    "python/feedline/cluster/",
    "python/feedline/integrations/",
    "python/feedline/torch_loader/",
    "tests/python/integrations/",
    "tests/python/torch_loader/",
    "tools/requirements/integrations",
    "tools/requirements/streams/",
)


def changed_files(part: str, root: Path = ROOT, record: Path = RECORD) -> list[str] | None:
    """Returns files that differ from the commit at which this part passed, also untracked ones; None if unknown."""
    found = json.loads(record.read_text(encoding="utf-8")).get(part, {})
    if found.get("result") != "passed":
        return None
    differs = git(root, "diff", "--name-only", "--no-renames", found["commit"], "--")
    untracked = git(root, "ls-files", "--others", "--exclude-standard")
    return None if differs is None else differs + (untracked or [])


def git(root: Path, *arguments: str) -> list[str] | None:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def threaded_folders(root: Path = ROOT) -> list[str]:
    """Returns the folders of src/ with tests that the tsan preset compiles."""
    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    tsan = next(preset for preset in presets if preset["name"] == "tsan")
    without = tsan["cacheVariables"]["FEEDLINE_TESTS_WITHOUT"].split(";")
    with_tests = {path.relative_to(root / "src").parts[0] for path in (root / "src").rglob("*_test.cpp")}
    return sorted(with_tests - set(without))


def lines(kind: str, files: list[str] | None, folders: list[str]) -> list[str]:
    if kind == "threads":
        if files is None:
            return ["all"]
        return [folder for folder in folders if any(name.startswith(f"src/{folder}/") for name in files)]
    if kind == "headers":
        if files is None:
            return list(HEADERS)
        return [name for name in files if name.endswith(".h") and name.startswith(("include/", "src/"))]
    return ["changed"] if files is None or any(name.startswith(INTEGRATIONS) for name in files) else []


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PARTS:
        print(__doc__, file=sys.stderr)
        return 2
    kind = arguments[0]
    for line in lines(kind, changed_files(PARTS[kind]), threaded_folders()):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
