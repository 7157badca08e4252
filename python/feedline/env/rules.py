# SPDX-License-Identifier: Apache-2.0
"""The input and the interface of checks, and the function that runs them all. Each check is a file in `checks`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

from ..findings import SEVERITIES, Abstention, Entry, Finding
from .locks.listing import Listing
from .ownership import Files, look_at
from .requirements import Need, unmet
from .scan import Environment

# Start of the `priority` range for checks of each area. More specific checks, which explain others, come first.
ENVIRONMENT, OWNERS, FILES, NEEDS, DEVICE, LOADED, AGAINST, ADVICE = 100, 200, 300, 400, 500, 600, 700, 800
MOST_NAMED = 5  # maximum in one sentence


@dataclass(frozen=True)
class Analysis:
    """The input of checks.

    Attributes:
        seen: the environment.
        lock: the expected packages, with the name of the lock's file; None without a lock.
        label: the expected versions as text, such as an image's label; "" without a label.
        deep: whether large files are also compared by hash.
        today: the date with which end-of-support dates are compared.
    """

    seen: Environment
    lock: Listing | None = None
    label: str = ""
    deep: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    @cached_property
    def files(self) -> Files:
        """All installed files, compared with their packages. The files are compared once, for all checks."""
        return look_at(self.seen, self.deep)

    def reinstalls(self, owner: str) -> str:
        """Returns the command that reinstalls the same version of `owner`, a name in :attr:`files`."""
        over = {clash.package for clash in self.files.clashes}
        of_conda = {one.name: one.version for one in self.seen.packages if one.name not in over}
        if owner in of_conda:
            return f"conda install --force-reinstall {owner}={of_conda[owner]}"
        return f"pip install --force-reinstall --no-deps {owner}"

    @cached_property
    def needs(self) -> list[Need]:
        """Unmet requirements of Python packages."""
        return unmet(self.seen)


Problems = Iterator[Finding | Abstention]


@dataclass(frozen=True)
class Check:
    """A check for one kind of problem.

    Attributes:
        page: the page that ``feedline explain`` prints.
        priority: the order among findings of the same severity; see :data:`ENVIRONMENT` and the constants next to it.
        evaluate: function that returns the problems found, or the reason why the check was skipped.
    """

    page: Entry
    priority: int
    evaluate: Callable[[Analysis], Problems]


@dataclass(frozen=True)
class Verdict:
    """All findings for an environment, most severe first."""

    prefix: str
    findings: tuple[Finding, ...]
    abstained: tuple[Abstention, ...]
    facts: Mapping[str, Any]

    @property
    def sound(self) -> bool:
        """Whether all findings are notes."""
        return all(one.severity == "note" for one in self.findings)


def page(code: str, **parts: str) -> Entry:
    """Returns an ``explain`` page for a check of ``feedline env``."""
    return Entry(code=code, verb="env", **parts)  # type: ignore[arg-type]


def problem(code: str, severity: str, *evidence: str, fix: str = "", **about: Any) -> Finding:
    """Returns a finding of ``feedline env``, which is certain and has no time cost."""
    return Finding(code, severity, evidence=evidence, fix=fix, about=about)


def names(found: list[str]) -> str:
    """Joins the first few names for a sentence, followed by the number of the remaining names."""
    rest = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def check(analysis: Analysis) -> Verdict:
    """Runs all checks. Findings are sorted by severity, then by `priority`."""
    from .checks import registered

    found: list[tuple[int, int, Finding]] = []
    abstained: list[Abstention] = []
    for one in registered():
        for said in one.evaluate(analysis):
            if isinstance(said, Abstention):
                abstained.append(said)
            else:
                found.append((-SEVERITIES.index(said.severity), one.priority, said))
    found.sort(key=lambda row: row[:2])
    return Verdict(
        str(analysis.seen.place.prefix), tuple(row[2] for row in found), tuple(abstained), facts_of(analysis)
    )


def facts_of(analysis: Analysis) -> dict[str, Any]:
    """Returns a one-line summary of the environment for report headers."""
    seen = analysis.seen
    torch = seen.torch
    return {
        "kind": seen.place.kind,
        "python": seen.place.python,
        "conda_packages": len(seen.packages),
        "channels": dict(Counter(one.channel for one in seen.packages).most_common()),
        "pip_packages": sum(not seen.is_condas(one) for one in seen.distributions),
        "torch": torch.version if torch else None,
        "torch_cuda": torch.cuda if torch else None,
        "gpus": list(seen.graphics.names),
        "driver": seen.graphics.driver,
        "files": analysis.files.compared,
        "compared_by_size": analysis.files.by_size,
        "process": seen.process or None,
        "libraries": [f"{one.family} {os.fspath(one.path)}" for one in seen.mapped or ()],
    }
