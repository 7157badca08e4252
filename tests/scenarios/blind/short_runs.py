# SPDX-License-Identifier: Apache-2.0
"""Runs scripts of this folder in their short form, each in a fork of one process that has already imported torch.

    python short_runs.py FOLDER SCRIPT[:RANKS]...

Writes FOLDER/SCRIPT.status, and FOLDER/SCRIPT.log with what it printed. A script takes seconds, and has ten minutes.
"""

import gc
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

_ALLOWED_S = 600
_HERE = Path(__file__).resolve().parent


def begin(script, folder, rank):
    """Returns the fork's process id. The script ends in it as it would by itself, through the interpreter's own
    exit.
    """
    child = os.fork()
    if child:
        return child
    signal.alarm(_ALLOWED_S)
    log = os.open(folder / f"{script}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["RANK"] = str(rank)
    path = str(_HERE / f"{script}.py")
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
    return sys.exit()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    import multiprocessing.pool  # noqa: F401

    import torch
    from PIL import Image  # noqa: F401

    import feedline  # noqa: F401

    torch.optim.SGD([torch.zeros(1, requires_grad=True)])  # the first optimizer's imports take a second or two
    gc.freeze()  # otherwise, each fork's exit would traverse everything that was imported
    folder, scripts = Path(sys.argv[1]), sys.argv[2:]
    sys.path.insert(0, str(_HERE))
    os.environ |= {"SHORT": "1", "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    for one in scripts:
        script, _, ranks = one.partition(":")
        os.environ["WORLD_SIZE"] = ranks or "1"
        children = [begin(script, folder, rank) for rank in range(int(ranks or 1))]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        (folder / f"{script}.status").write_text(" ".join(map(str, statuses)))


if __name__ == "__main__":
    main()
