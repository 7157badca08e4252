# SPDX-License-Identifier: Apache-2.0
"""The command: one screen, JSON, exit status, --watch, --clean; it runs, starts and imports nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from made_hosts import GB, GPU_HOST, Host, build
from planted_hosts import PLANTED

from feedline.cli.console import wrapped
from feedline.cli.root import run

PLAN = ["--workers", "16", "--prefetch", "5", "--batch-mb", "500"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns arguments for the usual machine, whose file systems have fixed sizes, whatever this machine has left."""
    root, _ = build(Host(), tmp_path)
    (root.path / "dev/shm").mkdir(parents=True)
    monkeypatch.setattr("feedline.machine.system_files.SystemFiles", lambda path: type(root)(path, root._statvfs))
    return ["doctor", "--root", str(root.path)]


def run_doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = run([*arguments])
    return status, capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status, text = run_doctor(capsys, *arguments, "--json")
    return status, json.loads(text)


def test_the_screen_has_the_machine_the_plan_and_the_worst_first(host: list[str], capsys: Any) -> None:
    status, text = run_doctor(capsys, *host, *PLAN, "--workers", "40")
    lines = text.splitlines()
    assert status == 1 and lines[0].startswith("machine  Linux 6.1.0-18-amd64")
    assert any(line.startswith("cpu      16 usable of 16, 8 cores") for line in lines)
    assert any(line.startswith("memory   58.0 GB left of 64.0 GB") for line in lines)
    assert any(line.startswith("planned  40 workers x 5 prefetched batches of 500 MB: 101.0 GB") for line in lines)
    assert any(line.startswith("start at num_workers=") for line in lines)
    first = next(line for line in lines if line.startswith(("critical", "warning", "note")))
    assert first == "critical memory_needed: needs 101.0 GB, but 58.0 GB is left"
    assert sum(line.startswith("         -> ") for line in lines) >= 2


@pytest.mark.parametrize(
    ("options", "planned"),
    [
        (("--dataset-mb", "2000", "--workers", "30"), "30 workers x 2 prefetched batches, and 2.0 GB of the "),
        (("--dataset-mb", "2000"), "15 workers x 2 prefetched batches, and 2.0 GB of the dataset in each worker: 30.0"),
        (("--pin",), "15 workers x 2 prefetched batches, page-locked"),
    ],
)
def test_one_part_of_a_plan_is_a_plan(host: list[str], capsys: Any, options: tuple[str, ...], planned: str) -> None:
    _, text = run_doctor(capsys, *host, *options)
    assert f"planned  {planned}" in text
    assert ("dataset_copies" in text) == ("--workers" in options)


@pytest.mark.parametrize("width", [80, 40, 200])
def test_a_terminal_gets_lines_that_fit_and_all_their_words(width: int, host: list[str], capsys: Any) -> None:
    run(["doctor", *host, "--num-workers", "16", "--prefetch", "5", "--batch-mb", "500", "--pin"])
    for line in capsys.readouterr().out.splitlines():
        made = wrapped(line, width, 9)
        assert " ".join(" ".join(made).split()) == " ".join(line.split())
        longest = max((len(word) for word in line.split()), default=0)
        assert all(len(one) <= max(width, longest + 12) for one in made)
    fix = "         -> Use docker run --shm-size=8g (or --ipc=host); in Kubernetes, mount an emptyDir of medium Memory"
    assert [one[:12] for one in wrapped(fix, 80)] == ["         -> ", " " * 12]
    assert wrapped("", 80) == [""]


def test_libraries_of_audio_and_videos_are_listed(host: list[str], tmp_path: Path) -> None:
    """In other processes, because the libraries stay loaded."""
    command = [sys.executable, "-m", "feedline", *host]
    absent = {"FEEDLINE_FFMPEG": str(tmp_path), "FEEDLINE_LIBSNDFILE": str(tmp_path / "libsndfile.so")}
    for environment in (dict(os.environ), os.environ | absent):
        text, found = (
            subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=True).stdout
            for options in ([], ["--json"])
        )
        video, audio = json.loads(found)["video"], json.loads(found)["audio"][0]
        for kind, library in (("video", video), ("audio", audio)):
            line = next(line for line in text.splitlines() if line.startswith(kind))
            assert (library["version"] or f"no {library['name']}") in line
            assert bool(library["version"]) != bool(library["problem"])
    assert not video["version"] and not audio["version"]


def test_json_agrees(host: list[str], capsys: Any) -> None:
    status, run_doctor = as_json(capsys, *host, *PLAN, "--pin")
    assert status == 1 and run_doctor["schema"] == "feedline-doctor-1" and run_doctor["has_problems"]
    needs = run_doctor["planned"]["needs"]
    assert needs["waiting"] == 40 * GB and needs["in_hand"] == 2 << 29
    assert needs["least"] == 40 * GB + (2 << 29) and needs["pinned_later"] == 78 << 29
    assert needs["most"] == needs["least"] + needs["pinned_later"]
    assert {"code", "severity", "evidence", "fix", "about"} == set(run_doctor["findings"][0])
    assert run_doctor["machine"]["cpus"]["threads"] == 16


def test_fine_is_0_and_usage_is_2_and_no_source_is_3(host: list[str], tmp_path: Path, capsys: Any) -> None:
    assert run_doctor(capsys, *host)[0] == 0
    assert run([*host, "--batch-mb", "nan"]) == 2
    assert run([*host, str(tmp_path / "nowhere")]) == 3
    assert "does not exist" in capsys.readouterr().err


def test_notes_are_advice_and_leave_the_status_alone(host: list[str], capsys: Any) -> None:
    status, seen = as_json(capsys, *host, "--workers", "0", "--batch-mb", "1")
    assert [finding["severity"] for finding in seen["findings"]] == ["note"] and status == 0


def test_a_source_and_a_script_after_dashes(host: list[str], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(bytes(1000))
    script = tmp_path / "train.py"
    script.write_text("from torch.utils.data import DataLoader\nl = DataLoader(d, num_workers=4, prefetch_factor=0)\n")
    status, seen = as_json(capsys, *host[:-2], "--root", host[-1], str(tmp_path / "photos"))
    assert seen["source"]["files"] == 1 and seen["source"]["total_bytes"] == 1000
    status = run([*host, "--json", str(tmp_path / "photos"), "--", "python", str(script)])
    seen = json.loads(capsys.readouterr().out)
    assert status == 1 and seen["findings"][0]["code"] == "refused_arguments"
    assert seen["source"]["files"] == 1 and seen["planned"]["workers"] == 4


def test_watch_continues_until_ctrl_c(host: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert run([*host, "--watch", "--interval", "7", "--json"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert looks == [7.0] * 3 and [json.loads(line)["schema"] for line in lines] == ["feedline-doctor-1"] * 3
    looks.clear()
    assert run([*host, "--watch"]) == 130
    assert capsys.readouterr().out.count("machine  Linux") == 1, "nothing has changed meanwhile"


@pytest.mark.parametrize(("answer", "is_there"), [("y", False), ("n", True), ("", True)])
def test_clean_shows_asks_and_removes(
    answer: str, is_there: bool, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    import click

    _, made = PLANTED["a killed run's shared memory"]
    root, _ = build(made, tmp_path)
    (root.path / "dev/shm/keep").write_bytes(b"x")
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda _prompt: answer)
    status = run(["doctor", "--root", str(root.path), "--clean"])
    text = capsys.readouterr().out
    assert "torch_999_1_2" in text and "26.0 h" in text
    assert (root.path / "dev/shm/torch_999_1_2").exists() == is_there and (root.path / "dev/shm/keep").exists()
    assert status == (1 if is_there else 0)


def test_clean_leaves_what_was_changed_since(tmp_path: Path) -> None:
    from feedline.doctor.leftovers import leftovers, remove

    root, _ = build(Host(left={"dev/shm/torch_999_1_2": (1000, 26.0), "tmp/pymp-abcdefgh": (10, 30.0)}), tmp_path)
    seen = leftovers(root)
    assert {one.path.name for one in seen} == {"torch_999_1_2", "pymp-abcdefgh"}
    os.utime(root.path / "dev/shm/torch_999_1_2")
    _, remaining = remove(seen, os.geteuid())
    assert (
        len(remaining) == 1 and "has changed since" in remaining[0] and not (root.path / "tmp/pymp-abcdefgh").exists()
    )
    assert remove(seen[:1], 12345)[1] == [f"{seen[0].path} belongs to user {os.geteuid()}"]


def test_nothing_is_left_over_where_processes_cannot_be_seen(tmp_path: Path) -> None:
    from feedline.doctor.leftovers import leftovers

    root, _ = build(Host({"proc/4711/maps": None}, left={"dev/shm/torch_999_1_2": (1000, 26.0)}), tmp_path)
    assert leftovers(root) == ()


_ALONE = """
import sys
started = []
def hook(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"):
        started.append(event)
    if event in ("socket.connect", "socket.getaddrinfo"):
        started.append(event)
sys.addaudithook(hook)
from feedline.cli.root import run
status = run(["doctor", "--", "python", sys.argv[1]])
print("status", status, "started", started, "torch", "torch" in sys.modules)
"""


def test_this_machine_is_seen_without_torch_and_without_starting_anything(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it was run')\n")
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, str(script)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "started [] torch False" in done.stdout, done.stdout + done.stderr
    assert "it was run" not in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_a_driver_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    from feedline.doctor.examination import Patient

    class Slow:
        unavailable = ""

        def read(self) -> tuple[Any, ...]:
            time.sleep(5)
            return ()

    began = time.monotonic()
    slow = Patient(Slow(), patience_s=0.05)
    assert slow.read() == () and "did not respond within 0.05 s" in slow.unavailable
    assert time.monotonic() - began < 4


def test_a_gpu_is_on_the_screen(tmp_path: Path) -> None:
    from made_hosts import examined

    from feedline.doctor import screen

    text = "\n".join(line.text for line in screen.lines(examined(GPU_HOST, tmp_path)))
    assert "gpu 0    NVIDIA H100 80GB HBM3, 84.0 GB of 85.0 GB free, 0% utilization" in text
    assert "pcie     0000:17:00.0: 16 of 16 lanes, 2.5 of 32 GT/s" in text


def test_the_command_loads_nothing_of_run_records() -> None:
    """Reading packages and their metadata takes as long as the rest of the examination."""
    code = (
        "import sys\nfrom feedline.cli import main\nsys.argv = ['feedline', 'doctor', '--json']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('feedline.record', 'feedline.env.snapshot', 'numpy') if name in sys.modules], "
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]", done.stderr
