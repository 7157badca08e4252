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
from feedline.report.probes import load_of

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())", "diff"]


def effects(found: Comparison) -> dict[str, str]:
    return {fact.name: fact.effect for fact in found.facts}


def test_equal_runs_do_not_differ() -> None:
    found = compare(bench(), bench())
    assert (found.differs, found.facts, found.explained_by) == (False, [], [])
    assert "the records differ by no more than their spread" in found.conclusion


def test_a_quota_explains_half_the_rate() -> None:
    found = compare(bench(1000), bench(500, machine={"quota_cpus": 2.0, "usable_cpus": 2.0}))
    assert found.differs and found.explained_by == ["usable_cpus"]
    assert found.facts[0].share == pytest.approx(1.0)
    assert "quota_cpus none and 2" in found.facts[0].why
    assert "2.00 times as slow" in found.conclusion and "usable_cpus explains it" in found.conclusion


def test_load_and_noise_are_told_before_an_explanation() -> None:
    busy = bench(500, machine={"quota_cpus": 2.0, "usable_cpus": 2.0, "load_1min": 9.0})
    found = compare(bench(1000, machine={"load_1min": 0.1}), busy, ("first", "second"))
    assert "second on a busy machine (a load of 9.0 on 2 CPUs)" in found.caveats[0] and "first" not in found.caveats[0]
    assert "variation within a run" in found.caveats[1]
    told = found.conclusion
    assert told.index("2.00 times as slow") < told.index("busy machine") < told.index("usable_cpus explains")
    assert told.index("variation within a run") < told.index("usable_cpus explains")
    quiet = compare(bench(1000), bench(500, software={"OMP_NUM_THREADS": "1"}))
    assert len(quiet.caveats) == 1 and quiet.conclusion.index("variation") < quiet.conclusion.index("xplain")
    assert compare(busy, busy).caveats == [], "nothing differs"


def test_the_cpu_time_of_other_programs_is_preferred_to_the_load() -> None:
    one = bench(500) | {"summary": {"host": {"others_cpus": 1.4, "cpus": 2.0}}}
    assert load_of(one) == "other programs used 1.4 of 2 CPUs"
    loaded = bench(500, machine={"usable_cpus": 2.0, "load_1min": 9.0})
    assert load_of(loaded | {"summary": {"host": {"others_cpus": 0.1, "cpus": 2.0}}}) == "", "the load is the run's own"
    assert load_of({"machine": None}) == load_of(bench()) == ""


def test_fewer_cpus_explain_only_their_part() -> None:
    found = compare(bench(1000), bench(200, machine={"usable_cpus": 2.0, "cpus_allowed": 2}))
    assert effects(found)["usable_cpus"] == "explains part"
    assert "the records do not explain the rest" in found.conclusion


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
    assert "which the records do not prove" in found.conclusion and "decode: 60 ms and 162 ms" in found.conclusion


def test_what_should_make_it_faster_speaks_against() -> None:
    better = {"usable_cpus": 8.0, "cpus_allowed": 8}
    found = compare(bench(1000), bench(700, machine=better, storage={"kind": "memory"}))
    assert effects(found)["usable_cpus"] == effects(found)["kind"] == "speaks against"
    assert "The records do not explain the difference" in found.conclusion


def test_without_a_differing_fact_nothing_explains_it() -> None:
    found = compare(bench(1000), bench(500, stages={"decode": 160.0}))
    assert found.differs and found.facts == []
    assert "The records do not explain the difference" in found.conclusion and "decode" in found.conclusion


def test_a_wide_spread_is_no_difference() -> None:
    noisy = bench(900, spread=0.5, machine={"usable_cpus": 2.0})
    found = compare(bench(1000, spread=0.5), noisy)
    assert not found.differs and effects(found)["usable_cpus"] == "none seen"
    assert compare(bench(1000, spread=0.001), bench(990, spread=0.001)).differs


def test_another_batch_size_is_another_measurement() -> None:
    other = bench(500)
    other["configuration"]["batch_size"] = 8
    found = compare(bench(1000), other)
    assert found.facts[0].effect == "other workload" and "measured different work: batch_size" in found.conclusion


def test_the_usual_coming_and_going_is_not_listed() -> None:
    a = bench(machine={"page_cache_bytes": 10 << 30, "load_1min": 1.0})
    b = bench(machine={"page_cache_bytes": 9 << 30, "load_1min": 1.4})
    assert compare(a, b).facts == []
    b["machine"]["page_cache_bytes"] = 2 << 30
    assert list(effects(compare(a, b))) == ["page_cache_bytes"]


def test_a_smaller_page_cache_explains_slow_reading() -> None:
    slow = bench(500, stages={"storage": 122.0}, machine={"page_cache_bytes": 1 << 30})
    assert compare(bench(1000, machine={"page_cache_bytes": 10 << 30}), slow).explained_by == ["page_cache_bytes"]


def test_records_without_facts_report_it() -> None:
    bare = record.from_diagnosis(made_records.diagnosis())
    bare["machine"] = None
    found = compare(bench(), bare)
    assert "B has no facts about its machine, so differences in them are not detected" in found.notes
    assert "in common" in found.conclusion


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


def diagnosis(step_ms: float = 20.0, **facts: dict[str, Any]) -> dict[str, Any]:
    """A record of ``feedline diagnose`` whose batches take 30 ms of waiting and `step_ms`."""
    document = made_records.diagnosis()
    document["summary"] |= {"step_ms": step_ms, "loop_s": 200 * (0.030 + step_ms / 1000)}
    steps = [(i * (30 + step_ms) / 1000, 30.0, step_ms) for i in range(200)]
    made = record.from_diagnosis(document, steps)
    made["packages"] = {"torch": "2.9.0 (manylinux_2_28_x86_64, pip)", "rich": "13"}
    for group, values in facts.items():
        made[group] = made[group] | values
    return made


def test_choices_of_kernels_matter_where_the_step_takes_the_time() -> None:
    fast = diagnosis(20.0, configuration={"deterministic_algorithms": False, "cudnn_benchmark": True})
    slow = diagnosis(60.0, configuration={"deterministic_algorithms": True, "cudnn_benchmark": False})
    found = compare(fast, slow)
    assert found.explained_by == ["deterministic_algorithms"], "its direction is known"
    assert effects(found)["cudnn_benchmark"] == "may explain"
    assert next(fact for fact in found.facts if fact.name == "cudnn_benchmark").share == pytest.approx(1.0)


def test_they_are_acquitted_where_the_step_took_no_longer() -> None:
    a, b = bench(1000, stages={"decode": 60.0}), bench(500, stages={"decode": 162.0})
    b["configuration"] = b["configuration"] | {"cudnn_benchmark": True}
    b["machine"] = b["machine"] | {"gpu0_pcie_width": 8, "cpu_flags": "avx2"}
    a["machine"] = a["machine"] | {"gpu0_pcie_width": 16, "cpu_flags": "avx2 avx512f"}
    found = compare(a, b)
    assert (effects(found)["cudnn_benchmark"], effects(found)["gpu0_pcie_width"]) == ("none seen", "none seen")
    assert effects(found)["cpu_flags"] == "may explain", "decoding did take longer"


def test_packages_are_compared_one_by_one_with_their_builds() -> None:
    slow = diagnosis(60.0, packages={"torch": "2.9.0 (linux_x86_64, pip)", "rich": "14", "attrs": "1"})
    slow["software"] = slow["software"] | {"torch": "2.9.0", "environment": "0" * 16}
    found = effects(compare(diagnosis(20.0), slow))
    assert found["torch"] == "may explain"
    assert (found["rich"], found["attrs"]) == ("unknown", "unknown")
    assert "environment" not in found, "the packages say it one by one"


def test_flags_are_shown_by_what_the_other_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    a, b = (
        bench(rate, machine={"cpu_flags": flags}) for rate, flags in ((1000, "avx2 avx512f fma"), (500, "avx2 fma"))
    )
    record.write(a, tmp_path / "a.json")
    record.write(b, tmp_path / "b.json")
    assert run(["diff", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "cpu_flags" in line and "fact" not in line)
    assert "avx512f" in line and "no others" in line and "fma" not in line
