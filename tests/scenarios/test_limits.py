# SPDX-License-Identifier: Apache-2.0
"""Whether a CPU quota had an effect, by the counters of its control group."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from limits import Limits


@pytest.mark.parametrize(
    ("counters", "reason"),
    [
        ("nr_periods 370\nnr_throttled 0\nthrottled_time 0\n", "in only 0 of 370 periods"),
        ("nr_periods 266\nnr_throttled 10\nthrottled_usec 186983\n", "in only 10 of 266 periods"),
        ("nr_periods 401\nnr_throttled 398\nthrottled_time 21123056111\n", ""),
        (None, ""),
    ],
)
def test_a_quota_without_effect_is_reported(counters, reason, tmp_path):
    if counters is not None:
        (tmp_path / "cpu.stat").write_text(counters)
    unused = Limits(cpus=1.0).unused([tmp_path / "memory", tmp_path])
    assert bool(unused) == bool(reason) and unused.endswith(reason)
    assert Limits(memory_bytes=1 << 30).unused([tmp_path]) == ""
