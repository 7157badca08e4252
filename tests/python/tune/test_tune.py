# SPDX-License-Identifier: Apache-2.0
"""`feedline tune` with real small scripts and sources: it finds the best settings, and leaves nothing over."""

import html
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is tuned, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

import torch
from running_processes import HANG_S, processes_with, until

import feedline
from feedline import record

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
# Reading waits, so more workers make more batches even on a busy machine; nothing in it can be pickled.
SCRIPT = """
import atexit, sys, time, torch
class Slow(torch.utils.data.Dataset):
    def __init__(self): self.unpicklable = lambda: 0
    def __len__(self): return 800
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((8,), i)
if __name__ == "__main__":
    atexit.register(lambda: print("at exit", flush=True))
    for epoch in range(EPOCHS):
        for batch in torch.utils.data.DataLoader(Slow(), batch_size=4, shuffle=True, num_workers=1):
            time.sleep(0.001)
    print("the end")
    sys.exit(5)
"""

DEVICE = str(Path(__file__).parents[2] / "scenarios" / "scripts")
ON_A_DEVICE = f"""
import sys, time
sys.path.insert(0, {DEVICE!r})
import stand_in_device, torch
stand_in_device.IN_A_COPY = "raise"
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 800
    def __getitem__(self, i):
        pass
        time.sleep(0.01)
        return torch.full((8,), i)
if __name__ == "__main__":
    torch.zeros(2).to("standin")
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=1, pin_memory=True):
        batch.to("standin", non_blocking=True)
"""


@pytest.fixture
def tune(tmp_path):
    """Tunes a script; returns (exit status, standard output, standard error)."""

    def tune(source, *options):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(source))
        command = [*FEEDLINE, "tune", *map(str, options), "--", sys.executable, script]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=2 * HANG_S)
        assert processes_with(str(script)) == []
        assert list(tmp_path.glob("feedline-tune-*")) == []
        return done.returncode, done.stdout, done.stderr

    return tune


def gains_by_a_second_worker(found):
    """The settings were measured, in the available time, and confirmed by the last comparison."""
    if found["outcome"] != "gain":
        return False
    (two,) = [rung for rung in found["rungs"] if rung["change"] == "2 workers"] or [{"kept": False}]
    return two["kept"] and two["comparison"]["ratio"] > 1.3 and two["comparison"]["low"] > 1


def test_a_script_is_tuned_as_it_is_and_ended(tune, tmp_path):
    output, run, page = tmp_path / "tuned.json", tmp_path / "run.json", tmp_path / "run.html"
    # a batch has 256 bytes, so more than 3 workers, or much deeper prefetching, cannot be measured
    options = ["--memory", "2000", "--settings", output, "--record", run, "--json"]
    for budget in ("20s", "120s"):  # a busy machine needs more
        status, out, err = tune(SCRIPT.replace("EPOCHS", "1000"), "--budget", budget, *options)
        assert status == 0, err
        assert out.startswith("at exit\n") and "the end" not in out
        found = json.loads(out.removeprefix("at exit\n"))
        if gains_by_a_second_worker(found):
            break
    assert found["schema"] == "feedline.tune/1" and found["refused"] is None
    assert found["base"]["num_workers"] == 1 and found["best"]["num_workers"] in (2, 3)
    assert any("memory budget" in rung["why"] for rung in found["rungs"])
    assert gains_by_a_second_worker(found)
    assert found["rungs"][0]["kept"] and found["rungs"][0]["comparison"] is None
    assert all(rung["why"] for rung in found["rungs"])
    assert 1 <= found["step_ms"] < 100
    base = found["rungs"][0]
    assert base["predicted"] > 0
    assert base["wait_ms"]["p50"] > 5

    ours = found["best"]["loader"] == "feedline"
    arguments = feedline.load_settings(output, for_="feedline.DataLoader" if ours else "torch.DataLoader")
    assert arguments["num_workers"] == found["best"]["num_workers"] and "batch_size" not in arguments
    kind = feedline.DataLoader if ours else torch.utils.data.DataLoader
    loader = kind(list(range(8)), batch_size=8, **arguments)
    assert [batch.tolist() for batch in loader] == [list(range(8))]

    written = record.read(run)
    rungs = {rung["workers"]: rung for rung in written["ladder"]["rungs"]}
    assert {0, 1, 2} <= set(rungs) and rungs[2]["batches_per_s"] > 1.3 * rungs[1]["batches_per_s"]
    assert written["verb"] == "tune" and written["figures"][0]["name"] == "samples_per_s"
    subprocess.run([*FEEDLINE, "report", run, "-o", page], check=True, capture_output=True)
    assert "Search over workers" in page.read_text()
    assert found["conclusion"] in html.unescape(page.read_text()) and "→ " in page.read_text()


def test_a_script_may_continue_to_its_own_end(tune):
    status, out, _ = tune(
        SCRIPT.replace("EPOCHS", "1").replace("800", "300"), "--budget", "3s", "--keep-running", "--cpus", 1
    )
    assert status == 5
    assert "the end\nat exit\n" in out and "1 worker" in out


def test_a_script_that_uses_a_device_is_tuned_without_it(tune):
    source = ON_A_DEVICE.replace('"raise"', '"abort"')
    status, out, err = tune(source, "--budget", "6s", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["base"]["pin_memory"] and found["best"]["pin_memory"]
    assert not [rung for rung in found["rungs"] if rung["change"] == "pinned memory"]
    assert any("without page-locked memory" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import torch, sys; print('hello'); sys.exit(7)", "ended with status 7"),
        ("import torch.utils.data; raise ValueError('my own mistake')", "my own mistake"),
        (ON_A_DEVICE.replace("pass", "torch.zeros(2).to('standin')").replace("num_workers=1", "num_workers=0"),
         "reading samples uses the GPU, which a forked process cannot use"),
        ("""
         import torch
         class Once(torch.utils.data.IterableDataset):
             def __init__(self): self.numbers = iter(range(40))
             def __iter__(self): return self.numbers
         for batch in torch.utils.data.DataLoader(Once(), batch_size=4): pass
         """, "cannot be iterated a second time"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_reported_and_saves_nothing(tune, tmp_path, source, said):
    output = tmp_path / "tuned.json"
    status, out, err = tune(source, "--budget", "4s", "--settings", output)
    assert status == 3 and said in err
    assert not output.exists()
    assert ("hello" in out) == ("hello" in source)


def test_ctrl_c_leaves_no_process(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("EPOCHS", "1000"))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*FEEDLINE, "tune", "--budget", f"{HANG_S}s", "--", sys.executable, str(script)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until(lambda: list(tmp_path.glob("feedline-tune-*/*.held")), "it measures from then on")
    assert len(processes_with(str(script))) >= 3  # the script, the copy, and this process
    process.send_signal(signal.SIGINT)
    assert process.wait(HANG_S) == 130
    assert b"KeyboardInterrupt" not in process.stderr.read()
    until(lambda: not processes_with(str(script)), "nothing is left")
    assert list(tmp_path.glob("feedline-tune-*")) == []


def test_a_source_is_tuned(folder, tmp_path):
    output, run = tmp_path / "tuned.json", tmp_path / "run.json"
    command = [*FEEDLINE, "tune", folder, "--budget", "3s", "--size", "32", "--batch-size", "4", "--json"]
    command += ["--batch-size-range", "2:8", "--memory", "64MiB", "--settings", output, "--record", run]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=2 * HANG_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["base"]["loader"] == "source" and found["base"]["auto"]
    assert found["rungs"][0]["setting"] == found["base"]
    numbers = [rung["setting"]["num_workers"] for rung in found["rungs"] if not rung["setting"]["auto"]]
    assert found["base"]["num_workers"] in numbers  # the same number, without the effects of "auto"
    assert all(2 <= rung["setting"]["batch_size"] <= 8 for rung in found["rungs"])
    assert all((rung["setting"]["memory_budget"] or 0) <= 64 << 20 for rung in found["rungs"])
    assert found["rungs"][0]["predicted"] > 0
    assert found["base"]["num_workers"] in {rung["workers"] for rung in record.read(run)["ladder"]["rungs"]}
    assert output.exists() == (found["outcome"] == "gain") == (found["gain"] is not None and found["gain"]["low"] > 1)
    if found["outcome"] != "gain":  # of 21 small photos
        assert found["settings"] is None and "nothing was saved" in done.stderr
        return
    arguments = feedline.load_settings(output, for_="loader", source=folder)
    dataset = feedline.open(folder).random_resized_crop(32)
    with dataset.loader(output="numpy", **{"batch_size": 7, **arguments}) as loader:
        assert sum(len(label) for _, label in loader) == 21


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["python", "train.py"], "put -- before"),
        (["--budget", "soon", "x"], "60s"),
        (["--batch-size-range", "9:3", "x"], "32:256"),
        (["--memory", "much", "x"], "512 MB"),
        (["train.py"], "feedline tune -- python train.py"),
        (["bash"], "feedline tune -- bash"),
        (["--keep-running", "x"], "requires a command"),
        (["--settings", "/no/such/folder/tuned.json", "x"], "the folder /no/such/folder does not exist"),
        (["--bugdet", "60s", "x"], "--budget"),
        (["--", "--bugdet", "60s", "touch", "RAN"], "options of feedline tune before --"),
        (["--settings", "/", "--", "touch", "RAN"], "is a folder"),
        (["--record", "/", "--", "touch", "RAN"], "is a folder"),
        (["--settings", "/proc/tuned.json", "--", "touch", "RAN"], "cannot write into /proc"),
        (["--settings", "s3://bucket/tuned.json", "--", "touch", "RAN"], "is a URL"),
        (["--settings", "x.json", "--record", "./x.json", "--", "touch", "RAN"], "are the same file"),
        (["--batch-size", "8", "--", "touch", "RAN"], "--batch-size requires a SOURCE"),
        (["--size", "8", "--", "touch", "RAN"], "--size requires a SOURCE"),
    ],
)
def test_a_wrong_call_reports_what_is_right_before_anything_runs(arguments, said, tmp_path):
    done = subprocess.run([*FEEDLINE, "tune", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and said in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["/no/such/folder", "az://bucket/train", "http://127.0.0.1:1/train.tar"])
def test_a_source_that_cannot_be_read_is_named_and_nothing_is_written(source, tmp_path):
    output = tmp_path / "tuned.json"
    done = subprocess.run([*FEEDLINE, "tune", "--settings", output, source], capture_output=True, text=True)
    assert done.returncode in (2, 3) and source in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_from_before_stay_where_nothing_is_shown_to_gain(folder, tmp_path, monkeypatch, capsys):
    """Simulated: nothing gains. The command says so, and that the file is not of this run."""
    from made_machine import Machine, tune

    from feedline.cli.root import run
    from feedline.tune import source
    from feedline.tune.settings import SOURCE, Limits, Setting

    found = tune(Machine(lambda setting: 30.0), Setting(SOURCE, 2, batch_size=4, auto=True))
    made = source.TunedSource("photos", found, 21, None, Limits(2, 10**9, 4))
    monkeypatch.setattr(source, "tune", lambda *arguments: made)
    output = tmp_path / "tuned.json"
    output.write_text("from before")
    assert run(["tune", "--settings", str(output), str(folder)]) == 0
    said = capsys.readouterr().out
    assert "no change that was tried helps" in said and "keep the current settings" in said
    assert "nothing was saved, as no settings were shown to help" in said and "was written by an earlier run" in said
    assert output.read_text() == "from before"


def test_what_does_not_start_or_is_not_there():
    done = subprocess.run([*FEEDLINE, "tune", "--", "/no/such/python"], capture_output=True, text=True)
    assert done.returncode == 127 and "/no/such/python" in done.stderr
    done = subprocess.run([*FEEDLINE, "tune", "/no/such/folder"], capture_output=True, text=True)
    assert done.returncode in (2, 3) and "/no/such/folder" in done.stderr
