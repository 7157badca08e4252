# SPDX-License-Identifier: Apache-2.0
"""The clients, and the measurement of one of them in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

from launch import Skipped

_HERE = Path(__file__).resolve().parent
_RUN_S = 240


@dataclass(frozen=True)
class Client:
    name: str
    program: str  # a compiled program, or a script in readers/ that the interpreter of `environment` runs
    environment: str = ""
    protocols: tuple[str, ...] = ("http", "https", "s3")


OURS, LIMIT = "Feedline", "libcurl alone"
CLIENTS = (
    Client(OURS, "feedline_reads"),
    Client(LIMIT, "curl_reads"),
    Client("obstore", "read_by_obstore.py", "obstore"),
    Client("s3torchconnector", "read_by_s3torchconnector.py", "s3torchconnector", ("s3",)),
    Client("boto3", "read_by_boto3.py", "boto3", ("s3",)),
)


@dataclass(frozen=True)
class Kind:
    """The reads, how many run concurrently, and the number of passes over all of them."""

    name: str
    at_once: int
    passes: int


KINDS = (Kind("8 MiB ranges", 8, 3), Kind("photos of 110 KB", 32, 3))


def lines(reads: Sequence[tuple[str, int, int] | str], base: str) -> str:
    """Formats the reads as input for the programs."""
    texts = [read if isinstance(read, str) else f"{read[0]} {read[1]} {read[2]}" for read in reads]
    return "".join(f"{base}/{text}\n" for text in texts)


def read(command: Sequence[object], at_once: int, asked: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Returns a client's time, and its process's CPU seconds per GB (10^9 bytes). Raises Skipped."""
    environment = {**os.environ, "PYTHONPATH": str(_HERE / "readers"), **variables}
    try:
        done = subprocess.run(
            [*map(str, command), str(at_once)],
            input=asked, capture_output=True, text=True, check=False, timeout=_RUN_S, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Skipped(f"stopped after {_RUN_S} s") from None
    if done.returncode != 0:
        raise Skipped(f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1][-300:]}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    gb = figures["bytes"] / 1e9
    cpu_s = figures["user_s"] + figures["system_s"]
    return {**figures, "cpu_s_per_gb": cpu_s / gb, "mb_per_s": 1000 * gb / figures["seconds"]}
