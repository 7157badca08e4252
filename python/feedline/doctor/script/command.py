# SPDX-License-Identifier: Apache-2.0
"""Finds the script that a command runs: ``python -u train.py --epochs 3``, ``torchrun --nproc_per_node=4 train.py``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

_RANKS = ("--nproc_per_node", "--nproc-per-node", "--num_processes", "--gpus-per-node", "--num_gpus")


@dataclass(frozen=True)
class Command:
    script: str | None  # None if the command names no Python file
    arguments: tuple[str, ...]  # the script's own arguments
    ranks: int | None  # on this machine, if the launcher specifies it


# Commands that guides recommend and that are not training scripts, with notes about their pitfalls.
_HINTS = {
    "iotop": "iotop needs root or CAP_NET_ADMIN; feedline top shows the disk I/O of your own processes without these "
    "privileges",
    "nvidia-smi": "nvidia-smi dmon -s takes letters without commas (-s pucvmet); feedline top shows the same figures",
    "xargs": "xargs splits a long list, and each tar cf replaces the tar of the previous part: use feedline pack",
    "iostat": "an NVMe disk that is 100 % busy is not at its limit; feedline top shows its rate and waiting times",
}
_ENDED_CHANNEL = (
    "the conda channel pytorch ended with torch 2.5: install pytorch from conda-forge, or torch with pip (feedline env "
    "create)"
)
_CONDA = ("conda", "mamba", "micromamba")


def hint_for(words: Sequence[str]) -> str:
    """Returns the note about a command that guides recommend and that is not a training script, or ""."""
    if len(words) > 2 and words[1] == "-c":  # bash -c "find . | xargs tar cf all.tar"
        return hint_for(words[2].replace("|", " | ").split())
    programs = [word.rpartition("/")[2] for word in words]
    if any(name in _CONDA for name in programs[:2]) and _names_ended_channel(words):
        return _ENDED_CHANNEL
    return next((_HINTS[name] for name in ("xargs", *programs[:2]) if name in programs and name in _HINTS), "")


def _names_ended_channel(words: Sequence[str]) -> bool:
    """Whether conda's options include the channel "pytorch", or the packages one that only this channel has."""
    options = itertools.pairwise(words)
    named = any(option in ("-c", "--channel") and value == "pytorch" for option, value in options)
    return named or any(word in ("-cpytorch", "--channel=pytorch") or word.startswith("pytorch-cuda") for word in words)


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
