# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of several records of `tools/bench --remote` as one: `merge.py RECORD... > FILE.md`.

Combines the rounds of all records, so that parts can be measured again (`--only`). FILE.md must be in the folder of the
records, because its links to them are relative.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "peers"))

import tables
from reading import CLIENTS
from rounds import Key, Measured
from training import LOADERS

_NAMES = sorted((one.name for one in (*CLIENTS, *LOADERS)), key=len, reverse=True)


def key_of(text: str) -> Key:
    """Parses ``task, name``; both may contain commas. Raises ValueError for unknown names."""
    for name in _NAMES:
        if text.endswith(f", {name}"):
            return text.removesuffix(f", {name}"), name
    raise ValueError(f"{text!r} does not end with a known name")


def merged(records: list[dict[str, Any]]) -> tuple[Measured, dict[Key, str]]:
    """Returns the rounds of all records. A task that a record lacks is missing from its rounds, so that ratios are
    within a round.
    """
    keys = dict.fromkeys(key_of(text) for record in records for text in record["results"])
    measured: Measured = {key: [] for key in keys}
    skipped: dict[Key, str] = {}
    for record in records:
        own = {key_of(text): entries for text, entries in record["results"].items()}
        for key, rows in measured.items():
            rows += own.get(key, [None] * record["rounds"])
        skipped |= {key_of(text): reason for text, reason in record["skipped"].items()}
    return measured, {key: reason for key, reason in skipped.items() if not any(measured.get(key, []))}


def heading(path: Path, record: dict[str, Any]) -> str:
    machine, count = record["machine"], record["rounds"]
    return (
        f"{record['date']} UTC, commit {record['commit']}, {count} round{'s' * (count != 1)}, `{record['command']}`, "
        f"{machine['cpus']} CPUs of {machine['cpu']}; [record]({path.name})."
        + "".join(f" Note: {note}." for note in record.get("notes", []))
    )


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]]
    records = [json.loads(path.read_text()) for path in paths]
    measured, skipped = merged(records)
    latencies = sorted({float(task.split()[1]) for task, _ in measured if task.endswith(" ms")})
    text = "\n\n".join(
        [*map(heading, paths, records), tables.text(measured, skipped, tables.bars(measured, latencies))]
    )
    print(text)


if __name__ == "__main__":
    main()
