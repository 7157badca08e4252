# SPDX-License-Identifier: Apache-2.0
"""%%feedline: the cell has its usual effect, the diagnosis is that of its loop, and errors are the cell's own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cells import LOOP, SETUP

from feedline import record


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=False)
    result.raise_error()
    return result.result


def test_a_cell_is_diagnosed_and_keeps_what_it_defines(shell: Any) -> None:
    run(shell, SETUP)
    found = run(shell, f"%%feedline --quick\n{LOOP}")
    assert shell.user_ns["seen"] == list(range(60)), "the cell ran here, and once"
    assert found.record["verdicts"][0]["cause"] == found.findings[0].code
    assert found.findings[0].share > 0.7, "nearly all of the loop's time is the dataset's waiting"
    assert found.record["subject"] == f"In [{shell.execution_count}]"
    assert any("% of them at In [" in one and ":6 in __getitem__()" in one for one in found.findings[0].evidence)
    assert found.record["configuration"]["num_workers"] == 0
    assert record.check(json.loads(json.dumps(found.record)))
    text = repr(found)
    assert found.findings[0].code in text and "15 steps in 1 epoch" in text
    assert not [line for line in text.splitlines() if len(line) > 200]


def test_the_block_shows_what_was_found_and_runs_nothing(shell: Any) -> None:
    run(shell, SETUP)
    found = run(shell, f"%%feedline --quick\n{LOOP}")
    html = found._repr_html_()
    outside = html.replace(html[html.index("srcdoc=") : html.index("</iframe>")], "")
    assert found.findings[0].code in outside and "<svg" in outside and "batches per second" in outside
    assert "<script" not in html and "javascript:" not in html and 'sandbox=""' in html
    assert "default-src 'none'" in html, "the page within brings its policy along"
    assert found.findings[0].code in found.findings[0]._repr_html_()


def test_a_hostile_name_stays_a_name(shell: Any) -> None:
    run(shell, SETUP)
    hostile = "</style><script>alert(1)</script>"
    found = run(shell, f"%%feedline --quick\n{LOOP}")
    found.record["notes"].append(hostile)
    found.record["verdicts"][0]["evidence"].append(hostile)
    assert "<script" not in found._repr_html_()


def test_the_last_expression_and_prints_come_as_ever(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, SETUP)
    run(shell, f"%%feedline --quick\n{LOOP}\nprint('printed')\nlen(seen)")
    assert "printed" in (out := capsys.readouterr().out) and "60" in out


def test_an_error_is_the_cells_own_and_reported_once(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, SETUP)
    capsys.readouterr()
    cell = f"%%feedline --quick\n{LOOP}\n1 / 0"
    result = shell.run_cell(cell, store_history=False)
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    printed = "".join(capsys.readouterr())
    assert printed.count("ZeroDivisionError: division by zero") == 1
    assert "ended by ZeroDivisionError" in printed, "what was seen until then is shown"
    assert len(shell.user_ns["seen"]) == 60
    assert "line 4" in printed and "----> 4 1 / 0" in printed, "as the cell is numbered, with the magic's own line"
    assert not {"showtraceback", "showsyntaxerror"} & shell.__dict__.keys()


@pytest.mark.parametrize("wrong", ["for batch in loader: 1 / 0", "for batch in", "raise SystemExit(3)"])
def test_cells_after_an_error_are_run_and_diagnosed_as_before(shell: Any, wrong: str) -> None:
    run(shell, SETUP)
    assert not shell.run_cell(f"%%feedline --quick\n{wrong}", store_history=False).success
    assert run(shell, "len(list(loader))") == 15, "without the magic"
    found = run(shell, f"%%feedline --quick\n{LOOP}")
    assert found.findings and "15 steps in 1 epoch" in repr(found), "of this cell, and not of the one before"
    with pytest.raises(ZeroDivisionError):
        run(shell, "1 / 0")
    assert not {"showtraceback", "showsyntaxerror"} & shell.__dict__.keys()


def test_a_cell_that_is_no_python_reports_it_once(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%feedline --quick\nfor batch in", store_history=False)
    assert isinstance(result.error_in_exec or result.error_before_exec, SyntaxError)
    assert "".join(capsys.readouterr()).count("SyntaxError") == 1


def test_a_cell_without_a_loop_reports_that_none_was_seen(shell: Any) -> None:
    found = run(shell, "%%feedline\nx = 1")
    assert not found.findings and "no process iterated over" in repr(found)
    assert "was found" in found._repr_html_() and shell.user_ns["x"] == 1


def test_experiments_are_made_on_a_copy_and_leave_the_cells_own_state(shell: Any) -> None:
    run(shell, SETUP)
    found = run(shell, f"%%feedline --budget 20s\n{LOOP}")
    rungs = {rung["workers"]: rung for rung in found.record["ladder"]["rungs"]}
    assert rungs and min(rungs) == 0, found.record["notes"]
    assert shell.user_ns["seen"] == list(range(60))
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [c for c in children if "python" in Path(f"/proc/{c}/comm").read_text() and _is_stopped(c)]


def _is_stopped(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("line", ["--budget soon", "--budget -1s", "--budget infm"])
def test_a_budget_that_is_none_runs_nothing(shell: Any, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell(f"%%feedline {line}\nran = True", store_history=False)
    assert "--budget" in str(result.error_in_exec) and "ran" not in shell.user_ns


def test_records_are_written_where_they_can_be(shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, SETUP)
    found = run(shell, f"%%feedline --quick --record {tmp_path}/run.json\n{LOOP}")
    assert record.read(tmp_path / "run.json")["figures"] == found.record["figures"]
    found.save(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().startswith("<!DOCTYPE html>")
    assert run(shell, f"%%feedline --quick --record {tmp_path}/none/run.json\n{LOOP}").findings
    assert "cannot write" in capsys.readouterr().err
