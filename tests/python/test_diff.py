# SPDX-License-Identifier: Apache-2.0
"""feedline diff: planted differences, and whether the fact that was planted is the one that is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_records import bench
from running_processes import HANG_S

from feedline import record
from feedline.report import compare
from feedline.report.comparison import Comparison

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "diff"]


def effects(found: Comparison) -> dict[str, str]:
    return {fact.name: fact.effect for fact in found.facts}


def test_equal_runs_do_not_differ() -> None:
    found = compare(bench(), bench())
    assert (found.differs, found.facts, found.explained_by) == (False, [], [])
    assert "no difference beyond the spread" in found.conclusion


def test_a_quota_explains_half_the_rate() -> None:
    found = compare(bench(1000), bench(500, machine={"quota_cpus": 2.0, "usable_cpus": 2.0}))
    assert found.differs and found.explained_by == ["usable_cpus"]
    assert found.facts[0].share == pytest.approx(1.0)
    assert "quota_cpus none and 2" in found.facts[0].why
    assert "2.00 times as slow" in found.conclusion and "usable_cpus explains it" in found.conclusion


def test_fewer_cpus_explain_only_their_part() -> None:
    found = compare(bench(1000), bench(200, machine={"usable_cpus": 2.0, "cpus_allowed": 2}))
    assert effects(found)["usable_cpus"] == "explains part"
    assert "nothing recorded explains the rest" in found.conclusion


def test_slower_storage_explains_where_reading_takes_the_time() -> None:
    slow = bench(500, stages={"storage": 122.0}, storage={"kind": "network", "file_system": "nfs4"})
    found = compare(bench(1000), slow)
    assert found.explained_by == ["kind"]
    assert effects(found)["file_system"] == "may explain"


def test_slower_storage_is_acquitted_where_decoding_takes_the_time() -> None:
    slow = bench(500, stages={"decode": 162.0}, storage={"kind": "network"}, software={"pillow": "9.0.0"})
    found = compare(bench(1000), slow)
    assert effects(found)["kind"] == "none seen" and found.explained_by == []
    assert effects(found)["pillow"] == "may explain"
    assert "without proof" in found.conclusion and "decode: 60 ms and 162 ms" in found.conclusion


def test_what_should_make_it_faster_speaks_against() -> None:
    better = {"usable_cpus": 8.0, "cpus_allowed": 8}
    found = compare(bench(1000), bench(700, machine=better, storage={"kind": "memory"}))
    assert effects(found)["usable_cpus"] == effects(found)["kind"] == "speaks against"
    assert "not explained by anything recorded" in found.conclusion


def test_without_a_differing_fact_nothing_explains_it() -> None:
    found = compare(bench(1000), bench(500, stages={"decode": 160.0}))
    assert found.differs and found.facts == []
    assert "not explained by anything recorded" in found.conclusion and "decode" in found.conclusion


def test_a_wide_spread_is_no_difference() -> None:
    noisy = bench(900, spread=0.5, machine={"usable_cpus": 2.0})
    found = compare(bench(1000, spread=0.5), noisy)
    assert not found.differs and effects(found)["usable_cpus"] == "none seen"
    assert compare(bench(1000, spread=0.001), bench(990, spread=0.001)).differs


def test_another_batch_size_is_another_measurement() -> None:
    other = bench(500)
    other["configuration"]["batch_size"] = 8
    found = compare(bench(1000), other)
    assert found.facts[0].effect == "other workload" and "measured different things: batch_size" in found.conclusion


def test_the_usual_coming_and_going_is_not_listed() -> None:
    a = bench(machine={"page_cache_bytes": 10 << 30, "load_1min": 1.0})
    b = bench(machine={"page_cache_bytes": 9 << 30, "load_1min": 1.4})
    assert compare(a, b).facts == []
    b["machine"]["page_cache_bytes"] = 2 << 30
    assert list(effects(compare(a, b))) == ["page_cache_bytes"]


def test_a_smaller_page_cache_explains_slow_reading() -> None:
    slow = bench(500, stages={"storage": 122.0}, machine={"page_cache_bytes": 1 << 30})
    assert compare(bench(1000, machine={"page_cache_bytes": 10 << 30}), slow).explained_by == ["page_cache_bytes"]


def test_records_without_facts_say_so() -> None:
    bare = record.from_diagnosis(made_records.diagnosis())
    bare["machine"] = None
    found = compare(bench(), bare)
    assert "B holds no facts about its machine: a difference there would not show" in found.notes
    assert "share no figure" in found.conclusion


CHANGES: list[dict[str, Any]] = [
    {"machine": {"usable_cpus": 2.0}},
    {"machine": {"usable_cpus": 16.0, "load_1min": 9.0}},
    {"storage": {"kind": "network"}, "stages": {"storage": 200.0}},
    {"software": {"pillow": "9.0.0"}, "stages": {"decode": 10.0}},
    {"threads": 2},
]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(CHANGES), st.floats(100, 10_000))
def test_it_is_the_same_from_either_side(change: dict[str, Any], rate: float) -> None:
    a, b = bench(1000), bench(rate, **change)
    forth, back = compare(a, b), compare(b, a)
    assert effects(forth) == effects(back)
    assert forth.differs == back.differs and forth.explained_by == back.explained_by


def test_the_command_tells_by_its_exit_status(tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    for name, made in (("a", bench(1000)), ("b", bench(500, machine={"usable_cpus": 2.0}))):
        record.write(made, tmp_path / f"{name}.json")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=HANG_S)

    assert run("a.json", "a.json").returncode == 0
    shown = run("a.json", "b.json")
    assert shown.returncode == 1 and "usable_cpus explains it" in shown.stdout
    assert max(map(len, shown.stdout.splitlines()[:-1])) <= 80
    found = json.loads(run("a.json", "b.json", "--json").stdout)
    assert found["explained_by"] == ["usable_cpus"] and found["figures"][0]["ratio"] == pytest.approx(0.5)
    assert run("a.json", "missing.json").returncode == 3
