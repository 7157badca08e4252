# SPDX-License-Identifier: Apache-2.0
"""Runs a case under callgrind, and parses the counts."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

MEASURED = "feedline_gate_measured"
# Settings that would otherwise differ between machines: the C library copies with other instructions if caches are
# larger or `rep movsb` is fast, and libjpeg-turbo selects kernels by CPU.
_PINNED = {
    "GLIBC_TUNABLES": "glibc.cpu.x86_non_temporal_threshold=0xc0000:glibc.cpu.x86_rep_movsb_threshold=0x10000000:"
    "glibc.cpu.x86_rep_stosb_threshold=0x10000000",
    "JSIMD_FORCEAVX2": "1",
}


def count(program: Path, case: str) -> dict[str, int]:
    """Returns the instructions of a case by function, excluding functions that it calls.

    Raises RuntimeError with the program's output if the program or valgrind fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={MEASURED}", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [*command, str(program), case], env={**os.environ, **_PINNED}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{case}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        return functions(out.read_text(errors="replace"))


def functions(text: str) -> dict[str, int]:
    """Returns the instructions of each function itself, from the text of a callgrind.out file.

    "ob=", "fn=", "cob=" and "cfn=" set the object and function of the following lines, and of the callee. A name is
    given only at its first occurrence, after its number; later, there is only the number. A line that does not begin
    with a letter is "POSITION COST", and the one after "calls=" is the cost of the callee, which also has its own
    lines.
    """
    names: dict[str, str] = {}
    objects: dict[str, str] = {}
    counts: dict[str, int] = {}
    current_object, current, of_callee = "", "", False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key in ("ob", "cob"):
            found = _named(value, objects)
            current_object = found if key == "ob" else current_object
        elif equals and key in ("fn", "cfn"):
            found = _named(value, names)
            current = found if key == "fn" else current
        elif key == "calls":
            of_callee = True
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            if not of_callee:
                name = _short(current, current_object)
                counts[name] = counts.get(name, 0) + int(line.split()[1])
            of_callee = False
    return counts


def _named(value: str, names: dict[str, str]) -> str:
    number, _, name = value.partition(" ")
    if name:
        names[number] = name
    return names.get(number, value)


def _short(name: str, of: str) -> str:
    """Returns a function's name without its arguments; the functions of a stripped library are combined under the
    library's name.
    """
    if name.startswith("0x"):
        return f"({Path(of).name})"
    name = re.sub(r"'\d+$", "", name).replace("(anonymous namespace)", "{}")
    return name.partition("(")[0].replace("{}", "(anonymous)") or name
