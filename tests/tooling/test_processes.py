# SPDX-License-Identifier: Apache-2.0
"""What the benchmark counts as memory (docs/decisions/pipeline-two-batches-ahead.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
processes = pytest.importorskip("processes")

_MIB = 1 << 20
_CHILD = """
import os, sys
sys.stdin.readline()
descriptor = os.memfd_create("waiting")
os.write(descriptor, bytes(64 << 20))
print("written", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_counts_a_file_in_shared_memory_that_no_process_maps():
    child = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        sampled = processes.PeakPss(child.pid)
        child.stdin.write("go\n")
        child.stdin.flush()
        child.stdout.readline()
        sampled.sample()
    assert sampled.peak_bytes - sampled.peak_pss_bytes > 48 * _MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_leaves_out_the_shared_memory_of_other_processes():
    child = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child, open(os.memfd_create("another"), "r+b") as another:
        sampled = processes.PeakPss(child.pid)
        os.posix_fallocate(another.fileno(), 0, 64 * _MIB)
        sampled.sample()
        child.communicate("go\ngo\n")
    assert sampled.peak_bytes < 32 * _MIB
