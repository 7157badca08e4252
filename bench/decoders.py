# SPDX-License-Identifier: Apache-2.0
"""`tools/bench --decoders`: compares Feedline's decoding of JPEGs and PNGs of each kind with libjpeg-turbo and libspng.

CPU time of one thread; both decoders alternate over the same images in one process, after a comparison of their pixels.
Exit status 1: a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from run import write_record

# the minimum ratio of the other library's time to Feedline's
GOALS = {
    "JPEG": 1.5,
    "JPEG progressive": 1.5,
    "PNG RGB interlaced": 1.3,
    "PNG RGB 16 bits": 1.3,
    "PNG grey 16 bits": 1.3,
    "PNG palette": 1.3,
}


def lines_of(program: Path, *arguments: object) -> list[dict[str, Any]]:
    """Parses the lines that a benchmark printed."""
    done = subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="a folder of JPEGs")
    parser.add_argument("--programs", type=Path, required=True, help="folder of jpeg_regions and png_images")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-decoders.json")
    options = parser.parse_args()
    started = time.time()
    rows = []
    for kind, tables in (("JPEG", "as-is"), ("JPEG progressive", "progressive")):
        (row,) = lines_of(options.programs / "jpeg_regions", options.photos, options.rounds, options.images, tables)
        if row["taken"] < 1:
            print(f"{kind}: Feedline's decoder supports only {row['taken']:.0%}")
        rows.append({"kind": kind, **row, "ms_theirs": row["ms_libjpeg"]})
    rows += lines_of(options.programs / "png_images", options.photos, options.rounds, options.images)
    print(f"{'kind':20} {'ours':>9} {'theirs':>9} {'ratio':>6} {'least':>6}  goal")
    missed = False
    for row in rows:
        goal = GOALS.get(row["kind"])
        verdict = "" if goal is None else f"{goal} {'met' if row['ratio_median'] >= goal else 'MISSED'}"
        missed |= verdict.endswith("MISSED")
        print(
            f"{row['kind']:20} {row['ms_ours']:6.2f} ms {row['ms_theirs']:6.2f} ms "
            f"{row['ratio_median']:6.2f} {row['ratio_min']:6.2f}  {verdict}"
        )
    goals = [
        {"goal": f"{row['kind']}: libjpeg-turbo's or libspng's time / ours", "at_least": GOALS[row["kind"]],
         "measured": [row["ratio_median"]]}
        for row in rows
        if row["kind"] in GOALS
    ]  # fmt: skip
    command = f"tools/bench --decoders --rounds {options.rounds} --images {options.images}"
    write_record("decoders", options.json, started, {"command": command, "results": rows, "goals": goals})
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
