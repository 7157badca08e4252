# SPDX-License-Identifier: Apache-2.0
"""Four gloo processes with meshes: peers get the same rows, other ranks get others, and a missing argument is an
error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from running_processes import HANG_S

pytest.importorskip("torch.distributed")

from parallel_ranks import ROWS, WORLD

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "parallelism.md"
# section of the page: data-parallel coordinates of the four ranks
SECTIONS = {
    "FSDP2": (0, 1, 2, 3),
    "HSDP": (0, 1, 2, 3),
    "TP": (0, 0, 1, 1),
    "CP": (0, 0, 1, 1),
    "PP": (0, 1, 0, 1),
    "The drop-in": (0, 0, 1, 1),
}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, str(HERE / "parallel_ranks.py"), str(folder), str(PAGE)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        errors = process.communicate(timeout=HANG_S)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]


def holds(found: list[list[int]], coordinates: tuple[int, ...]) -> None:
    by_coordinate: dict[int, list[int]] = {}
    for coordinate, rows in zip(coordinates, found, strict=True):
        assert by_coordinate.setdefault(coordinate, rows) == rows, "peers have the same rows in the same order"
    assert Counter(row for rows in by_coordinate.values() for row in rows) == Counter(range(ROWS))


@pytest.mark.parametrize(("section", "coordinates"), SECTIONS.items())
def test_each_row_is_seen_by_the_right_peers(ranks, section, coordinates):
    holds([found[section] for found in ranks], coordinates)


def test_a_loader_made_before_the_group_is_shared_out(ranks):
    holds([found["plain"] for found in ranks], (0, 1, 2, 3))
    holds([found["afterwards"] for found in ranks], (0, 1, 2, 3))


def test_dimensions_by_number_and_flattened(ranks):
    holds([found["numbered"] for found in ranks], (0, 0, 1, 1))
    holds([found["flattened"] for found in ranks], (0, 0, 1, 1))


def test_a_state_resumes_on_another_mesh(ranks):
    """Three global batches of 4 x 2 rows were delivered; two data-parallel ranks continue."""
    assert len({json.dumps(found["FSDP2, state"]) for found in ranks}) == 1
    done = {row for found in ranks for row in found["FSDP2"][:6]}
    rest = [found["resumed"] for found in ranks]
    assert rest[0] == rest[1] and rest[2] == rest[3]
    assert sorted(rest[0] + rest[2]) == sorted(set(range(ROWS)) - done)


def test_wrong_meshes_are_named(ranks):
    for found in ranks:
        wrong = found["wrong"]
        assert "('a', 'b', 'tp')" in wrong["unclear"] and "dp=" in wrong["unclear"]
        assert "'dpp'" in wrong["unknown"] and "('dp', 'tp')" in wrong["unknown"]
        assert "different dimensions" in wrong["twice"]
        assert "dp=2" in wrong["number"]
        assert (
            "not both" in wrong["rank"] and "DeviceMesh, not int" in wrong["no mesh"] and "mesh=" in wrong["dp alone"]
        )


@pytest.mark.parametrize("case", ["tp", "only tp", "flat", "unnamed"])
def test_unstated_parallelism_is_refused_with_the_line_to_write(ranks, case):
    for found in ranks:
        errors = found[f"refused {case}"]
        assert errors.pop("given") == ""
        assert all("mesh=" in error and "dp=" in error for error in errors.values()), errors
    if case == "tp":
        assert "mesh=mesh, dp=('dp',)" in errors["iter"]


@pytest.mark.parametrize("case", ["hsdp", "dp"])
def test_data_parallel_meshes_need_no_argument(ranks, case):
    for found in ranks:
        assert set(found[f"refused {case}"].values()) == {""}
