# SPDX-License-Identifier: Apache-2.0
"""Cases that are one expression, named by it, and cases that are functions, named by their names."""

from __future__ import annotations

import datetime
import functools
import math
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import feedline
import feedline.testing
from messages.command_line import command_line
from messages.samples import Samples, read

Case = Callable[[Samples], object]

_NAMES = {
    "Path": Path,
    "datetime": datetime,
    "feedline": feedline,
    "inf": math.inf,
    "math": math,
    "nan": math.nan,
    "np": np,
    "read": read,
    "chain": feedline.chain,
    "cli": command_line,
}


def expressions(text: str) -> dict[str, Case]:
    """One case for each line: an expression of the members of `Samples` and the names above."""
    return {line: functools.partial(_evaluated, line) for line in map(str.strip, text.splitlines()) if line}


def functions(members: Mapping[str, Any]) -> dict[str, Case]:
    """One case for each function of a module whose only parameter is `s`, and whose name begins with "_"."""
    cases = {n: value for n, value in members.items() if n[0] == "_" and isinstance(value, types.FunctionType)}
    return {
        name.strip("_").replace("_", " "): case
        for name, case in cases.items()
        if case.__code__.co_varnames[: case.__code__.co_argcount] == ("s",) and not case.__code__.co_flags & 12
    }


def _evaluated(expression: str, samples: Samples) -> object:
    members = ("folder", "shards", "jpeg", "png", "images", "small", "tar", "numbers", "lengths")
    methods = ("write", "write_tar", "read_tar", "table")
    names = {name: getattr(samples, name) for name in (*members, *methods) if name in expression}
    return eval(expression, {**_NAMES, **names})
