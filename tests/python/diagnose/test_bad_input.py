# SPDX-License-Identifier: Apache-2.0
"""Whatever a script does, its exit status and output come through, and the diagnosis says what it could not see."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

FEEDLINE = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]
LOOP = """
import sys, time, torch
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.tensor(i)
if __name__ == "__main__":
    for step, batch in enumerate(torch.utils.data.DataLoader(Samples(), batch_size=4)):
        time.sleep(0.003)
"""


@pytest.fixture
def watch(tmp_path):
    """Runs a script under diagnose: (exit status, standard output, standard error, diagnosis)."""

    def run(source, *options, python=(sys.executable,), arguments=(), environment=None, **popen):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(source))
        output = tmp_path / "diagnosis.json"
        command = [*FEEDLINE, "diagnose", "--quick", "--output", str(output), *options, "--", *python, str(script)]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, env={**os.environ, **(environment or {})}, **popen
        )
        found = json.loads(output.read_text()) if output.exists() else None
        return done.returncode, done.stdout, done.stderr, found

    return run


def test_output_and_status_come_through(watch):
    status, out, err, found = watch(LOOP + "    print('out', end=''); print('err', file=sys.stderr); sys.exit(7)")
    assert (status, out) == (7, "out")
    assert err.startswith("err\n")
    assert found["exit_status"] == 7
    assert found["summary"]["steps"] == 100  # also where one event stands for several
    assert {"verdicts", "abstained", "step_ms", "wait_ms", "overhead_share"} <= set(found)
    for verdict in found["verdicts"]:
        assert {"cause", "share", "confidence", "evidence", "fix", "predicted_gain"} <= set(verdict)


def test_json_follows_the_output_of_the_script(watch):
    status, out, _, _ = watch(LOOP + "    print('first line')", "--json")
    first, rest = out.split("\n", 1)
    assert (status, first) == (0, "first line")
    assert json.loads(rest)["schema"] == "feedline.diagnosis/1"


def test_a_crash_is_the_scripts_own(watch):
    status, _, err, found = watch(LOOP + "        if step == 50: raise ValueError('my own mistake')")
    assert status == 1
    said = err.split("feedline diagnose")[0]
    assert "ValueError: my own mistake" in said and "feedline/profiler" not in said and "feedline/diagnose" not in said
    assert 0 < found["summary"]["steps"] <= 50  # those after the last event are not known
    assert any("exit status 1" in note for note in found["notes"])


@pytest.mark.parametrize("source", ["import sys; sys.exit(3)", "import torch, sys; sys.exit(3)"])
def test_a_script_without_a_loop(watch, source):
    status, _, _, found = watch(source)
    assert status == 3 and found["verdicts"] == [] and found["summary"] is None
    assert len(found["abstained"]) == 26
    assert any("no process iterated over" in note for note in found["notes"])


def test_what_is_no_python_at_all(watch):
    status, out, _, found = watch("echo hello; exit 4", python=("/bin/sh",))
    assert (status, out) == (4, "hello\n")
    assert any("no Python process" in note for note in found["notes"])


def test_a_python_that_ignores_the_environment(watch):
    status, _, _, found = watch("import sys; sys.exit(5)", python=(sys.executable, "-I"))
    assert status == 5 and any("-I" in note for note in found["notes"])


def test_a_command_that_is_not_there():
    done = subprocess.run([*FEEDLINE, "diagnose", "--", "/no/such/python"], capture_output=True, text=True)
    assert done.returncode == 127 and "/no/such/python" in done.stderr


def test_a_killed_script_ends_as_killed_and_leaves_what_it_recorded(watch):
    status, _, _, found = watch(LOOP + "        if step == 60: import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert status == -signal.SIGKILL
    assert found["exit_status"] == -9
    assert 0 < found["summary"]["steps"] <= 60  # those after the last event are not known
    assert any("SIGKILL" in note for note in found["notes"])


def test_a_signal_reaches_the_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(11))\n"
                      "print('up', flush=True)\ntime.sleep(600)")  # fmt: skip
    command = [*FEEDLINE, "diagnose", "--quick", "--", sys.executable, str(script)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 11


def test_a_closed_pipe_is_the_scripts_own(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import sys\nfor i in range(100000): print(i)\n")
    statuses = []
    for before in ([], [*FEEDLINE, "diagnose", "--quick", "--"]):
        process = subprocess.Popen([*before, sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        statuses.append(process.wait(300))
    assert statuses[0] == statuses[1] != 0


def test_a_dataset_that_cannot_be_pickled_fails_as_it_would(watch):
    source = """
    import torch
    if __name__ == "__main__":
        data = [lambda: 0]
        for batch in torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context="spawn"):
            pass
    """
    status, _, err, found = watch(source)
    assert status == 1 and "pickle" in err.lower()
    assert found["verdicts"] == []


def test_grandchildren_may_outlive_the_script(watch, tmp_path):
    marker = tmp_path / "grandchild"
    source = LOOP + f"    import subprocess; subprocess.Popen(['sh', '-c', 'sleep 3; touch {marker}'])\n"
    begin = time.monotonic()
    command_output = watch(source)[1]  # they hold the pipe, as without us
    assert command_output == "" and time.monotonic() - begin >= 2
    assert marker.exists()


def test_the_users_own_sitecustomize_runs(watch, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.seen_by_user = 41\n")
    paths = os.pathsep.join([str(tmp_path / "own"), *filter(None, [os.environ.get("PYTHONPATH")])])
    source = "import sys, sitecustomize; assert 'own' in sitecustomize.__file__; sys.exit(seen_by_user + 1)"
    status, _, _, found = watch(source, environment={"PYTHONPATH": paths})
    assert status == 42 and found is not None


def test_a_long_run_is_bounded(watch):
    """More steps than the ring holds: the latest are judged."""
    source = """
    import torch
    for batch in torch.utils.data.DataLoader(range(800000), batch_size=8, collate_fn=len):
        pass
    """
    status, _, _, found = watch(source)
    assert status == 0 and 0 < found["summary"]["steps"] <= 100000
    assert 0 < found["overhead_share"] < 0.2  # stated; how small it is, tools/scenarios tells


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method_are_seen(watch, method):
    source = LOOP.replace("batch_size=4", f"batch_size=4, num_workers=1, multiprocessing_context={method!r}")
    status, _, _, found = watch(source)
    assert status == 0
    making = found["summary"]["making"]
    assert making["batches"] == 100 and making["stages"] is not None
