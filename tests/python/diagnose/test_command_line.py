# SPDX-License-Identifier: Apache-2.0
"""Errors in the command line are reported before any work; experiments show their progress, and end at Ctrl-C."""

import importlib
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from running_processes import HANG_S, processes_with, until
from watched import FEEDLINE, watched

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")
pytest.importorskip("rich", reason="rich, for the command line, is not installed")

from rich.console import Console

SLOW = """
import sys, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.tensor(i)
if __name__ == "__main__":
    for epoch in range({epochs}):
        for batch in torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=1):
            print("step", flush=True)
    print("done", flush=True)
"""
LONG_S = HANG_S  # seconds of experiments, or of a script: a command that takes this long was not interrupted


def started(folder, *options, epochs=1, **popen):
    script = folder / "train.py"
    script.write_text(SLOW.format(epochs=epochs))
    command = [*FEEDLINE, "diagnose", "--budget", f"{LONG_S}s", *options, "--", sys.executable, str(script)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, **popen), str(script)


def read_until(run, word):
    for line in run.stdout:
        if word in line:
            return
    pytest.fail(f"it ended before it said {word!r}")


@pytest.mark.parametrize(
    ("option", "meant"), [("--bugdet", "--budget"), ("--quik", "--quick"), ("--outptu", "--output")]
)
def test_an_option_that_is_none_is_no_command(option, meant):
    done = subprocess.run([*FEEDLINE, "diagnose", option, "--", "true"], capture_output=True, text=True)
    assert done.returncode == 2 and option in done.stderr and meant in done.stderr


def test_options_of_the_command_are_its_own(tmp_path):
    done = subprocess.run(
        [
            *FEEDLINE,
            "diagnose",
            "--quick",
            sys.executable,
            "-c",
            "import sys; print(sys.argv[1:])",
            "--bugdet",
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout == "['--bugdet', '--json']\n"


@pytest.mark.parametrize("target", ["nowhere/found.json", "a_file/found.json"])
def test_an_output_that_cannot_be_written_is_reported_before_the_command_runs(tmp_path, target):
    (tmp_path / "a_file").write_text("")
    ran, output = tmp_path / "ran", tmp_path / target
    done = subprocess.run(
        [*FEEDLINE, "diagnose", "--quick", "--output", output, "--", "touch", ran], capture_output=True, text=True
    )
    assert done.returncode == 2 and str(output) in done.stderr and not ran.exists()


def test_looking_at_the_output_leaves_what_is_there(tmp_path):
    old, fresh = tmp_path / "old.json", tmp_path / "fresh.json"
    old.write_text("kept")
    for output in (old, fresh):
        done = subprocess.run([*FEEDLINE, "diagnose", "--output", output, "--", "/nowhere"], capture_output=True)
        assert done.returncode == 127
    assert old.read_text() == "kept" and not fresh.exists()


@pytest.mark.parametrize("status", [0, 5])
def test_an_output_that_is_lost_meanwhile_is_no_success(tmp_path, status):
    folder = tmp_path / "results"
    folder.mkdir()
    script = f"import os, sys; os.rmdir({str(folder)!r}); sys.exit({status})"
    command = [*FEEDLINE, "diagnose", "--quick", "--output", folder / "found.json", "--", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == (status or 3) and "cannot write" in done.stderr


def test_ctrl_c_ends_experiments_and_all_their_processes(tmp_path):
    run, script = started(tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    read_until(run, "done")
    until(lambda: list(tmp_path.glob("feedline-diagnose-*/experiments.json")), "an experiment")
    asked = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LONG_S)
    assert run.returncode == 130 and time.monotonic() - asked < LONG_S / 4
    assert processes_with(script) == [] and list(tmp_path.glob("feedline-diagnose-*")) == []


def test_a_script_that_is_interrupted_is_followed_by_no_experiments(tmp_path):
    run, script = started(tmp_path, epochs=1000, stderr=subprocess.PIPE, start_new_session=True)
    read_until(run, "step")
    asked = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=LONG_S)
    assert time.monotonic() - asked < LONG_S / 2 and run.returncode in (-signal.SIGINT, 130, 1)
    assert "no experiments were run, because the profile was interrupted" in err and "steps in" in err
    assert processes_with(script) == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_gets_lines_that_fit_and_a_file_whole_ones(is_terminal, monkeypatch, capsys):
    verb = importlib.import_module("feedline.cli.commands.diagnose")
    monkeypatch.setattr(verb, "ERR", Console(stderr=True, force_terminal=is_terminal, width=50))
    text = "  step 3 ms\n\n        -> num_workers=4. Ask for more at a time, or keep what was fetched in files near.\n"
    verb._print(text)
    folded = text.replace(" or keep", "\n           or keep")
    assert capsys.readouterr().err == (folded if is_terminal else text) + "\n"


def test_experiments_show_what_they_try_on_a_terminal_alone(tmp_path):
    near, far = pty.openpty()
    run, _ = started(tmp_path, stderr=far, start_new_session=True)
    os.close(far)
    read_until(run, "done")
    seen = b""
    while b"trying num_workers=" not in seen:
        assert select.select([near], [], [], LONG_S)[0]
        seen += os.read(near, 4096)
    run.send_signal(signal.SIGINT)
    run.stdout.close()
    run.wait(timeout=LONG_S)
    os.close(near)
    assert b"s left" in seen
    _, _, err, _ = watched(tmp_path, SLOW.format(epochs=1), "--budget", "3s")
    assert "trying" not in err
