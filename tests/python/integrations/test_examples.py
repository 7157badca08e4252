# SPDX-License-Identifier: Apache-2.0
"""The examples run in a short form, and produce the documented results."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import made_videos
import pytest

import feedline

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
HANG_S = 900


@pytest.fixture
def environment() -> dict[str, str]:
    """One thread, because the order in which floats are summed depends on the number of threads."""
    paths = [str(Path(feedline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}


def pretrain(folder: Path, environment: dict[str, str], *launcher: str) -> subprocess.Popen[str]:
    """Thirty steps over the only long text that every checkout has."""
    command = [sys.executable, *launcher, str(EXAMPLES / "pretrain/pretrain.py"), "--folder", str(folder)]
    command += ["--text", str(ROOT / "LICENSE"), "--steps", "30", "--checkpoint-steps", "6"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(run: subprocess.Popen[str]) -> str:
    printed, _ = run.communicate(timeout=HANG_S)
    assert run.returncode == 0, printed
    return printed


def steps(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "losses.jsonl").read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def stop_after_checkpoint(
    run: subprocess.Popen[str], folder: Path, number: signal.Signals, checkpoint: str = "checkpoint.pt"
) -> None:
    until = time.monotonic() + HANG_S
    try:
        # two more steps than are in the checkpoint
        while not (folder / checkpoint).exists() or not (folder / "losses.jsonl").exists() or len(steps(folder)) < 8:
            assert run.poll() is None and time.monotonic() < until, "the run does not begin"
            time.sleep(0.001)
    finally:
        run.send_signal(number)
        printed, _ = run.communicate(timeout=HANG_S)
    assert 8 <= len(steps(folder)) < 30, printed


def test_pretraining_resumes_to_the_same_losses_after_a_kill(tmp_path: Path, environment: dict[str, str]) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    stop_after_checkpoint(pretrain(killed, environment), killed, signal.SIGKILL)
    before = len(steps(killed))
    printed = finished(pretrain(killed, environment))
    assert re.search(r"resuming after step (6|12|18|24), with 1 rank\b", printed) and "held-out loss" in printed
    finished(pretrain(whole, environment))
    expected = steps(whole)
    assert [line["step"] for line in expected] == list(range(1, 31))
    assert all(line == expected[line["step"] - 1] for line in steps(killed)), "other rows or losses"
    assert len(steps(killed)) > before
    losses = [line["loss"] for line in expected]
    assert sum(losses[-5:]) / 5 < losses[0] - 0.5


def test_pretraining_with_two_ranks_resumes_with_one(tmp_path: Path, environment: dict[str, str]) -> None:
    """The rows are the same, and the losses differ only by the order in which floats are summed."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    two_ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    stop_after_checkpoint(pretrain(killed, environment, *two_ranks), killed, signal.SIGTERM)  # torchrun ends its ranks
    assert "with 1 rank\n" in finished(pretrain(killed, environment))
    finished(pretrain(whole, environment))
    expected = steps(whole)
    for line in steps(killed):
        assert line["rows"] == expected[line["step"] - 1]["rows"]
        assert line["loss"] == pytest.approx(expected[line["step"] - 1]["loss"], abs=0.02)


def policy(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Thirty steps on twelve episodes."""
    command = [sys.executable, str(EXAMPLES / "lerobot/policy.py"), "--folder", str(folder)]
    command += ["--episodes", "12", "--steps", "30", "--checkpoint-steps", "6"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_policy_resumes_to_the_same_losses_after_a_kill(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("pyarrow")
    made_videos.skip_without_ffmpeg()
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    stop_after_checkpoint(policy(killed, environment), killed, signal.SIGKILL)
    printed = finished(policy(killed, environment))
    assert re.search(r"resuming after step (6|12|18|24)\b", printed) and "held-out loss" in printed
    finished(policy(whole, environment))
    expected = steps(whole)
    assert [line["step"] for line in expected] == list(range(1, 31))
    assert all(line == expected[line["step"] - 1] for line in steps(killed)), "other rows or losses"


def speech(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Thirty steps on sixty utterances."""
    command = [sys.executable, str(EXAMPLES / "speech/speech.py"), "--folder", str(folder)]
    command += ["--utterances", "60", "--steps", "30", "--checkpoint-steps", "6"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_recogniser_resumes_to_the_same_losses_after_a_kill(tmp_path: Path, environment: dict[str, str]) -> None:
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    stop_after_checkpoint(speech(killed, environment), killed, signal.SIGKILL)
    printed = finished(speech(killed, environment))
    assert re.search(r"resuming after step (6|12|18|24)\b", printed) and "held-out utterances" in printed
    finished(speech(whole, environment))
    expected = steps(whole)
    assert [line["step"] for line in expected] == list(range(1, 31))
    assert all(line == expected[line["step"] - 1] for line in steps(killed)), "other rows or losses"
    losses = [line["loss"] for line in expected]
    assert sum(losses[-5:]) / 5 < sum(losses[:5]) / 5


def sft(folder: Path, environment: dict[str, str], *launcher: str, more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Thirty steps, with a separate cache folder."""
    command = [sys.executable, *launcher, str(EXAMPLES / "sft/sft.py"), "--folder", str(folder), "--chats", "200"]
    command += ["--steps", "30", "--checkpoint-steps", "6", *more]
    own = {**environment, "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_fine_tuning_with_two_ranks_resumes_with_one(tmp_path: Path, environment: dict[str, str]) -> None:
    for name in ("transformers", "accelerate"):
        pytest.importorskip(name, reason=f"{name} is not installed (tools/test --integrations installs it)")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    two_ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    stop_after_checkpoint(
        sft(killed, environment, *two_ranks), killed, signal.SIGTERM, "checkpoint-6/loader.json"
    )  # torchrun ends its ranks
    before = len(steps(killed))
    printed = finished(sft(killed, environment))
    assert re.search(r"resuming after step (6|12|18|24), with 1 rank\b", printed) and "What comes after" in printed
    finished(sft(whole, environment))
    expected = steps(whole)
    assert [line["step"] for line in expected] == list(range(1, 31)) and len(expected[0]["rows"]) == 8
    for line in steps(killed):
        assert line["rows"] == expected[line["step"] - 1]["rows"]
        assert line["loss"] == pytest.approx(expected[line["step"] - 1]["loss"], abs=0.02)
    assert len(steps(killed)) > before
    losses = [line["loss"] for line in expected]
    assert sum(losses[-5:]) / 5 < losses[0] - 1


def test_fine_tuning_with_trl_has_the_same_losses(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("trl", reason="TRL is not installed (tools/test --integrations installs it)")
    stock, trl = tmp_path / "stock", tmp_path / "trl"
    for folder, more in ((stock, ()), (trl, ("--trl",))):
        finished(sft(folder, environment, more=(*more, "--steps", "4")))
    assert [line["rows"] for line in steps(trl)] == [line["rows"] for line in steps(stock)]
    expected = [line["loss"] for line in steps(stock)]
    assert [line["loss"] for line in steps(trl)] == pytest.approx(expected, abs=1e-3)


def vlm(folder: Path, environment: dict[str, str], *launcher: str) -> subprocess.Popen[str]:
    """Thirty steps on eighty conversations, with a separate cache folder."""
    command = [sys.executable, *launcher, str(EXAMPLES / "vlm/vlm.py"), "--folder", str(folder)]
    command += ["--conversations", "80", "--steps", "30", "--checkpoint-steps", "6"]
    own = {**environment, "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_vision_language_training_with_two_ranks_resumes_with_one(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed (tools/test --integrations installs it)")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    two_ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    stop_after_checkpoint(vlm(killed, environment, *two_ranks), killed, signal.SIGTERM)  # torchrun ends its ranks
    before = len(steps(killed))
    printed = finished(vlm(killed, environment))
    assert re.search(r"resuming after step (6|12|18|24), with 1 rank\b", printed) and "correct is" in printed
    finished(vlm(whole, environment))
    expected = steps(whole)
    assert [line["step"] for line in expected] == list(range(1, 31)) and len(expected[0]["rows"]) == 4
    for line in steps(killed):
        assert line["rows"] == expected[line["step"] - 1]["rows"]
        assert line["loss"] == pytest.approx(expected[line["step"] - 1]["loss"], abs=0.02)
    assert len(steps(killed)) > before
    losses = [line["loss"] for line in expected]
    assert sum(losses[-5:]) / 5 < losses[0] - 1


def test_the_torchrun_example_proves_its_claims(environment: dict[str, str]) -> None:
    command = [sys.executable, str(EXAMPLES / "torchrun_resume/prove.py"), "--epochs", "3", "--seed", "2"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "killed" in run.stdout and "2 ranks resumed" in run.stdout
    assert "all 252 steps of 3 epochs have the plan's samples" in run.stdout


ENDS = """
import atexit, gc, pathlib, runpy, sys

def threads():
    return sorted(name.read_text().strip() for name in pathlib.Path("/proc/self/task").glob("*/comm"))

atexit.register(lambda: print("at the end:", *threads()))
gc.disable()  # or it might end them by chance
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_rank_of_the_torchrun_example_ends_without_threads_of_gloo(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """On a busy machine, such a thread may request the GIL while Python is exiting, which aborts the process."""
    command = [sys.executable, "-c", ENDS, str(EXAMPLES / "torchrun_resume/train.py"), str(tmp_path), "--epochs", "1"]
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    run = subprocess.run(command, env={**environment, **alone}, capture_output=True, text=True, timeout=HANG_S)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "model.pt").exists()
    names = run.stdout.split("at the end:")[1].split()
    assert names and not [name for name in names if "gloo" in name], names
