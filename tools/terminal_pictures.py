#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/terminal_pictures.py [NAME...]: runs a command in a terminal and draws its last screen as
docs/pictures/terminal-NAME.svg: demo, diagnose, doctor, top; all of them without a NAME.

Needs the package in .venv (tools/test installs it) with torch and Pillow, and tmux
(tools/apt_packages_pictures.txt). The figures are measured on this machine, so run it while the machine is idle.
Commands run in an empty folder with a fixed environment.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
LOOKS_PER_S = 8
LONGEST_S = 240

PHOTOS = "feedline demo --keep photos --images 400 --seconds 0.1 >/dev/null"
LOADS = """
import sys, time
import feedline

photos = feedline.open(sys.argv[1]).random_resized_crop(224).random_horizontal_flip()
for image, label in photos.loader(64, shuffle=True, output="numpy", epochs=1000):
    time.sleep(0.03)  # a step
"""
# Simulates an object store: answers after 10 ms.
STORE = """
import socket, threading, time

def answer(one):
    while one.recv(1):
        time.sleep(0.01)
        one.send(b"1")

server = socket.socket(socket.AF_UNIX)
server.bind("store")
server.listen()
while True:
    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()
"""
ASKS = """
import argparse, socket, time
import torch

class Store(torch.utils.data.Dataset):
    connection = None

    def __len__(self):
        return 1600

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = socket.socket(socket.AF_UNIX)
            self.connection.connect("store")
        self.connection.send(b"?")
        return torch.full((3, 64, 64), float(self.connection.recv(1)[0]))

options = argparse.ArgumentParser()
options.add_argument("--workers", type=int, default=2)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Store(), batch_size=16, num_workers=options.parse_args().workers)
    for batch in loader:
        time.sleep(0.03)  # a step
"""


@dataclass(frozen=True)
class Recording:
    command: str
    columns: int
    rows: int
    before: str = ""  # shell commands to run first
    script: str = ""  # train.py
    seconds: float | None = None  # when to take the picture of a command that does not exit


RECORDINGS = {
    "demo": Recording("feedline demo --images 200 --seconds 3", columns=90, rows=24),
    "top": Recording(
        "feedline top",
        columns=80,
        rows=24,
        before=f"{PHOTOS}\npython train.py photos &\nsleep 4",
        script=LOADS,
        seconds=12,
    ),
    "diagnose": Recording(
        "feedline diagnose --budget 60s -- python train.py --workers 2",
        columns=110,
        rows=64,
        before=f"python -c {shlex.quote(STORE)} &\nsleep 1",
        script=ASKS,
    ),
    "doctor": Recording(
        "feedline doctor --prefetch 5 --batch-mb 500 -- python train.py --workers 16",
        columns=110,
        rows=40,
        script=ASKS,
    ),
}


def last_screen(recording: Recording, folder: Path) -> str:
    """Returns the terminal's contents, with ANSI escapes, when the command has exited or its time is over."""
    (folder / "train.py").write_text(recording.script)
    typed = f"printf '\\033[1;32m$\\033[0m %s\\n' {shlex.quote(recording.command)}"
    shell = f"{recording.before or ':'}\nclear; {typed}; {recording.command}; touch ended; sleep {LONGEST_S}"
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "FEEDLINE_RUNTIME_DIR": str(folder / "run"),
    }
    tmux = ["tmux", "-L", f"feedline-{os.getpid()}", "-f", "/dev/null"]  # a server without the user's settings
    size = ["-x", str(recording.columns), "-y", str(recording.rows), "-c", str(folder)]
    start = [*tmux, "start-server", ";", "set", "-g", "status", "off", ";", "new-session", "-d", *size, shell]
    subprocess.run(start, env=environment, check=True)
    try:
        deadline = time.monotonic() + (recording.seconds or LONGEST_S)
        while not (folder / "ended").exists() and time.monotonic() < deadline:
            time.sleep(1 / LOOKS_PER_S)
        if recording.seconds is None and not (folder / "ended").exists():
            raise SystemExit(f"{recording.command}: still running after {LONGEST_S} s")
        capture = [*tmux, "capture-pane", "-e", "-p"]
        return subprocess.run(capture, check=True, capture_output=True, text=True).stdout.rstrip("\n")
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def drawn(screen: str, columns: int, name: str) -> str:
    """Returns the screen as SVG in rich's format, without web fonts, because pages must not load external files."""
    console = Console(record=True, width=columns, file=io.StringIO())
    console.print(Text.from_ansi(screen), no_wrap=True)
    code_format = re.sub(r"\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title=f"feedline {name}", code_format=code_format, unique_id=f"terminal-{name}")


def main() -> None:
    for name in sys.argv[1:] or RECORDINGS:
        recording = RECORDINGS[name]
        with tempfile.TemporaryDirectory() as folder:
            screen = last_screen(recording, Path(folder))
        path = ROOT / "docs" / "pictures" / f"terminal-{name}.svg"
        path.write_text(drawn(screen, recording.columns, name))
        print(path.relative_to(ROOT), path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
