#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests Feedline with other versions of Python, torch, NumPy and Pillow, and writes the table of docs/versions.md.

    tools/test --versions [NAME...]     all environments of VERSIONS, or these
    tools/test --versions --table       only writes the table, from tools/versions.json

Each environment is .venv with other versions of some packages. An environment with another Python needs a wheel of
tools/wheel in dist/. Results are added to tools/versions.json; commit it, with the table.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "tools/versions.json", ROOT / "docs/versions.md"
FOLDER = ROOT / "build/versions"
BEGIN, END = "<!-- table of tools/versions.py -->\n", "<!-- end of the table -->\n"
PACKAGES = ("python", "torch", "numpy", "pillow")
TESTS = (
    "tests/python/test_import.py",
    "tests/python/test_ranks.py",
    "tests/python/test_reshard.py",
    "tests/python/test_released_states.py",
    "tests/python/test_sequences.py",
    "tests/python/test_png_kinds.py",
    "tests/python/torch_loader/test_state_versions.py",
    "tests/python/torch_loader/test_tensor_kinds.py",
    "tests/python/torch_loader/test_same_as_torch.py",
)
# Environments: .venv, and .venv with these packages.
VERSIONS: dict[str, dict[str, str]] = {
    "current": {},
    "numpy_2.0": {"numpy": "2.0.2"},
    "pillow_11": {"pillow": "11.3.0"},
    "pillow_12": {"pillow": "12.3.0"},
    "torch_2.11": {"torch": "2.11.0"},
    "torch_2.12": {"torch": "2.12.1"},
    "torch_2.14": {"torch": "2.14.1"},
    "torch_2.15": {"torch": "2.15.0"},
    "python_3.12": {"python": "3.12"},
    "python_3.13": {"python": "3.13"},
    "python_3.14": {"python": "3.14"},
}
_PROBE = """
import importlib.metadata as m, json, platform
def of(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
print(json.dumps({"python": platform.python_version(), **{n: of(n) for n in ("torch", "numpy", "pillow")}}))
"""


def made(name: str, wanted: dict[str, str]) -> tuple[Path, str]:
    """Creates the environment, and returns its Python, and why it cannot be made."""
    if not wanted:
        return Path(sys.executable), ""
    if "python" in wanted:
        wheels = [*(ROOT / "dist").glob("feedline-*-abi3-*.whl")]
        if not wheels:
            return Path(), "no wheel for this Python in dist/ (tools/wheel)"
        command = ["uv", "venv", "--clear", "--python", wanted["python"], str(FOLDER / name)]
        packages = [str(wheels[-1]), "torch", "pytest", "hypothesis", "pillow", "prometheus-client"]
    else:
        command = [sys.executable, "-m", "venv", "--clear", str(FOLDER / name)]
        packages = [f"{package}=={version}" for package, version in wanted.items()]
    python = FOLDER / name / "bin/python"
    if subprocess.run(command, capture_output=True).returncode:
        return python, f"failed: {' '.join(command)}"
    if "python" not in wanted:  # on top of .venv
        site = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own, base = (subprocess.check_output([one, "-c", site], text=True).strip() for one in (python, sys.executable))
        Path(own, "base.pth").write_text(base + "\n")
    install = [str(python), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(install, capture_output=True, text=True)
    return python, "" if done.returncode == 0 else f"pip: {done.stderr.strip().splitlines()[-1][:200]}"


def tested(name: str) -> dict[str, Any]:
    """Tests in one environment, and returns its entry of the record."""
    python, why = made(name, VERSIONS[name])
    entry: dict[str, Any] = {"date": datetime.date.today().isoformat(), "commit": _commit()}
    if why:
        return entry | {"not_run": why}
    entry |= json.loads(subprocess.check_output([python, "-c", _PROBE], text=True))
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    last = (ran.stdout.strip().splitlines() or [""])[-1]
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode > 1:
        return entry | {"not_run": (ran.stderr.strip() or ran.stdout.strip())[-200:]}
    return entry | {"passed": found.get("passed", 0), "failed": failed, "skipped": found.get("skipped", 0)}


def table(record: dict[str, Any]) -> str:
    """Returns the table of docs/versions.md."""
    rows = ["| Python | torch | NumPy | Pillow | result |\n", "|---|---|---|---|---|\n"]
    for name in VERSIONS:
        entry = record.get(name)
        if entry is None or "not_run" in entry:
            wanted = VERSIONS[name]
            why = "not tested yet" if entry is None else f"not tested: {entry['not_run']}"
            rows.append(f"| {' | '.join(wanted.get(package, '') for package in PACKAGES)} | {why} |\n")
            continue
        failed = f", {len(entry['failed'])} failed: {', '.join(entry['failed'])}" if entry["failed"] else ""
        result = f"{entry['passed']} passed{failed} ({entry['date']})"
        rows.append(f"| {' | '.join(entry[package] for package in PACKAGES)} | {result} |\n")
    return "".join(rows)


def write_table(record: dict[str, Any]) -> None:
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(text[:begin] + table(record) + text[end:])


def _commit() -> str:
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(VERSIONS))
    parser.add_argument("--table", action="store_true", help="only write the table")
    options = parser.parse_args()
    unknown = set(options.names) - VERSIONS.keys()
    if unknown:
        parser.error(f"no such environment: {', '.join(sorted(unknown))}")
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in [] if options.table else options.names or VERSIONS:
        print(f"== {name} ... ", end="", flush=True)
        record[name] = tested(name)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        shown = record[name]
        print(shown.get("not_run") or f"{shown['passed']} passed, {len(shown['failed'])} failed", flush=True)
    write_table(record)
    return int(any(entry.get("failed") for entry in record.values()))


if __name__ == "__main__":
    sys.exit(main())
