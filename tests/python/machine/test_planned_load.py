# SPDX-License-Identifier: Apache-2.0
"""The calculated memory of a loader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedline.machine.planned_load import PlannedLoad, gpu_bytes_of, need_of, open_files_of, rounded_up


@pytest.mark.parametrize(("count", "up"), [(0, 0), (1, 1), (2, 2), (3, 4), (1 << 29, 1 << 29), (500_000_000, 1 << 29)])
def test_torch_locks_powers_of_two(count: int, up: int) -> None:
    assert rounded_up(count) == up


def test_the_example_of_40_gb() -> None:
    plain = need_of(PlannedLoad(16, 5, 500_000_000))
    assert (plain.waiting, plain.in_hand, plain.copies, plain.most) == (40 * 10**9, 10**9, 0, 41 * 10**9)
    pinned = need_of(PlannedLoad(16, 5, 500_000_000, dataset_bytes=10**9, pinned=True, ranks=2))
    assert (pinned.waiting, pinned.in_hand) == (80 * 10**9, 2 * 2 << 29)
    assert pinned.copies == 2 * 16 * 10**9 and pinned.pinned_later == 2 * 78 << 29


def test_without_workers_the_loop_holds_its_batch() -> None:
    assert need_of(PlannedLoad(0, 2, 1000)).most == 1000
    assert need_of(PlannedLoad(4, 2, None)).most == 0


def test_files_and_the_gpu() -> None:
    assert open_files_of(PlannedLoad(64, 4, tensors=2)) == 64 * 14 + 64
    assert gpu_bytes_of(PlannedLoad(1, 1, 7)) == 14


LOADS = st.builds(
    PlannedLoad,
    st.integers(0, 256),
    st.integers(1, 64),
    st.integers(0, 10**10),
    st.integers(0, 10**10),
    st.booleans(),
    st.integers(1, 16),
)


@given(LOADS)
def test_more_of_anything_never_takes_less(load: PlannedLoad) -> None:
    from dataclasses import replace

    need = need_of(load)
    assert need.waiting + need.in_hand + need.copies == need.least <= need.most
    for name in ("workers", "prefetch", "batch_bytes", "dataset_bytes", "ranks"):
        more = need_of(replace(load, **{name: getattr(load, name) + 1}))
        assert more.least >= need.least and more.most >= need.most
