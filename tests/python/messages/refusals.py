# SPDX-License-Identifier: Apache-2.0
"""Runs the cases, and reads and writes the stored table of their messages."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import feedline
from messages import cases
from messages.command_line import Exit
from messages.samples import Samples

Case = Callable[[Samples], object]

TABLE = Path(__file__).parent / "table"
_INDENT = "    "


class Refusal(NamedTuple):
    """The type of an error, or "exit status N" of the command line, and the whole message."""

    kind: str
    message: str


def all_cases() -> dict[str, dict[str, Case]]:
    """The cases by subject."""
    subjects = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    return {subject: importlib.import_module(f"messages.cases.{subject}").CASES for subject in subjects}


def needs(subject: str) -> tuple[str, ...]:
    """Names of modules that the cases of a subject import."""
    return getattr(importlib.import_module(f"messages.cases.{subject}"), "NEEDS", ())


# ---- running ----


@contextlib.contextmanager
def prepared(root: Path) -> Iterator[Samples]:
    """Makes the data below `root`, the current folder of all cases, and an environment without a launcher and a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if _is_foreign(name)]:
            patch.delenv(name)
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        patch.setenv("XDG_RUNTIME_DIR", str(root / "runtime"))
        patch.setenv("FEEDLINE_RUNTIME_DIR", str(root / "runtime"))  # `top` must not find other processes
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        patch.setenv("COLUMNS", "100000")  # rich breaks lines at the width of the terminal
        patch.setattr(sys, "argv", ["feedline"])
        for folder in ("cache", "runtime", "home", "data"):
            (root / folder).mkdir(mode=0o700)
        patch.chdir(root)
        yield Samples(root)


def _is_foreign(name: str) -> bool:
    launchers = ("RANK", "WORLD_SIZE", "LOCAL_", "SLURM_", "OMPI_", "PMI_", "MASTER_")
    return name.startswith((*launchers, "FEEDLINE_", "AWS_", "GOOGLE_", "AZURE_", "CONDA_", "FORCE_COLOR"))


def run(case: Case, samples: Samples) -> Refusal:
    """Runs a case in an empty folder `here`, and returns the refusal."""
    shutil.rmtree("here", ignore_errors=True)
    Path("here").mkdir()
    try:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            samples.patch = patch
            case(samples)
    except Exception as error:
        kind = f"exit status {error.status}" if isinstance(error, Exit) else type(error).__name__
        return Refusal(kind, without_places(str(error), samples.root))
    raise AssertionError("nothing was refused")


def without_places(text: str, root: Path) -> str:
    """Replaces what differs between machines and runs: the folder of the test, versions and processes."""
    text = re.sub(rf"{re.escape(str(TABLE.parent))}/(\S+), line \d+", r"\1, line N", text)
    text = (
        text.replace(str(Path(feedline.__file__).parent), "PACKAGE")
        .replace(str(root), "ROOT")
        .replace(feedline.__version__, "VERSION")
    )
    text = re.sub(r"\b(process|pid) \d+", r"\1 PID", text)
    text = re.sub(r"/\S+(/src/\S+\.(?:h|cpp):\d+)", r"CHECKOUT\1", text)
    text = re.sub(r"\bat 0x[0-9a-f]+", "at ADDRESS", text)
    text = re.sub(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b", "DIGEST", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC", "TIME", text)
    text = re.sub(r"(: Pillow: |is not a requirement: )[^\n\[]*[^\n\[ ]", r"\1REASON", text)
    text = re.sub(r"\bnot for linux-\w+", "not for PLATFORM", text)
    text = re.sub(r"\bPython 3\.\d+(\.\d+)?", "Python VERSION", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n")


# ---- the stored table ----


def stored(subject: str) -> dict[str, Refusal]:
    """Reads the messages of a subject: for each case its name, then the error's type and message, indented."""
    path = TABLE / f"{subject}.txt"
    found: dict[str, Refusal] = {}
    for block in path.read_text("utf-8").split("\n\n") if path.exists() else []:
        name, kind, *lines = block.strip("\n").split("\n")
        found[name] = Refusal(kind.strip(), "\n".join(line.removeprefix(_INDENT) for line in lines))
    return found


def store(subject: str, refusals: Mapping[str, Refusal]) -> None:
    blocks = []
    for name, (kind, message) in refusals.items():
        lines = [line or "." for line in message.split("\n")]  # an empty line ends a case
        blocks.append("\n".join([name, _INDENT + kind, *(_INDENT + line for line in lines)]))
    TABLE.mkdir(exist_ok=True)
    (TABLE / f"{subject}.txt").write_text("\n\n".join(blocks) + "\n", "utf-8")
