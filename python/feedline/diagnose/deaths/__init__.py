# SPDX-License-Identifier: Apache-2.0
"""Each file describes one cause of a run's death: its evidence, its fixes in order, and its page. The modules in this
folder register themselves.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

from feedline.diagnose.rules.death import DeadRun, Death, Died
from feedline.findings import Entry, rules_in

__all__ = ["Verdict", "entries", "judge", "registered"]


@dataclass(frozen=True)
class Verdict:
    """Why a run died. `unseen`: reasons why evidence is missing."""

    code: str
    died: Died
    unseen: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"the run died: {self.died.what}"

    def as_dict(self) -> dict[str, Any]:
        """Returns the JSON object described in docs/diagnose-method.md."""
        return {
            "code": self.code,
            "text": self.text,
            "evidence": list(self.died.evidence),
            "fixes": list(self.died.fixes),
            "not_seen": list(self.unseen),
        }

    def lines(self) -> list[str]:
        """Returns the verdict as text, without its first line."""
        lines = [f"  {self.code}", *(f"    {sentence}" for sentence in self.died.evidence)]
        lines += ["", "  what to do, in this order:"]
        lines += [f"    {number}. {fix}" for number, fix in enumerate(self.died.fixes, 1)]
        if self.unseen:
            lines += ["", "  not seen:", *(f"    {sentence}" for sentence in self.unseen)]
        return lines


@functools.cache
def registered() -> tuple[Death, ...]:
    """Returns all causes of death, by priority."""
    return tuple(sorted(rules_in(sys.modules[__name__], (), "DEATH", Death), key=lambda death: death.priority))


def judge(run: DeadRun) -> Verdict:
    """Returns the cause of a run's death; the last rule applies to every run."""
    for death in registered():
        died = death.evaluate(run)
        if died is not None:
            about_kills = death.page.code in ("killed", "killed_for_memory")
            return Verdict(death.page.code, died, run.crash.unseen if about_kills else ())
    raise AssertionError("the last rule matches every death")


def entries() -> list[Entry]:
    """Returns the documentation pages of all causes of death."""
    return [death.page for death in registered()]
