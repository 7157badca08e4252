# SPDX-License-Identifier: Apache-2.0
"""GPU data in a run record, read by the engine from a simulated NVML."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import made_nvml
import pytest

from feedline import _engine
from feedline.machine.gpu_facts import gpu_facts


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_nvml.build(tmp_path_factory.mktemp("nvml"))


def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    (tmp_path / "gpus").write_text(lines)
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus"))


def test_two_gpus_of_which_the_second_is_another_users(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, monkeypatch, "gpus 2\ngeneration 0 5\nfail Width 3\nfail Handle 4 1\n")
    assert gpu_facts(tmp_path, str(library)) == (
        {
            "gpus": 2,
            "gpu_driver": "570.10",
            "gpu0_name": "Fake GPU 0",
            "gpu0_memory_bytes": 80 << 30,
            "gpu0_pcie_generation": 5,
        },
        None,
    )


def test_what_is_not_reported_is_left_out(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, "fail Name 3\nfail Memory 3\nfail Version 3\nfail Generation 3\nfail Width 3\n")
    assert gpu_facts(tmp_path, str(library)) == ({"gpus": 1}, None)
    script(tmp_path, monkeypatch, "gpus 0\n")
    assert gpu_facts(tmp_path, str(library)) == ({"gpus": 0, "gpu_driver": "570.10"}, None)


def test_a_driver_of_years_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early = made_nvml.build(tmp_path, "-DVERY_EARLY")
    script(tmp_path, monkeypatch, "gpus 1\n")
    facts, note = gpu_facts(tmp_path, str(early))
    assert facts["gpu0_name"] == "Fake GPU 0" and "gpu0_pcie_width" not in facts and note is None


@pytest.mark.parametrize(("fails", "said"), [("Init 9", "--gpus all"), ("Init 18", "reboot"), ("Count 4", "count")])
def test_a_driver_that_does_not_work_is_reported(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, said: str
) -> None:
    script(tmp_path, monkeypatch, f"fail {fails}\n")
    facts, note = gpu_facts(tmp_path, str(library))
    assert facts["gpus"] is None and note is not None and said in note


def test_without_the_library_there_are_none_unless_the_kernel_knows_some(tmp_path: Path) -> None:
    assert gpu_facts(tmp_path, "libno-such-thing.so.1") == ({"gpus": 0}, None)
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    facts, note = gpu_facts(tmp_path, "libno-such-thing.so.1")
    assert facts == {"gpus": None} and note is not None
    libc = ctypes.util.find_library("c")  # has none of the functions
    facts, note = gpu_facts(tmp_path, libc or "libc.so.6")
    assert facts == {"gpus": None} and note is not None and "lacks NVML's calls" in note


def test_nothing_is_sampled_for_it(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, monkeypatch, "fail Pcie 15\n")  # would count the GPU as lost
    reader = _engine.GpuReader(str(library))
    assert reader.driver() == {"is_there": True, "version": "570.10", "gpus": 1}
    assert [gpu["pcie_width"] for gpu in reader.gpus()] == [16] and reader.notes() == []
