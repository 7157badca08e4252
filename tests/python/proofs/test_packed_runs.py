# SPDX-License-Identifier: Apache-2.0
"""In random runs of packed sequences, with any lengths, masks, options, ranks and interruptions, every token appears
once per epoch with its label, and every pack is that of a single-rank run.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from packed_runs import random_case

_CASES = 10_000 if os.environ.get("FEEDLINE_PROOFS") == "long" else 20
_AT_ONCE = 20


@pytest.mark.parametrize("first", range(0, _CASES, _AT_ONCE))
def test_every_token_once_and_the_same_packs(tmp_path: Path, first: int) -> None:
    for case in range(first, first + _AT_ONCE):
        folder = tmp_path / str(case)
        folder.mkdir()
        random_case(np.random.default_rng([1, case]), folder)
