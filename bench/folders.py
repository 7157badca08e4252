# SPDX-License-Identifier: Apache-2.0
"""Opening a folder of a million files: listed, and from the index that is kept of it.

Makes FILES files of 1,000 to a class folder, hard links to a few empty ones, below FOLDER, and opens them in fresh
processes. Prints seconds, and the bytes of memory that each took, the pages of the mapped index apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = """
import json, re, sys, time
import feedline
def memory():
    text = open("/proc/self/smaps_rollup").read()
    return {name: 1024 * int(re.search(rf"^{name}: +(\\d+)", text, re.M)[1]) for name in ("Rss", "Anonymous")}
before = memory()
started = time.perf_counter()
dataset = feedline.open(sys.argv[1], index=sys.argv[2])
seconds = time.perf_counter() - started
after = memory()
taken = {name: after[name] - before[name] for name in after}
print(json.dumps({"samples": len(dataset), "seconds": seconds, **taken, "explain": dataset.explain().splitlines()[1]}))
"""


def make(folder: Path, files: int) -> None:
    (folder / "sources").mkdir(parents=True)
    for i in range(files):
        source = folder / "sources" / f"{i // 50_000}.jpg"  # ext4 takes 65,000 links to a file
        if i % 50_000 == 0:
            source.touch()
        if i % 1000 == 0:
            (folder / "data" / f"n{i // 1000:08d}").mkdir(parents=True)
        os.link(source, folder / "data" / f"n{i // 1000:08d}" / f"n{i // 1000:08d}_{i % 1000:05d}.JPEG")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="to make the files below, once")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.folder.exists():
        make(options.folder, options.files)
        time.sleep(3)  # a folder that has changed within the last two seconds is listed anew
    index = options.folder / "index"
    for _ in range(options.rounds):
        for kept in index.glob("*"):
            kept.unlink()
        for way in ("listed", "from the index"):
            command = [sys.executable, "-c", _PROGRAM, str(options.folder / "data"), str(index)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            print(way, json.loads(printed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
