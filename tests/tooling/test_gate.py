# SPDX-License-Identifier: Apache-2.0
"""What the regression gate reads, and what it makes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

GATE = Path(__file__).resolve().parents[2] / "bench" / "gate"
sys.path.insert(0, str(GATE))
callgrind = pytest.importorskip("callgrind")
comparison = pytest.importorskip("comparison")
gate = pytest.importorskip("gate")

# A file with all that callgrind writes: names once and by number, calls, relative positions, stripped objects.
_OUT = """# callgrind format
version: 1
positions: line
events: Ir
summary: 190

ob=(1) /opt/program
fl=(1) ???
fn=(1) demo::decode(int, (anonymous namespace)::Box const&)'2
0 100
+3 20
cob=(2) /usr/lib/libjpeg.so.62.3.0
cfi=(2) ???
cfn=(2) 0x000000000002cda0
calls=2 0
0 40
* 5

ob=(2)
fl=(2)
fn=(2)
0 30
fn=(3) 0x0000000000041230
12 10
ob=(1)
fn=(4) demo::(anonymous namespace)::small()
-2 25

totals: 190
"""


def test_reads_own_instructions_by_function() -> None:
    counts = callgrind.functions(_OUT)
    assert counts == {"demo::decode": 125, "(libjpeg.so.62.3.0)": 40, "demo::(anonymous)::small": 25}
    assert sum(counts.values()) == 190, "the callee's cost was counted twice, or not at all"


def _baseline(counts: dict[str, dict[str, int]]) -> dict[str, object]:
    return comparison.to_baseline({"compiler": "12"}, counts)


def _words(before: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> dict[str, str]:
    return {verdict.case: verdict.word for verdict in comparison.compare(_baseline(before), now)}


def test_what_is_worse_better_added_and_gone() -> None:
    before = {"a": {"f": 1000}, "b": {"f": 1000}, "c": {"f": 1000}, "d": {"f": 1000}, "e": {"f": 1}}
    now = {"a": {"f": 1020}, "b": {"f": 1021}, "c": {"f": 979}, "d": {"f": 980}, "z": {"f": 1}}
    assert _words(before, now) == {"a": "same", "b": "worse", "c": "better", "d": "same", "e": "gone", "z": "added"}


@pytest.mark.parametrize(
    ("now", "fails"),
    [
        ({"a": {"f": 1000}}, False),
        ({"a": {"f": 500}}, False),
        ({"a": {"f": 1050}}, True),
        ({"b": {"f": 1000}}, True),  # a case that nobody counts any more
        ({"a": {"f": 1000}, "b": {"f": 10**9}}, False),  # one that is not in the baseline yet
    ],
)
def test_when_the_gate_fails(now: dict[str, dict[str, int]], fails: bool) -> None:
    assert comparison.fails(comparison.compare(_baseline({"a": {"f": 1000}}), now)) is fails


def test_reports_in_which_function_the_change_is() -> None:
    before = {"case": {"decode": 900, "copy": 99, "tiny": 1}}
    now = {"case": {"decode": 900, "copy": 20, "added": 200, "tiny": 2}}
    (verdict,) = comparison.compare(_baseline(before), now)
    assert verdict.word == "worse"
    assert [line.split()[-1] for line in verdict.where] == ["added", "copy"]
    assert "+20.0 %" in verdict.where[0]
    assert "-7.9 %" in verdict.where[1]
    text = comparison.table([verdict])
    assert "+12.20 %" in text
    assert "worse" in text


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(1, 10**9), min_size=1), st.floats(0.5, 2.0))
def test_the_verdict_is_that_of_the_sums(functions: dict[str, int], factor: float) -> None:
    now = {"case": {name: max(1, int(n * factor)) for name, n in functions.items()}}
    (verdict,) = comparison.compare(_baseline({"case": functions}), now)
    ratio = sum(now["case"].values()) / sum(functions.values())
    expected = "worse" if ratio > 1.02 else "better" if ratio < 0.98 else "same"
    assert verdict.word == expected or min(abs(ratio - 1.02), abs(ratio - 0.98)) < 1e-9


def test_another_environment_is_named() -> None:
    lines = comparison.differences({"compiler": "12", "libc": "2.36"}, {"compiler": "13", "libc": "2.36", "zlib": "1"})
    assert lines == ["compiler: 12 in the baseline, 13 here", "zlib: not recorded in the baseline, 1 here"]


def test_skips_in_another_environment_and_compares_on_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps(_baseline({"a": {"f": 1000}})))
    monkeypatch.setattr(gate, "BASELINE", baseline)
    monkeypatch.setattr(gate, "environment_of", lambda program: {"compiler": "13"})
    monkeypatch.setattr(gate, "count_all", lambda program, wanted: {"a": {"f": 1100}})

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gate.py", "--program", "none", *arguments])
        return int(gate.main())

    assert run() == 0
    assert "SKIPPED" in (said := capsys.readouterr().out)
    assert "compiler: 12 in the baseline, 13 here" in said
    assert run("--force") == 1
    assert run("--update") == 0
    assert run() == 0
    assert json.loads(baseline.read_text())["cases"]["a"]["instructions"] == 1100


def test_the_baseline_is_whole() -> None:
    baseline = json.loads((GATE / "baseline.json").read_text())
    assert baseline["environment"]["target"] == "AVX2"
    for name, case in baseline["cases"].items():
        assert sum(case["functions"].values()) <= case["instructions"], name
        assert sum(case["functions"].values()) > 0.5 * case["instructions"], name
