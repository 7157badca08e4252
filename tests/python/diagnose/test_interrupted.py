# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during experiments does not wait for the script, and no new work begins afterwards."""

import os
import signal
import subprocess
import sys
import time

import pytest
from running_processes import HANG_S, processes_with, until
from watched import FEEDLINE

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("click", reason="click, for the command line, is not installed")

# Experiments run in a copy of this process: in the copy, a sample takes as long as a whole test may take, so an
# experiment does too.
STUCK = """
import os, time, torch
from feedline.diagnose.experiments import worker_sweep
worker_sweep._START_S = {long_s}
class Samples(torch.utils.data.Dataset):
    def __init__(self): self.process = os.getpid()
    def __len__(self): return 64
    def __getitem__(self, i):
        if os.getpid() != self.process and "FEEDLINE_DIAGNOSE_SESSION" not in os.environ:
            with open({begun!r}, "a") as begun:
                begun.write("sample\\n")
            time.sleep({long_s})
        return torch.tensor(i)
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers={workers}):
        time.sleep(0.01)
    print("done", flush=True)
"""
LONG_S = 3 * HANG_S


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("impatient", [False, True])
def test_ctrl_c_waits_for_no_sample_and_none_begins(tmp_path, workers, impatient):
    script, begun = tmp_path / "train.py", tmp_path / "begun"
    script.write_text(STUCK.format(begun=str(begun), long_s=LONG_S, workers=workers))
    command = [*FEEDLINE, "diagnose", "--budget", f"{8 * LONG_S}s", "--", sys.executable, str(script)]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    until(lambda: begun.exists() or run.poll() is not None, "a sample in a copy of the script")
    assert run.poll() is None, run.communicate()
    run.send_signal(signal.SIGINT)
    while impatient and run.poll() is None:
        run.send_signal(signal.SIGINT)
        time.sleep(0.003)
    _, errors = run.communicate(timeout=HANG_S)
    left, samples = processes_with(str(script)), begun.read_text()
    assert run.returncode == 130 and "Traceback" not in errors
    assert left == [] and list(tmp_path.glob("feedline-diagnose-*")) == []
    assert begun.read_text() == samples
