# SPDX-License-Identifier: Apache-2.0
"""An environment made whole or not at all, then checked, and compared with what it was made from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ..checking import Case, Verdict, check
from ..checks import conda_without_python
from ..differences import Difference, compare_with_lock
from ..seen import read_environment
from ..snapshot import snapshot_of
from .conda_part import install_conda
from .homes import follows_rule
from .pip_part import From, install_pip, make_venv
from .plan import Plan

WRITTEN = "feedline-environment.json"


@dataclass(frozen=True)
class Created:
    """What was made.

    Attributes:
        prefix: where.
        verdict: of `check`, which was asked about it.
        differences: from what it was made from; of the research policy, what was updated, too.
        snapshot: of it; also in the file ``feedline-environment.json`` of the prefix.
        equal: it is what it was made from: of a snapshot, by the fingerprint.
        notes: what a reader should know.
    """

    prefix: Path
    verdict: Verdict
    differences: tuple[Difference, ...]
    snapshot: dict[str, Any]
    equal: bool
    notes: tuple[str, ...]


def create(
    plan: Plan,
    prefix: Path,
    *,
    wheels: From,
    channels: Sequence[str] = (),
    show_progress: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Created:
    """Makes the environment `plan` at `prefix`; where anything fails, nothing stays of it.

    Args:
        wheels: where projects of pip are taken from. channels: where conda packages are, in place of the plan's.
        step: is told what is done next.

    Raises:
        ConfigError, StorageError: it cannot be made; `prefix` is as it was.
    """
    if prefix.exists() and (not prefix.is_dir() or any(prefix.iterdir())):
        raise ConfigError(f"{prefix} is there already: give another name, or remove it by feedline env clean")
    was_there = prefix.exists()
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        if plan.conda:
            step("conda packages")
            install_conda(plan, prefix, channels, show_progress)
        else:
            step("the interpreter")
            make_venv(plan.python, prefix)
        step("projects of pip")
        install_pip(plan, prefix, wheels)
        step("checking it")
        return _proved(plan, prefix)
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
        notes.append(f"{prefix.name} is no name as <project>_<framework>_<device>, such as vision_torch2.9_cu128")
    verdict = check(Case(seen))
    if seen.place.python is None:  # the lock lists no Python, and no package needs one
        findings = tuple(one for one in verdict.findings if one.code != conda_without_python.CHECK.page.code)
        verdict = replace(verdict, findings=findings)
    return Created(prefix, verdict, differences, snapshot, equal, tuple(notes))
