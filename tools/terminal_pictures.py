#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/terminal_pictures.py [NAME...]: runs the command on a terminal and draws docs/pictures/terminal-NAME.svg, what
it showed: demo, diagnose, doctor, top; without a NAME all of them.

Needs the package in .venv (tools/test leaves it there) with torch and Pillow, and tmux
(tools/apt_packages_pictures.txt). The figures are this machine's, so draw where little else runs. Commands run in an
empty folder with an environment of their own; a picture that still names this user, this machine or a folder is
refused.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from terminal_svg import Screen, drawn

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 100_000  # bytes
LOOKS_PER_S = 8
LONGEST_S = 240
LINGER_S, IDLE_S = 8.0, 2.0  # on the last screen, and on another at most
NO_PLACE = re.compile(r"/(?:home|root|tmp|work|usr|opt|var|mnt)\b[^<\s]*")

PHOTOS = "feedline demo --keep photos --images 400 --seconds 0.1 >/dev/null"
LOADS = """
import sys, time
import feedline

photos = feedline.open(sys.argv[1]).random_resized_crop(224).random_horizontal_flip()
for image, label in photos.loader(64, shuffle=True, output="numpy", epochs=1000):
    time.sleep(0.03)  # a step
"""
# An object store, which answers 10 ms after it was asked.
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
    says: str  # what the picture shows, for those who cannot see it
    before: str = ""  # a shell's words
    script: str = ""  # train.py
    seconds: float | None = None  # to watch a command that does not end
    screens: int = 1  # at most; of 1 the last
    shows_command: bool = True


RECORDINGS = {
    "demo": Recording(
        "feedline demo --images 200 --seconds 3",
        columns=90,
        rows=22,
        screens=12,
        says="feedline demo: images per second of Feedline and of torch's DataLoader, a split and a resumed run",
    ),
    "top": Recording(
        "feedline top",
        columns=80,
        rows=24,
        says="feedline top beside a training loop: speed, waiting, stages of the loader, CPU, memory and disk",
        before=f"{PHOTOS}\npython train.py photos &\nsleep 4",
        script=LOADS,
        seconds=12,
        screens=10,
        shows_command=False,
    ),
    "diagnose": Recording(
        "feedline diagnose --budget 60s -- python train.py --workers 2",
        columns=110,
        rows=64,
        says="feedline diagnose of a script whose samples come over a socket: the way of a batch, the cause with its "
        "evidence, the change to make and its predicted gain",
        before=f"python -c {shlex.quote(STORE)} &\nsleep 1",
        script=ASKS,
    ),
    "doctor": Recording(
        "feedline doctor --prefetch 5 --batch-mb 500 -- python train.py --workers 16",
        columns=110,
        rows=40,
        says="feedline doctor before a run: the machine, the plan, and what would go wrong with the way to mend it",
        script=ASKS,
    ),
}


class Tmux:
    """A terminal in a server of its own, without the user's settings; ends with all that runs in it."""

    def __init__(self, recording: Recording, folder: Path, shell: str) -> None:
        self._begin = ["tmux", "-L", f"feedline-{os.getpid()}", "-f", "/dev/null"]
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "FEEDLINE_RUNTIME_DIR": str(folder / "run"),
        }
        size = ["-x", str(recording.columns), "-y", str(recording.rows)]
        command = ["set", "-g", "status", "off", ";", "new-session", "-d", *size, "-c", str(folder), shell]
        subprocess.run([*self._begin, "start-server", ";", *command], env=environment, check=True)

    def lines(self) -> tuple[str, ...]:
        captured = [*self._begin, "capture-pane", "-e", "-p"]
        shown = subprocess.run(captured, check=True, capture_output=True, text=True).stdout
        return tuple(line.rstrip() for line in shown.rstrip("\n").split("\n"))

    def close(self) -> None:
        subprocess.run([*self._begin, "kill-server"], check=False)


def recorded(recording: Recording, folder: Path) -> list[Screen]:
    """Each screen that the command showed, and for how long."""
    (folder / "train.py").write_text(recording.script)
    typed = f"printf '\\033[1;32m$\\033[0m %s\\n' {shlex.quote(recording.command)};" if recording.shows_command else ""
    shell = (
        f"{recording.before or ':'}\nclear; {typed} touch begun; {recording.command}; touch ended; sleep {LONGEST_S}"
    )
    terminal = Tmux(recording, folder, shell)
    try:
        _until(lambda: (folder / "begun").exists())
        began = time.monotonic()
        seen: list[tuple[float, tuple[str, ...]]] = []

        def has_ended() -> bool:
            is_over = (folder / "ended").exists()  # asked before the look, which then is the last
            if any(lines := terminal.lines()):
                seen.append((time.monotonic() - began, lines))
            return is_over or (recording.seconds is not None and time.monotonic() - began > recording.seconds)

        _until(has_ended)
    finally:
        terminal.close()
    until = [at for at, _ in seen[1:]] + [seen[-1][0] + LINGER_S]
    return [Screen(end - at, lines) for (at, lines), end in zip(seen, until, strict=True)]


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("the command did not end")
        time.sleep(1 / LOOKS_PER_S)


def thinned(screens: Sequence[Screen], most: int) -> list[Screen]:
    """Equal neighbours as one; then those that were shown for the shortest time go, their time to the one before. The
    first and the last stay, and only the last is shown for long."""
    kept: list[Screen] = []
    for screen in screens:
        if kept and kept[-1].lines == screen.lines:
            kept[-1] = Screen(kept[-1].seconds + screen.seconds, screen.lines)
        else:
            kept.append(screen)
    while len(kept) > most:
        at = min(range(1, len(kept) - 1), key=lambda i: kept[i].seconds)
        gone = kept.pop(at)
        kept[at - 1] = Screen(kept[at - 1].seconds + gone.seconds, kept[at - 1].lines)
    return [*(Screen(min(one.seconds, IDLE_S), one.lines) for one in kept[:-1]), *kept[-1:]]


def checked(picture: str, private: Iterable[str]) -> str:
    """Refuses a picture that is too large, or that names what is nobody's business."""
    if len(picture.encode()) > LARGEST:
        raise SystemExit(f"{len(picture.encode())} bytes; at most {LARGEST} are kept")
    words = re.sub(r"<[^>]*>", " ", picture)
    named = {word for word in private if word and re.search(rf"\b{re.escape(word)}\b", words)}
    named |= {found[0] for found in NO_PLACE.finditer(words)}
    if named:
        raise SystemExit(f"it names {', '.join(sorted(named))}")
    return picture


def main() -> int:
    if shutil.which("tmux") is None:
        raise SystemExit("tmux is missing; tools/apt_packages_pictures.txt")
    for name in sys.argv[1:] or RECORDINGS:
        recording = RECORDINGS[name]
        with tempfile.TemporaryDirectory() as folder:
            screens = recorded(recording, Path(folder))
        kept = thinned(screens, recording.screens) if recording.screens > 1 else screens[-1:]
        picture = drawn(kept, recording.columns, f"feedline {name}", recording.says)
        path = PICTURES / f"terminal-{name}.svg"
        path.write_text(checked(picture, (getpass.getuser(), socket.gethostname())))
        print(path.relative_to(ROOT), f"{len(kept)} screens, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
