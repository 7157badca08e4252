# SPDX-License-Identifier: Apache-2.0
"""Scripts with one mistake each: it is named first, with its line. Sound ones: nothing is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_hosts import GPU_HOST, MadeGpus, build
from planted_scripts import PLANTED, SOUND, Planted

from feedline.doctor.examining import examine
from feedline.doctor.judging import judge
from feedline.doctor.script.command import parsed
from feedline.findings import Finding


def found(planted: Planted, folder: Path) -> tuple[Finding, ...]:
    path = folder / "train.py"
    path.write_text(planted.text)
    root, _ = build(GPU_HOST, folder)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", str(path), *planted.words])
    return judge(replace(seen.case, machine=replace(seen.case.machine, python=planted.python)))


@pytest.mark.parametrize(("code", "planted"), PLANTED.values(), ids=PLANTED)
def test_a_mistake_is_named_first_with_its_line(code: str, planted: Planted, tmp_path: Path) -> None:
    first, *_ = found(planted, tmp_path)
    assert first.code == code
    if planted.line:
        number = planted.text.rindex(planted.line)
        assert f"line {planted.text.count(chr(10), 0, number) + 1}" in first.text


@pytest.mark.parametrize("planted", SOUND.values(), ids=SOUND)
def test_nothing_is_said_of_a_sound_script(planted: Planted, tmp_path: Path) -> None:
    assert [(finding.code, finding.evidence) for finding in found(planted, tmp_path)] == []


def test_there_are_as_many_as_promised() -> None:
    assert len(PLANTED) >= 20 and len(SOUND) >= 20


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe\0bad", "train.py"), (b"x = (" * 3000, "train.py"), (b"a\0b", "train.py"), (b"if x:\n", "line 1")],
)
def test_what_is_no_python_is_a_finding(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    root, _ = build(GPU_HOST, tmp_path)
    (finding,) = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", str(path)]).findings
    assert (finding.code, finding.severity) == ("script_unreadable", "error") and words in finding.text


def test_a_script_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    root, _ = build(GPU_HOST, tmp_path)
    (finding,) = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", "none.py"]).findings
    assert finding.code == "script_unreadable" and "none.py" in finding.text


def test_a_command_without_a_script_is_said_not_to_be_seen(tmp_path: Path) -> None:
    root, _ = build(GPU_HOST, tmp_path)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["python", "-m", "train"])
    assert not seen.findings and any("names no file" in sentence for sentence in seen.unseen)


def test_ranks_come_from_the_launcher() -> None:
    command = parsed(["torchrun", "--nproc_per_node=8", "train.py", "--epochs", "3"])
    assert (command.script, command.arguments, command.ranks) == ("train.py", ("--epochs", "3"), 8)
    assert parsed(["accelerate", "launch", "--num_processes", "2", "t.py"]).ranks == 2
    assert parsed(["python", "train.py", "--nproc_per_node", "8"]).ranks is None
