# SPDX-License-Identifier: Apache-2.0
"""A process that exits while Feedline is working exits as it would without Feedline: with its own status, and without
hanging.
"""

from __future__ import annotations

import random
from pathlib import Path

import ends_of_processes
import pytest

ENDS = list(ends_of_processes.ENDS)


@pytest.mark.parametrize(("number", "state"), list(enumerate(ends_of_processes.STATES)))
def test_a_process_ends_as_requested(
    number: int, state: str, folder: Path, environment: dict[str, str], long_form: bool
) -> None:
    """One of the exits for each state, at a new random moment; the long form runs all of them ten times."""
    for end in ENDS * 10 if long_form else [ENDS[number % len(ENDS)]]:
        assert ends_of_processes.complaint(state, end, folder, random.randrange(10**6), environment) is None


@pytest.mark.parametrize("state", list(ends_of_processes.TORCH_STATES))
def test_a_process_with_the_drop_in_ends_as_requested(
    state: str, folder: Path, environment: dict[str, str], long_form: bool
) -> None:
    if not long_form:
        pytest.skip("each process imports torch: only in the long form")
    for end in ENDS * 3:
        assert ends_of_processes.complaint(state, end, folder, random.randrange(10**6), environment) is None
