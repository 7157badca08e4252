# SPDX-License-Identifier: Apache-2.0
"""Every correction of common advice is in the output of a command, and everything that docs/doctor.md lists exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from made_hosts import GPU_HOST, Host, MadeGpus, build

from feedline.cli.commands.explain import pages_of
from feedline.cli.root import run
from feedline.doctor.examination import examine

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documents are not here", allow_module_level=True)

ROWS = re.findall(r"^\| (W\d+): (.+?) (?<!\\)\| (.+?) (?<!\\)\| (.+?) \|$", (DOCS / "doctor.md").read_text(), re.M)


def anchors(document: Path) -> set[str]:
    """Returns anchors as GitHub creates them from headings."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("name", "said", "so", "where"), ROWS, ids=[row[0] for row in ROWS])
def test_what_a_correction_names_is_there(name: str, said: str, so: str, where: str) -> None:
    codes, links = re.findall(r"`(\w+)`", where), re.findall(r"\]\(([^)]+)\)", where)
    assert codes or links
    assert set(codes) <= {page.code for page in pages_of()}
    for link in links:
        file, _, anchor = link.partition("#")
        document = DOCS / (file or "doctor.md")
        assert document.is_file() and (not anchor or anchor in anchors(document)), link


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("W1", "prefetch_deep", "prefetch"),
        ("W2", "step_timed_as_loading", "were loaded in advance: leave them out"),
        ("W4", "non_blocking_without_pin", "pin_memory"),
        ("W5", "pin_without_non_blocking", "A thread of the main process, not the workers, copies"),
        ("W6", "pin_without_copy", "a comparison of pin_memory=True and False does not predict training"),
        ("W7", "collate", "in the workers if there are any"),
        ("W10", "nested_pool", "daemonic processes are not allowed to have children"),
        ("W14", "staged_in_memory", "use memory that cannot be reclaimed"),
        ("W16", "ranks_without_gpu", "--nproc_per_node does not detect GPUs"),
        ("W16", "ranks_without_gpu", "NCCL itself is selected by init_process_group('nccl')"),
        ("W16", "gpu_not_passed", "An image never contains a driver"),
        ("W17", "gpu_not_passed", "--gpus all --shm-size"),
        ("W18", "ended_channel", "torch 2.5"),
        ("W20", "precision_not_reduced", "Autocast does not silently fall back to float32"),
        ("W20", "deprecated_amp", "Autocast does not silently use float32"),
        ("W25", "renamed_option", "experimental_optimization.autotune is now options.autotune"),
        ("W27", "oversubscribed", "loading on 70 to 80 % of the cores, a common rule, can already slow this thread"),
    ],
)
def test_the_page_of_a_finding_corrects_the_advice(
    name: str, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = next(row for row in ROWS if row[0] == name)
    assert f"`{code}`" in row[3], "docs/doctor.md names the finding"
    assert run(["explain", code]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("iotop -oP", "iotop needs root"),  # W25
        ("nvidia-smi dmon -s p,u", "letters without commas (-s pucvmet)"),
        ("sudo iotop", "iotop needs root"),
        ("iostat -x 1", "100 % busy is not at its limit"),  # W26
        ("find . | sort | xargs tar cf all.tar", "xargs splits a long list"),  # W12
        ("conda install pytorch pytorch-cuda=11.8 -c pytorch -c nvidia", "ended with torch 2.5"),  # W18
        ("mamba install --channel=pytorch torchvision", "ended with torch 2.5"),
        ("conda create -n env python=3.9", "does not name a Python file"),
    ],
)
@pytest.mark.parametrize("shell", [False, True])
def test_doctor_corrects_the_commands_of_guides(words: str, said: str, shell: bool, tmp_path: Path) -> None:
    root, _ = build(GPU_HOST, tmp_path)
    seen = examine(root, MadeGpus(GPU_HOST), {}, None, ["bash", "-c", words] if shell else words.split())
    assert not seen.findings and any(said in sentence for sentence in seen.unseen), seen.unseen


def test_the_help_of_pack_corrects_xargs(capsys: pytest.CaptureFixture[str]) -> None:
    """W12."""
    assert run(["pack", "--help"]) == 0
    assert "each tar replaces the previous one" in " ".join(capsys.readouterr().out.split())


def test_the_advice_names_the_thread_that_is_left(tmp_path: Path) -> None:
    """W27: 16 threads of 16 cores are not all for loading."""
    root, _ = build(Host(), tmp_path)
    advised = examine(root, MadeGpus(Host()), {}).advice
    assert "one thread is left for the training loop" in str(advised)
