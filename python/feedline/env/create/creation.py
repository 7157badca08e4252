# SPDX-License-Identifier: Apache-2.0
"""Creates an environment atomically, checks it, and compares it with its source."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ..checks.conda import conda_without_python
from ..differences import Difference, compare_with_lock
from ..rules import Analysis, Verdict, check
from ..scan import read_environment
from ..snapshot import snapshot_of
from .conda_part import install_conda
from .homes import follows_rule
from .pip_part import From, install_pip, make_venv
from .plan import Plan

WRITTEN = "feedline-environment.json"


@dataclass(frozen=True)
class Created:
    """A created environment.

    Attributes:
        prefix: the folder of the environment.
        verdict: the result of `check` for the environment.
        differences: differences between the environment and its source; with the research policy, these include updated
            packages.
        snapshot: the environment's snapshot, which is also stored as ``feedline-environment.json`` in the prefix.
        equal: whether the environment matches its source; for a snapshot, whether the fingerprints are equal.
        notes: hints for the user.
        seconds: duration of each step. Reading the channels' indexes, which is slow the first time, is a separate step.
    """

    prefix: Path
    verdict: Verdict
    differences: tuple[Difference, ...]
    snapshot: dict[str, Any]
    equal: bool
    notes: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)


def create(
    plan: Plan,
    prefix: Path,
    *,
    wheels: From,
    channels: Sequence[str] = (),
    show_progress: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Created:
    """Creates the environment that `plan` describes at `prefix`; if any step fails, removes everything that was
    created.

    Args:
        wheels: the sources of pip projects. channels: the conda channels to use instead of the plan's.
        step: function that is called with a description before each step.

    Raises:
        ConfigError, StorageError: the environment cannot be created; `prefix` is unchanged.
    """
    if prefix.exists() and (not prefix.is_dir() or any(prefix.iterdir())):
        raise ConfigError(f"{prefix} already exists: choose another name, or remove it with feedline env clean")
    was_there = prefix.exists()
    began: dict[str, float] = {}

    def now(name: str) -> None:
        began[name] = time.monotonic()
        step(name)

    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        if plan.conda:
            install_conda(plan, prefix, channels, show_progress, now)
        else:
            now("the interpreter")
            make_venv(plan.python, prefix)
        now("pip projects")
        install_pip(plan, prefix, wheels)
        now("check")
        made = _proved(plan, prefix)
        ends = [*list(began.values())[1:], time.monotonic()]
        return replace(
            made, seconds={name: end - begin for (name, begin), end in zip(began.items(), ends, strict=True)}
        )
    except BaseException:
        shutil.rmtree(prefix, ignore_errors=True)
        if was_there:
            prefix.mkdir()
        raise


def _proved(plan: Plan, prefix: Path) -> Created:
    seen = read_environment(prefix)
    differences = tuple(compare_with_lock(plan.listing, seen))
    snapshot = snapshot_of(seen)
    wanted = plan.listing.fingerprint
    equal = snapshot["fingerprint"] == wanted if wanted else not differences
    (prefix / WRITTEN).write_text(json.dumps({**snapshot, "made_from": plan.listing.source}, indent=2) + "\n")
    notes = list(plan.notes)
    if not follows_rule(prefix.name):
        notes.append(
            f"{prefix.name} does not have the form <project>_<framework>_<device>, such as vision_torch2.9_cu128"
        )
    verdict = check(Analysis(seen))
    if seen.place.python is None:  # the lock lists no Python, and no package needs one
        findings = tuple(one for one in verdict.findings if one.code != conda_without_python.CHECK.page.code)
        verdict = replace(verdict, findings=findings)
    return Created(prefix, verdict, differences, snapshot, equal, tuple(notes))
