# SPDX-License-Identifier: Apache-2.0
"""Finds the script that a command runs: ``python -u train.py --epochs 3``, ``torchrun --nproc_per_node=4 train.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_RANKS = ("--nproc_per_node", "--nproc-per-node", "--num_processes", "--gpus-per-node", "--num_gpus")


@dataclass(frozen=True)
class Command:
    script: str | None  # None if the command names no Python file
    arguments: tuple[str, ...]  # the script's own arguments
    ranks: int | None  # on this machine, if the launcher specifies it


def parsed(words: Sequence[str]) -> Command:
    at = next((i for i, word in enumerate(words) if word.endswith(".py") and not word.startswith("-")), None)
    launcher = words if at is None else words[:at]
    ranks = None
    for i, word in enumerate(launcher):
        name, has_value, value = word.partition("=")
        value = value if has_value else launcher[i + 1] if i + 1 < len(launcher) else ""
        if name in _RANKS and value.isdecimal():
            ranks = int(value)
    return Command(None if at is None else words[at], () if at is None else tuple(words[at + 1 :]), ranks)
