# SPDX-License-Identifier: Apache-2.0
"""Loaders of datasets, iterators and samplers with states: an interrupted run delivers the same samples as an
uninterrupted one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parent.parent / "torch_loader"))

import stateful_cases

import feedline

CASES = 1500 if os.environ.get("FEEDLINE_PROOFS") == "long" else 6  # numbers of workers: 0 to 3
FIRST = 10_000  # other cases than those of test_stateful_protocol


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_every_drawn_case_continues_as_if_it_was_not_interrupted() -> None:
    for seed in range(FIRST, FIRST + CASES):
        case = stateful_cases.draw(seed)
        expected, resumed = stateful_cases.outcomes(case, feedline.DataLoader)
        assert resumed == expected, (seed, case)
