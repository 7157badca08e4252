# SPDX-License-Identifier: Apache-2.0
"""--machine: measurements of a machine without a loader, and their use by feedline diff."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from made_records import bench, diagnosis

from feedline import record
from feedline.bench.machine import measuring, work
from feedline.bench.machine.disk import LARGE, Disk, NotMeasured
from feedline.record.figures import figure
from feedline.report import compare
from feedline.report.comparison import Comparison

VALUES = {
    "decode_per_s": 400.0,
    "python_per_s": 5e6,
    "memory_bytes_per_s": 8e9,
    "disk_bytes_per_s": 1e9,
    "disk_small_ms": 0.1,
}


def probed(made: dict[str, Any], **values: float) -> dict[str, Any]:
    """`made` on an idle machine, with measurements of it, within 2 %; the named ones differ."""
    rows = []
    made["machine"] = {"load_1min": 0.5} | made["machine"]
    for name, value in (VALUES | values).items():
        label, unit, better = measuring._LABELS[name]
        rows.append(figure(name, label, unit, value, 0.98 * value, 1.02 * value, better=better))
    return record.check({**made, "probes": rows})


def effects(found: Comparison) -> dict[str, str]:
    return {fact.name: fact.effect for fact in found.facts}


OTHER_CPU = {"cpu": "Y", "cpu_flags": "avx2"}
CPU = {"cpu": "X", "cpu_flags": "avx2 avx512f"}


def test_a_slower_processor_is_recognised_by_what_it_does() -> None:
    """Decoding takes 2.7 times as long in the loader and without it: the probe explains this, and no name does."""
    a = probed(bench(1000, machine=CPU))
    b = probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU), decode_per_s=400 / 2.7)
    found = compare(a, b)
    assert found.explained_by[0] == "decode_per_s" and "B takes 2.70 times as long" in found.conclusion
    assert effects(found)["cpu"] == effects(found)["cpu_flags"] == "may explain", "which of the two is not told"
    assert [fact.share for fact in found.facts if fact.name == "cpu"] == [found.facts[0].share]


def test_a_processor_that_is_as_fast_is_acquitted_whatever_its_name() -> None:
    a = probed(bench(1000, machine=CPU))
    b = probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU, software={"pillow": "9.0.0"}))
    found = compare(a, b)
    assert effects(found) == {"pillow": "may explain", "cpu": "none seen", "cpu_flags": "none seen"}
    why = {fact.name: fact.why for fact in found.facts}
    assert "as fast on both" in why["cpu"]
    without = compare(bench(1000, machine=CPU), bench(500, stages={"decode": 162.0}, machine=OTHER_CPU))
    assert effects(without)["cpu"] == "may explain", "without the probe nobody knows"


def test_a_fact_that_belief_blames_is_acquitted_by_the_probe() -> None:
    """Reading takes longer, and B's storage is a network file system, but the disk itself is as fast."""
    a = probed(bench(1000))
    b = probed(bench(500, stages={"storage": 122.0}, storage={"kind": "network"}))
    assert effects(compare(a, b))["kind"] == "none seen"
    assert effects(compare(bench(1000), bench(500, stages={"storage": 122.0}, storage={"kind": "network"})))[
        "kind"
    ] == ("explains")
    slow = probed(bench(500, stages={"storage": 122.0}, storage={"kind": "network"}), disk_small_ms=0.7)
    found = compare(a, slow)
    assert found.explained_by == ["disk_small_ms"] and effects(found)["kind"] == "may explain"


def test_a_probe_gives_no_more_than_it_shows() -> None:
    """Decoding takes 102 ms longer. A processor that is 20 % slower explains an eighth of it, 12 ms."""
    a = probed(bench(1000, machine=CPU))
    b = probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU), decode_per_s=400 / 1.2)
    found = compare(a, b)
    assert found.explained_by == [] and effects(found)["decode_per_s"] == effects(found)["cpu"] == "none seen"
    share = next(fact.share for fact in found.facts if fact.name == "decode_per_s")
    assert share is not None and 0.1 < share < 0.2


def test_a_faster_machine_that_is_slower_speaks_against() -> None:
    a = probed(bench(1000, machine=CPU))
    b = probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU), decode_per_s=800.0)
    assert effects(compare(a, b))["decode_per_s"] == "speaks against"


def test_equal_machines_show_nothing_and_either_side_is_the_same() -> None:
    assert compare(probed(bench(1000)), probed(bench(1000), decode_per_s=404.0)).facts == []
    a = probed(bench(1000, machine=CPU))
    b = probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU), decode_per_s=400 / 2.7)
    forth, back = compare(a, b), compare(b, a)
    assert effects(forth) == effects(back) and forth.explained_by == back.explained_by


def test_a_busy_machine_is_not_taken_for_a_slow_one() -> None:
    """Two runs on one machine, with 13 programs on its two CPUs, differed by 25 %."""
    a, b = (
        probed(bench(1000, machine=CPU)),
        probed(bench(500, stages={"decode": 162.0}, machine=OTHER_CPU), decode_per_s=320.0),
    )
    assert effects(compare(a, b))["decode_per_s"] == "explains part"
    b["machine"]["load_1min"] = 13.0
    found = compare(a, b)
    assert "decode_per_s" not in effects(found) and "B was recorded on a busy machine" in found.notes[-1]
    for row in b["probes"]:
        row |= {"value": row["value"] / 2.5, "low": row["low"] / 2.5, "high": row["high"] / 2.5}
    assert "decode_per_s" in effects(compare(a, b)), "what is three times as slow is so beside any load"


def test_probes_alone_are_compared_as_figures_and_capacity_is_no_cause_of_theirs() -> None:
    def alone(**values: float) -> dict[str, Any]:
        made = probed(bench(), **values)
        return record.check({**made, "figures": made["probes"], "stages": [], "chain": [], "configuration": {}})

    a, b = alone(), alone(decode_per_s=200.0)
    a["machine"] |= CPU
    b["machine"] |= {**OTHER_CPU, "usable_cpus": 2.0}
    found = compare(a, b)
    assert found.differs and "images decoded by one thread" in found.conclusion
    assert effects(found)["cpu"] == "may explain" and effects(found)["usable_cpus"] == "none seen"


def test_measuring_gives_figures_that_are_true(tmp_path: Path) -> None:
    """With a clock that returns given durations."""
    (tmp_path / "data.bin").write_bytes(os.urandom(3 * LARGE))
    found = measuring.measure(str(tmp_path), seconds=0.0)
    rows = {one["name"]: one for one in found.figures}
    assert {"decode_per_s", "python_per_s", "memory_bytes_per_s"} <= rows.keys()
    for one in found.figures:
        assert 0 < one["value"] < 1e12 and one["low"] <= one["value"] <= one["high"]
    assert ("disk_bytes_per_s" in rows) != ("the disk" in found.missing)
    made = record.check(measuring.joined(bench(), found))
    assert made["probes"] == found.figures and set(found.notes) <= set(made["notes"])


def test_a_rate_is_work_over_time() -> None:
    ticks = iter(range(0, 10_000, 2))
    rows = {one["name"]: one["value"] for one in measuring.measure(None, 0.0, lambda: float(next(ticks))).figures}
    assert rows["python_per_s"] == work._LOOPS / 2 and rows["decode_per_s"] == work._PICTURES / 2


def test_torchs_build_is_measured_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch, whose build is measured, is not installed")
    used = []
    multiply = torch.mm
    monkeypatch.setattr(torch, "mm", lambda *given: used.append(torch.get_num_threads()) or multiply(*given))
    before, ticks = torch.get_num_threads(), iter(range(0, 10_000, 2))
    found = measuring.measure(None, 0.0, lambda: float(next(ticks)))
    rows = {one["name"]: one["value"] for one in found.figures}
    assert (rows["matrix_products_per_s"], rows["convolutions_per_s"]) == (1 / 2, work._IMAGES[0] / 2)
    assert set(used) == {1} and torch.get_num_threads() == before and "torch's build" not in found.missing


def test_without_torch_its_build_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found = measuring.measure(None, 0.0)
    assert "cannot be imported" in found.missing["torch's build"]
    assert "convolutions_per_s" not in {one["name"] for one in found.figures}


def test_another_build_of_torch_explains_a_slower_step() -> None:
    def ran(step_ms: float, convolutions: float) -> dict[str, Any]:
        document = diagnosis() | {"step_ms": step_ms}
        document["summary"] |= {"step_ms": step_ms, "loop_s": 0.2 * (step_ms + 30)}
        steps = [(0.001 * (step_ms + 30) * i, 30.0 + i % 7, step_ms) for i in range(200)]
        return probed(record.from_diagnosis(document, steps), convolutions_per_s=convolutions)

    found = compare(ran(20.0, 400.0), ran(70.0, 400.0 / 3.5))
    assert found.explained_by == ["convolutions_per_s"]
    assert "convolutions_per_s" not in effects(compare(ran(20.0, 400.0), ran(70.0, 400.0))), "as fast on both"


def test_what_cannot_be_measured_is_reported(tmp_path: Path) -> None:
    assert "SOURCE" in measuring.measure(None, 0.0).missing["the disk"]
    assert "not a local file or folder" in measuring.measure("s3://bucket/x", 0.0).missing["the disk"]
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(NotMeasured, match="no file of at least 4096 bytes"):
        Disk(str(tmp_path))


def test_a_diagnosis_brings_its_own_figures_of_the_disk() -> None:
    host = {"disk_ceiling_bytes_per_s": 2e9, "disk_small_read_ms": 0.2, "cpus": 4}
    found = measuring.measure(None, 0.0, known=measuring.of_host(host))
    rows = {one["name"]: one["value"] for one in found.figures}
    assert (rows["disk_bytes_per_s"], rows["disk_small_ms"]) == (2e9, 0.2) and "the disk" not in found.missing
