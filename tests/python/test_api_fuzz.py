# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the public API finds an intentional fault of each verdict, and finds nothing in a few seeds without
faults.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running_processes import HANG_S

pytest.importorskip("torch", reason="torch, which the fuzzer's loaders use, is not installed")

TESTS = Path(__file__).parents[1]
CASE = {
    "seed": 8,
    "door": "loader",
    "way": "whole",
    "source": "arrays",
    "steps": [["map", {"fn": "same", "fields": "x", "processes": 0}]],
    "options": {"batch_size": 4, "shuffle": True, "output": "numpy", "num_workers": 2},
}


def run(environment: dict[str, str], *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = f"{TESTS}:{environment['PYTHONPATH']}"
    command = [sys.executable, "-W", "ignore", "-m", "api_fuzz", *arguments]
    return subprocess.run(
        command, env={**environment, **variables, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=HANG_S
    )


def test_sound_seeds_pass(environment: dict[str, str]) -> None:
    done = run(environment, "6", "--processes", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "api: 6 seeds" in done.stdout and "0 failures" in done.stdout


def test_a_seed_is_always_the_same_case(environment: dict[str, str]) -> None:
    """In this process and in another one."""
    from api_fuzz import case

    program = "from api_fuzz import case; print(*(case.drawn(seed).as_text() for seed in range(50)), sep='\\n')"
    paths = {**environment, "PYTHONPATH": f"{TESTS}:{environment['PYTHONPATH']}"}
    found = subprocess.run([sys.executable, "-c", program], env=paths, capture_output=True, text=True, check=True)
    lines = found.stdout.splitlines()
    assert lines == [case.drawn(seed).as_text() for seed in range(50)] and len(set(lines)) == 50


def test_seeds_of_a_kind(environment: dict[str, str]) -> None:
    done = run(environment, "5", "--processes", "1", "--only", '"voc"|moved_state')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "api: 5 seeds" in done.stdout


ANNOTATED = {
    "image": np.zeros((3, 8, 6)),
    "boxes": np.array([[0, 0, 6, 8], [0, 0, 3, 4]], np.float32),
    "labels": np.array([4, 4]),
    "masks": np.ones((2, 8, 6)),
    "mask": np.full((8, 6), 5),
}
WRONG = {
    "labels of another sample": {"labels": np.array([4, 3])},
    "a label less": {"labels": np.array([4])},
    "a mask that was not resized": {"masks": np.ones((2, 16, 12))},
    "a mask of another sample": {"mask": np.full((8, 6), 6)},
    "background": {"mask": np.zeros((8, 6))},
    "boxes that were not resized": {"boxes": np.array([[0, 0, 12, 16], [0, 0, 6, 8]], np.float32)},
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_annotations_are_found(kind: str) -> None:
    from api_fuzz import annotated

    assert annotated.fault(ANNOTATED, 4, True) == ""
    assert annotated.fault({**ANNOTATED, **WRONG[kind]}, 4, True)


def test_rows_that_a_moved_state_loses_or_repeats_are_found() -> None:
    from api_fuzz import consumers, ranks, sources

    arrays = sources.SOURCES["arrays"]
    setting = consumers.Setting(arrays, None, [], {"uneven": "exact"}, random.Random(0), [0, 1, 2, 3])  # type: ignore[arg-type]
    ranks.check_moved(setting, [[0], [1]], [[2, 3]], True)
    for rest in ([[2]], [[2, 3, 3]], [[1, 2, 3]]):
        with pytest.raises(consumers.Wrong):
            ranks.check_moved(setting, [[0], [1]], rest, True)


@pytest.mark.parametrize("fault", ["crash", "hang", "exception", "rows"])
def test_a_planted_fault_is_found(fault: str, environment: dict[str, str], tmp_path: Path) -> None:
    """It prints the seed, and a script with a case that fails in the same way, without needless operations or
    options.
    """
    # the test waits for the hang twice
    variables = {"FEEDLINE_API_FUZZ_PLANT": fault} | ({"FEEDLINE_API_FUZZ_LIMIT_S": "5"} if fault == "hang" else {})
    done = run(environment, "--processes", "1", "--case", json.dumps(CASE), **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"seed 8: {fault}" in done.stdout
    script = done.stdout.partition("-- the smallest case that was found\n")[2].rpartition("\napi: ")[0]
    assert ("shuffle" in script or '"same"' in script) == (fault == "hang"), done.stdout
    (tmp_path / "script.py").write_text(script)
    paths = {**environment, "PYTHONPATH": f"{TESTS}:{environment['PYTHONPATH']}"}
    alone = subprocess.run([sys.executable, str(tmp_path / "script.py")], env=paths, capture_output=True, text=True)
    assert alone.stdout == "ran\n", "the script runs, without a planted fault: " + alone.stderr
