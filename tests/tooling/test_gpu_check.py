# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check says what is missing, what failed and what was not run, and never calls that a success."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import gpu_evidence  # noqa: E402
from gpu_evidence import Check, Missing, Step  # noqa: E402


class Planted(Check):
    """Steps that end as told."""

    def __init__(self, **ends: Step | str) -> None:
        super().__init__(Path("nowhere"))
        self.ends, self.ran = ends, []
        for name in gpu_evidence.STEPS:
            setattr(self, name, lambda name=name: self._end(name))

    def install(self) -> None:
        if "install" in self.ends:
            raise Missing(self.ends["install"])

    def _end(self, name: str) -> Step:
        self.ran.append(name)
        end = self.ends.get(name, Step("passed"))
        if isinstance(end, str):
            raise Missing(end)
        return end


def run(check, only=gpu_evidence.STEPS):
    results = gpu_evidence.run(check, list(only))
    json.dumps(results)
    return results, gpu_evidence.exit_status(results)


def test_all_passed():
    results, status = run(Planted())
    assert status == 0 and results["missing"] == []
    assert [step["status"] for step in results["steps"].values()] == ["passed"] * len(gpu_evidence.STEPS)


def test_what_is_missing_is_reported_and_the_rest_runs():
    check = Planted(sanitizer="compute-sanitizer is not on PATH")
    results, status = run(check)
    assert status == 3 and results["missing"] == ["compute-sanitizer is not on PATH"]
    assert results["steps"]["causes"]["status"] == "passed" and len(check.ran) == len(gpu_evidence.STEPS)


def test_a_failure_outweighs_what_is_missing():
    results, status = run(Planted(bench=Step("failed", "exit status 3"), sanitizer="no tool"))
    assert status == 1 and results["steps"]["bench"]["why"] == "exit status 3"


def test_without_an_environment_nothing_runs():
    check = Planted(install="no abi3 wheel")
    results, status = run(check, ["facts", "tests"])
    assert status == 3 and check.ran == [] and results["missing"] == ["no abi3 wheel"]
    assert list(results["steps"]) == ["facts", "tests"]


def test_files_with_labelled_tests_are_found_by_the_label():
    files = gpu_evidence.labelled()
    assert "tests/python/diagnose/test_on_a_gpu.py" in files and "tests/python/test_kernels_on_a_gpu.py" in files
    assert all("gpu" in (ROOT / name).read_text() for name in files)


def test_every_planted_cause_has_a_script():
    scripts = {path.stem for path in (ROOT / "tests/scenarios/gpu").glob("*.py")}
    assert scripts == {*gpu_evidence.CAUSES, "sound", "loop", "stock_training"}


def test_a_ladder_without_a_measurement_that_needs_the_gpu_is_no_success():
    figures = {"kept": True, "why": "", "wait_share": 0.5, "expected": None}
    changes = ("2 workers", "pinned memory, non_blocking", "batches of 128")
    rungs = [{**figures, "change": change, "gpu": 0.4, "comparison": {"ratio": 1.2}, "more": 1} for change in changes]
    found = gpu_evidence.rungs_of(json.dumps({"rungs": rungs}))
    assert "more" not in found[0] and all(gpu_evidence.measured_by_ladder(found).values())
    refused = [{**rung, "comparison": None, "gpu": None} for rung in found]
    assert not any(gpu_evidence.measured_by_ladder(refused).values())
    assert gpu_evidence.rungs_of("Traceback") == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            '{\n "verdicts": [{"cause": "unpinned_copy"}, {"cause": "compute_bound"}]}',
            ["unpinned_copy", "compute_bound"],
        ),
        ('the script\'s words\n{\n "verdicts": []}', []),
        ("", None),
        ("{\nno object", None),
    ],
)
def test_a_diagnosis_is_found_after_what_a_script_prints(text, named):
    assert gpu_evidence.named_causes(text) == named


def test_tests_that_were_all_skipped_are_no_evidence(tmp_path, monkeypatch):
    report = tmp_path / "tests.xml"
    monkeypatch.setattr(gpu_evidence, "FOLDER", tmp_path)
    check = Check(tmp_path)
    check._facts = {"usable": True}
    for skipped, status in ((3, "failed"), (1, "passed")):
        text = f'<testsuites><testsuite tests="3" skipped="{skipped}" failures="0" errors="0"/></testsuites>'
        monkeypatch.setattr(
            check,
            "_run",
            lambda words, _, text=text: (report.write_text(text), subprocess.CompletedProcess(words, 0, "", ""))[1],
        )
        step = check.tests()
        assert step.status == status and step.found["skipped"] == skipped
    assert gpu_evidence.counts(tmp_path / "none.xml") == {"passed": 0, "skipped": 0}


def test_versions_are_those_of_the_tests():
    listed = (ROOT / "tools/requirements/test.txt").read_text()
    for name, needed in gpu_evidence.NEEDS.items():
        assert name == "numpy" or needed in listed


def test_here_it_reports_that_there_is_no_wheel(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "tools/gpu_evidence.py", "--wheels", tmp_path, "--json", tmp_path / "found.json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 3 and "no abi3 wheel" in ran.stdout
    assert "no abi3 wheel" in json.loads((tmp_path / "found.json").read_text())["missing"][0]
