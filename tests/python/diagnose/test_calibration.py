# SPDX-License-Identifier: Apache-2.0
"""The verdicts on the simulated runs stay the same: causes, shares, confidence and predicted gains, to the last digit.

A commit that adds a cause, or changes a number of a rule on purpose, also changes `calibration.json` and gives the
reason. `.venv/bin/python tests/python/diagnose/test_calibration.py` writes the file.
"""

import json
from pathlib import Path

import pytest
from summaries import BESIDE_COMPUTING, BY_CAUSE

from feedline.diagnose.verdict import evaluate

RUNS = {**BY_CAUSE, **BESIDE_COMPUTING}
FILE = Path(__file__).parent / "calibration.json"


def figures_of(measured):
    diagnosis = evaluate(measured)
    return {
        "abstained": sorted(one.code for one in diagnosis.abstained),
        "verdicts": [[v.code, v.share, v.confidence, *v.gain] for v in diagnosis.verdicts],
    }


@pytest.mark.parametrize("cause", RUNS)
def test_the_same_is_reported_as_before(cause):
    assert figures_of(RUNS[cause]) == json.loads(FILE.read_text())[cause]


def test_every_run_has_its_figures():
    assert set(json.loads(FILE.read_text())) == set(RUNS)


if __name__ == "__main__":
    rows = [f"  {json.dumps(cause)}: {json.dumps(figures_of(measured))}" for cause, measured in RUNS.items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
