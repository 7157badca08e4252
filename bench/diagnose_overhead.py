# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of `feedline diagnose --quick` for a training script, and compares it with the cost that diagnose
reports.

    python bench/diagnose_overhead.py [CASE...] [--rounds N] [--json FILE]

Each round runs every script without and with diagnosis, in fresh processes, every second round in the other order. A
script does a fixed amount of work, so the overhead increases its time. Prints the mean ratio of neighbouring runs with
its 95 % interval, and the ratio of the minima, which other work on the machine affects less, of:

- the loop's wall time, which on a busy machine varies by more than the overhead;
- the CPU time of the script's processes during the loop, which includes the hooks.

The reported `overhead_share` also includes the CPU time of the watching process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import commit, machine

from feedline.profiler.intervals import interval

_HERE = Path(__file__).resolve().parent
_FEEDLINE = "import sys; from feedline.cli import main; sys.exit(main())"
CASES = ("short_steps", "medium_steps", "workers", "many_files", "no_workers", "native")


def run(case: str, watched: bool, folder: Path) -> dict[str, float]:
    """Returns `wall_s` and `cpu_s` of the loop, and for a diagnosed run also the diagnosis."""
    result, said = folder / "result.json", folder / "said.json"
    script = [sys.executable, "-W", "ignore", str(_HERE / "diagnose_overhead_loops.py"), case, str(folder), str(result)]
    diagnose = [sys.executable, "-c", _FEEDLINE, "diagnose", "--quick", "--record", str(said), "--"]
    command = [*diagnose, *script] if watched else script
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    measured: dict[str, float] = json.loads(result.read_text())
    if watched:
        found = json.loads(said.read_text())
        measured["said"] = found["overhead_share"]
        measured |= found["summary"]["overhead"]
    return measured


def compare(case: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Returns the ratios of each round minus 1 (so as shares), and every share that the diagnosis printed."""
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        runs = {watched: run(case, watched, folder) for watched in order}
        pairs.append((runs[False], runs[True]))
    found: dict[str, Any] = {"case": case, "rounds": rounds}
    for name in ("wall_s", "cpu_s"):
        found[name] = [with_it[name] / without[name] - 1 for without, with_it in pairs]
        least = [min(run[name] for run in side) for side in zip(*pairs, strict=True)]
        found[f"least_{name}"] = least[1] / least[0] - 1
    for name in ("said", "hooks_share", "watching_share", "load_ms"):
        found[name] = [with_it[name] for _, with_it in pairs]
    return found


def _text(shares: list[float]) -> str:
    mean, low, high = interval([1 + share for share in shares])
    return f"{mean - 1:+7.2%} [{low - 1:+.2%}, {high - 1:+.2%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    print(
        f"{'case':<14}{'CPU time of the loop':^30}{'wall time of the loop':^30}{'said':>8}{'hooks':>8}{'watching':>10}"
    )
    with tempfile.TemporaryDirectory(prefix="feedline-overhead-") as folder:
        for case in options.cases or CASES:
            one = compare(case, options.rounds, Path(folder))
            found.append(one)
            said, hooks, watching = (sum(one[n]) / options.rounds for n in ("said", "hooks_share", "watching_share"))
            shares = f"{said:>8.2%}{hooks:>8.2%}{watching:>10.2%}"
            cpu = f"{_text(one['cpu_s']):^30}{one['least_cpu_s']:>8.2%}"
            wall = f"{_text(one['wall_s']):^30}{one['least_wall_s']:>8.2%}"
            print(f"{case:<14}{cpu}{wall}{shares}", flush=True)
    if options.json:
        record = {"bench": "diagnose_overhead", "commit": commit(), "machine": machine(), "cases": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
