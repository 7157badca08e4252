# SPDX-License-Identifier: Apache-2.0
"""Spoken digits by espeak-ng, and their manifest in NeMo's format."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import wave
from pathlib import Path

VOICES = ("en-us", "en-us+f2", "en-us+m3", "en-gb", "en-gb+f4")


def write(folder: Path, utterances: int, seed: int = 0) -> None:
    """Writes the files and two manifests. Every eighth utterance is held out."""
    program = shutil.which("espeak-ng")
    if program is None:
        raise SystemExit("this example needs espeak-ng: apt install espeak-ng")
    chosen = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {"train": [], "held_out": []}
    for number in range(utterances):
        text = " ".join(chosen.choice("0123456789") for _ in range(chosen.randint(1, 6)))
        path = folder / f"{number:05d}.wav"
        speed, pitch = chosen.randint(120, 200), chosen.randint(30, 70)
        options = ["-v", chosen.choice(VOICES), "-s", str(speed), "-p", str(pitch), "-w", str(path)]
        subprocess.run([program, *options, text], check=True)
        with wave.open(str(path)) as file:
            duration = file.getnframes() / file.getframerate()
        row = {"audio_filepath": path.name, "duration": duration, "text": text}
        lines["train" if number % 8 else "held_out"].append(json.dumps(row))
    for name, rows in lines.items():
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
