# SPDX-License-Identifier: Apache-2.0
"""examples/resnet50_amp.py on a CPU: in every precision, resumed, profiled, and as a rank of torchrun."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from running_processes import HANG_S

torch = pytest.importorskip("torch", reason="torch, which trains, is not installed")
SCRIPT = Path(__file__).parents[2] / "examples/resnet50_amp.py"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("resnet50_amp", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield module
    torch.set_num_threads(threads)


def words(folder: Path, *more: object) -> list[str]:
    small = ["--network", "small", "--side", "32", "--batch-size", "4", "--lr", "0.02", "--epochs", "100"]
    return [str(folder), *small, *map(str, more)]


def weights(checkpoint: Path) -> dict[str, Any]:
    saved: dict[str, Any] = torch.load(checkpoint)
    return saved["network"]


def test_it_is_a_resnet_50(example: ModuleType) -> None:
    with torch.device("meta"):
        network = example.resnet(1000)
    assert sum(one.numel() for one in network.parameters()) == 25_557_032  # torchvision's resnet50


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_run_in_two_parts_is_the_run(folder: Path, tmp_path: Path, example: ModuleType, precision: str) -> None:
    whole, parts = tmp_path / "whole.pt", tmp_path / "parts.pt"
    of = ["--precision", precision]
    found = example.main(words(folder, *of, "--steps", 6, "--checkpoint", whole))
    example.main(words(folder, *of, "--steps", 3, "--checkpoint", parts))
    again = example.main(words(folder, *of, "--steps", 6, "--checkpoint", parts))  # across the end of an epoch
    assert found["steps"] == again["steps"] == 6 and 0 <= found["waited"] <= 1
    assert found["loss"] == again["loss"]
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(parts)[name]), name
        assert value.dtype in (torch.float32, torch.int64)  # autocast does not change weights


def test_the_work_is_done_in_the_precision(folder: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    loss = torch.nn.functional.cross_entropy
    monkeypatch.setattr(
        torch.nn.functional, "cross_entropy", lambda out, labels: (seen.append(out.dtype), loss(out, labels))[1]
    )
    for precision in ("fp32", "bf16", "fp16"):
        example.main(words(folder, "--precision", precision, "--steps", 1))
    assert seen == [torch.float32, torch.bfloat16, torch.float16]


def test_what_compiles_is_trained(folder: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []  # compilation itself takes minutes of CPU time

    def stand_in(model: Any) -> Any:
        return lambda images: compiled.append(images.dtype) or model(images)

    monkeypatch.setattr(torch, "compile", stand_in)
    example.main(words(folder, "--precision", "bf16", "--steps", 2, "--compile"))
    assert compiled == [torch.float32] * 2


def test_images_come_in_channels_last(folder: Path, example: ModuleType) -> None:
    options = example.arguments(words(folder))
    loader, classes = example.make_loader(options, torch.device("cpu"))
    with loader:
        image, label = next(iter(loader))
        assert image.permute(0, 3, 1, 2).is_contiguous(memory_format=torch.channels_last)
        assert image.shape == (4, 32, 32, 3) and int(label.max()) < classes


def test_a_profile_is_one(folder: Path, tmp_path: Path, example: ModuleType) -> None:
    example.main(words(folder, "--precision", "fp32", "--steps", 9, "--profile", tmp_path))
    trace = json.loads((tmp_path / "trace.json").read_text())
    steps = {event["name"] for event in trace["traceEvents"] if str(event.get("name")).startswith("ProfilerStep#")}
    assert steps == {f"ProfilerStep#{number}" for number in (4, 5, 6, 7)}


def test_as_a_rank(folder: Path, tmp_path: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    rank_variables = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "MASTER_PORT": port}
    for name, value in {**rank_variables, "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, str(value))
    ranked = example.main(words(folder, "--precision", "fp32", "--steps", 3, "--checkpoint", tmp_path / "ranked.pt"))
    for name in rank_variables:
        monkeypatch.delenv(name)
    alone = example.main(words(folder, "--precision", "fp32", "--steps", 3, "--checkpoint", tmp_path / "alone.pt"))
    assert ranked["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    assert weights(tmp_path / "ranked.pt").keys() == weights(tmp_path / "alone.pt").keys()


@pytest.mark.skipif(os.environ.get("FEEDLINE_PROOFS") != "long", reason="starts processes: FEEDLINE_PROOFS=long")
def test_two_ranks_of_torchrun_continue_as_one(folder: Path, tmp_path: Path) -> None:
    def run(ranks: int, steps: int) -> dict[str, Any]:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        more = ["--steps", steps, "--checkpoint", tmp_path / "c.pt", "--print-every=1"]
        done = subprocess.run(
            [*torchrun, str(SCRIPT), *words(folder, *more)], capture_output=True, text=True, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    assert run(2, 2)["steps"] == 2
    assert run(1, 5)["steps"] == 5
