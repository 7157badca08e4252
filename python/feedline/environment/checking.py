# SPDX-License-Identifier: Apache-2.0
"""What checks are judged by, the shape of one, and all of them asked. Each is a file of `checks`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

from ..findings import SEVERITIES, Abstention, Entry, Finding
from .locks.listing import Listing
from .ownership import Files, look_at
from .requiring import Need, unmet
from .seen import Environment

# the first turns of checks about these: what is more particular, and explains others, comes earlier
ENVIRONMENT, OWNERS, FILES, NEEDS, DEVICE, LOADED, AGAINST, ADVICE = 100, 200, 300, 400, 500, 600, 700, 800
MOST_NAMED = 5  # in one sentence


@dataclass(frozen=True)
class Case:
    """What is judged.

    Attributes:
        seen: the environment.
        lock: what it should hold, and the file that says so; None: nothing was named.
        label: what somebody says that it holds, as an image's label; "": nothing was said.
        deep: large files are compared by their hashes, too.
        today: that ends of support are compared with.
    """

    seen: Environment
    lock: Listing | None = None
    label: str = ""
    deep: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    @cached_property
    def files(self) -> Files:
        """Every listed file, compared with its package once, however many checks ask."""
        return look_at(self.seen, self.deep)

    def reinstalls(self, owner: str) -> str:
        """The command by which its manager installs the same version of `owner`, a name in :attr:`files`, again."""
        over = {clash.package for clash in self.files.clashes}
        of_conda = {one.name: one.version for one in self.seen.packages if one.name not in over}
        if owner in of_conda:
            return f"conda install --force-reinstall {owner}={of_conda[owner]}"
        return f"pip install --force-reinstall --no-deps {owner}"

    @cached_property
    def needs(self) -> list[Need]:
        """Requirements of Python packages that are not met."""
        return unmet(self.seen)


Told = Iterator[Finding | Abstention]


@dataclass(frozen=True)
class Check:
    """What can be the matter with an environment.

    Attributes:
        page: what ``feedline explain`` prints.
        turn: its place among findings of one severity: see :data:`ENVIRONMENT` and the others.
        judges: what is the matter, or could not be judged.
    """

    page: Entry
    turn: int
    judges: Callable[[Case], Told]


@dataclass(frozen=True)
class Verdict:
    """All that is the matter with an environment, the worst first."""

    prefix: str
    findings: tuple[Finding, ...]
    abstained: tuple[Abstention, ...]
    facts: Mapping[str, Any]

    @property
    def sound(self) -> bool:
        """Nothing but notes."""
        return all(one.severity == "note" for one in self.findings)


def page(code: str, **parts: str) -> Entry:
    """A page of this verb."""
    return Entry(code=code, verb="env", **parts)  # type: ignore[arg-type]


def told(code: str, severity: str, *evidence: str, fix: str = "", **about: Any) -> Finding:
    """A finding of this verb: no matter of time, and certain."""
    return Finding(code, severity, evidence=evidence, fix=fix, about=about)


def names(found: list[str]) -> str:
    """The first few in a sentence, and how many more there are."""
    rest = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def check(case: Case) -> Verdict:
    """Asks every check. The worst severity comes first, then what explains most."""
    from .checks import registered

    found: list[tuple[int, int, Finding]] = []
    abstained: list[Abstention] = []
    for one in registered():
        for said in one.judges(case):
            if isinstance(said, Abstention):
                abstained.append(said)
            else:
                found.append((-SEVERITIES.index(said.severity), one.turn, said))
    found.sort(key=lambda row: row[:2])
    return Verdict(str(case.seen.place.prefix), tuple(row[2] for row in found), tuple(abstained), facts_of(case))


def facts_of(case: Case) -> dict[str, Any]:
    """The environment in a few words, for the head of a screen."""
    seen = case.seen
    torch = seen.torch
    return {
        "kind": seen.place.kind,
        "python": seen.place.python,
        "conda_packages": len(seen.packages),
        "pip_packages": sum(not seen.is_condas(one) for one in seen.distributions),
        "torch": torch.version if torch else None,
        "torch_cuda": torch.cuda if torch else None,
        "gpus": list(seen.graphics.names),
        "driver": seen.graphics.driver,
        "files": case.files.compared,
        "compared_by_size": case.files.by_size,
        "process": seen.process or None,
        "libraries": [f"{one.family} {os.fspath(one.path)}" for one in seen.mapped or ()],
    }
