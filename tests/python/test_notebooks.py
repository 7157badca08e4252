# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/ run, and show the documented results."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import made_data
import made_records
import pytest

from feedline import record

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
IN_PROCESS = ["quick_start", "augmentations"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small photos in which notebooks run."""
    made_data.make_folder(tmp_path / "photos", per_class=20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cells(name: str) -> list[str]:
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())
    assert all(not cell.get("outputs") for cell in notebook["cells"]), "outputs are not kept"
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", IN_PROCESS)
def test_the_cells_of_a_notebook_run(name: str, folder: Path) -> None:
    pytest.importorskip("tqdm")
    names: dict[str, Any] = {}
    for cell in cells(name):
        exec(compile(cell, name, "exec"), names)
    if name == "quick_start":
        assert (len(names["train"]), len(names["valid"])) == (54, 6) and names["loader"].stats()["samples"] >= 54
        assert "storage" in names["loader"].stats()._repr_html_()
    else:
        assert names["drawn"][0].operation == "random_resized_crop"


def test_the_last_cell_of_diagnose_reads_a_record_as_it_is_written(folder: Path) -> None:
    """The cells before it run a script for seconds; the long form below runs them."""
    diagnosis = made_records.diagnosis()
    record.write(record.from_diagnosis(diagnosis, made_records.STEPS), folder / "run.json")
    names: dict[str, Any] = {"json": json, "Path": Path}
    exec(compile(cells("diagnose")[-1], "diagnose", "exec"), names)
    assert names["causes"] == ["storage_latency"]


@pytest.mark.skipif(os.environ.get("FEEDLINE_PROOFS") != "long", reason="long: a kernel for each notebook")
@pytest.mark.parametrize("name", sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")))
def test_a_notebook_runs_in_a_kernel_and_is_shown(name: str, folder: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    if name == "diagnose":
        pytest.importorskip("torch")
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    data = [output["data"] for output in outputs if "data" in output]
    if name == "quick_start":
        shown = "".join(one.get("text/html", "") for one in data)
        assert "feedline.Dataset" in shown and "feedline.Loader of" in shown and "feedline stats" in shown
    elif name == "augmentations":
        assert sum("image/png" in one for one in data) == 2
    else:
        printed = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
        assert "predicted gain" in printed, "a diagnosis is printed to standard error"
        assert "python_main_process" in data[-1]["text/plain"]
