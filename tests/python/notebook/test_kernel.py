# SPDX-License-Identifier: Apache-2.0
"""A notebook in a separate kernel: slow, so only with FEEDLINE_PROOFS."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from cells import LOOP, SETUP
from running_processes import HANG_S

pytestmark = pytest.mark.skipif(os.environ.get("FEEDLINE_PROOFS") != "long", reason="FEEDLINE_PROOFS=long asks for it")


def outputs(cells: list[str]) -> list[list[Any]]:
    """Returns the output of each cell, after all have run."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient, which runs notebooks, is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel, a notebook's kernel, is not installed")
    from nbformat.v4 import new_code_cell, new_notebook

    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=HANG_S, allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_notebook_shows_the_diagnosis_with_its_experiments_and_continues() -> None:
    made = outputs(["%load_ext feedline", SETUP, f"%%feedline --budget 8s\n{LOOP}", "len(seen)", "%%feedline\n1 / 0"])
    shown = [one for one in made[2] if one.output_type == "execute_result"]
    assert len(shown) == 1 and shown[0].execution_count == 3
    assert "<svg" in shown[0].data["text/html"] and "python_main_process" in shown[0].data["text/html"]
    assert "loader only, by number of workers" in shown[0].data["text/plain"], "experiments ran on a copy of the kernel"
    progress = [one for one in made[2] if one.output_type == "display_data"]
    assert [one.data["text/plain"] for one in progress] == [""], "the line of progress is gone"
    assert made[3][0].data["text/plain"] == "60", "the kernel is the one that ran the cell"
    errors = [one for one in made[4] if one.output_type == "error"]
    assert [one.ename for one in errors] == ["ZeroDivisionError"]
    assert "Cell In[5], line 2" in re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(errors[0].traceback))
