# SPDX-License-Identifier: Apache-2.0
"""Programs that exit while Feedline is working, for test_ends.py.

Each exits after a random time, while native threads fill batches or Python threads call the engine. The engine
guarantees that none hangs, ends with a signal that was not sent, or prints that it was terminated. Python threads in
torch are omitted: with them, a process aborts up to Python 3.13 also without Feedline.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

HEAD = """
import os, random, signal, sys, threading, time
import numpy
import feedline

moment = random.Random(int(sys.argv[2]))
photos = feedline.open(sys.argv[1]).random_resized_crop(32)
rows = feedline.arrays(x=numpy.arange(4000).reshape(1000, 4))

def a_loader(dataset=photos, **more):
    return dataset.loader(4, output="numpy", num_workers=2, shuffle=True, **more)

def for_ever(call):
    def run():
        while True:
            try:
                call()
            except (feedline.Error, StopIteration):  # closed at exit, while the thread continues
                pass
    return run

def run_in_threads(*calls):
    for call in calls:
        threading.Thread(target=for_ever(call), daemon=True).start()

def wait_a_moment():
    time.sleep(moment.choice([0, 0.0005, 0.002, 0.01, 0.03]) * moment.random())
"""

# What runs while the program exits: name -> statements after HEAD
STATES = {
    "an iterator in the middle of an epoch": "kept = iter(a_loader()); next(kept)",
    "an iterator before its first batch": "kept = iter(a_loader())",
    "a loader in a cycle": "kept = a_loader(); kept.itself = kept; kept.iterator = iter(kept); next(kept.iterator)",
    "a loader of a thread that ended": """
local = threading.local()
def use():
    local.kept = iter(a_loader()); next(local.kept)
thread = threading.Thread(target=use); thread.start(); thread.join()
""",
    "threads in next()": """
kept = a_loader()
run_in_threads(*[lambda: list(kept)] * 3)
""",
    "threads in every other call": """
kept = a_loader(); iterator = iter(kept); next(iterator)
run_in_threads(kept.stats, kept.state_dict, kept.explain, lambda: kept.errors, lambda: next(iterator))
""",
    "threads that make, use and drop loaders of arrays": """
def use():
    own = feedline.arrays(x=numpy.arange(4000).reshape(1000, 4))
    loader = a_loader(own)
    next(iter(loader))
run_in_threads(*[use] * 3)
""",
    "threads that close loaders": """
def use():
    with a_loader(rows) as loader:
        next(iter(loader))
run_in_threads(*[use] * 3)
""",
    "threads in single samples": "run_in_threads(lambda: photos[0], lambda: rows[0], lambda: photos.explain())",
    "threads that raise errors": """
def fail():
    feedline.open(sys.argv[1] + "/nothing there")
run_in_threads(*[fail] * 3)
""",
    "a mapped function in the middle": """
def slow(x):
    time.sleep(0.001)
    return x
kept = iter(feedline.arrays(x=numpy.arange(4000).reshape(1000, 4)).loader(4, output="numpy", epochs=9)); next(kept)
run_in_threads(lambda: list(map(slow, [next(kept)])))
""",
    "a cache in memory": """
kept = iter(a_loader(feedline.open(sys.argv[1]).resize((32, 32)).cache("memory"))); next(kept)
""",
    "a port of metrics": """
kept = a_loader(); kept.metrics(); iterator = iter(kept)
run_in_threads(lambda: next(iterator))
""",
    "two interleaved loaders": "kept = [iter(a_loader()), iter(a_loader(rows))]; [next(one) for one in kept]",
}

# The same for programs that import torch, which takes longer than everything else here
TORCH_STATES = {
    "the drop-in over worker processes": """
class Squares:
    def __len__(self):
        return 4000
    def __getitem__(self, i):
        return i * i
kept = iter(feedline.DataLoader(Squares(), 4, num_workers=2)); next(kept)
""",
    "the drop-in over arrays": """
import torch
loader = feedline.DataLoader(torch.utils.data.TensorDataset(torch.arange(4000)), 4, num_workers=2, shuffle=True)
kept = iter(loader); next(kept)
""",
}

# How the program exits: name -> statements after those, and the exit status
ENDS = {
    "at its last line": ("wait_a_moment()", 0),
    "by sys.exit()": ("wait_a_moment(); sys.exit(3)", 3),
    "by an error": ("wait_a_moment(); raise SystemError('the end that was asked for')", 1),
    "by Ctrl-C": ("wait_a_moment(); os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2),
    "by SIGTERM": ("wait_a_moment(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
    "by sys.exit() in SIGTERM's handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); wait_a_moment()\n"
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        5,
    ),
    "in a child after fork()": (
        "wait_a_moment(); child = os.fork()\nif child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        0,
    ),
}

HANG_S = 120
ABORTS = ("terminate called", "FATAL", "Fatal Python error", "double free", "corrupt", "pure virtual", "does not hold")


def complaint(state: str, end: str, folder: Path, seed: int, environment: dict[str, str]) -> str | None:
    """Runs a program once; returns the problem with its exit, or None."""
    statements, status = ENDS[end]
    program = "\n".join([HEAD, {**STATES, **TORCH_STATES}[state], statements])
    command = [sys.executable, "-W", "ignore", "-c", program, str(folder), str(seed)]
    environment = {**environment, "PYTHONFAULTHANDLER": "1"}
    try:
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S)
    except subprocess.TimeoutExpired as late:
        return f"{state}, {end}, seed {seed}: hangs: {late.stderr!r}"
    # a thread may print Python's error about the interpreter's exit
    is_expected = run.returncode == status and (status != 1 or "the end that was asked for" in run.stderr)
    if is_expected and not any(word in run.stderr for word in ABORTS):
        return None
    return f"{state}, {end}, seed {seed}: status {run.returncode} for {status}\n{run.stderr[-3000:]}"


def main() -> int:
    """`ends_of_processes.py FOLDER ROUNDS`: every state with every exit, ROUNDS times."""
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for seed in range(rounds):
        for state in (*STATES, *TORCH_STATES):
            for end in ENDS:
                said = complaint(state, end, folder, seed * 1000 + random.randrange(1000), dict(os.environ))
                if said is not None:
                    failed += 1
                    print(said, flush=True)
        print(f"round {seed + 1} of {rounds}: {failed} bad ends", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
