# SPDX-License-Identifier: Apache-2.0
"""What deserves a look at once, and the first thing to do about it: one file per alarm, registered by being here.

Causes are for ``feedline diagnose`` to prove.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from ...findings import Entry, Finding, rules_in
from ..judging import LOOKS, Alarm, Moment, Seen

__all__ = ["LOOKS", "Alarms", "Moment", "entries", "registered"]


@functools.cache
def registered(folders: tuple[Path | str, ...] = ()) -> tuple[Alarm, ...]:
    """All alarms, in their turns.

    Raises:
        ConfigError: a file makes no alarm, or one of another name than its own; the file is named.
    """
    alarms = rules_in(sys.modules[__name__], folders, "ALARM", Alarm)
    return tuple(sorted(alarms, key=lambda alarm: (alarm.turn, alarm.page.code)))


def entries(folders: tuple[Path | str, ...] = ()) -> list[Entry]:
    """The pages of all alarms."""
    return [alarm.page for alarm in registered(folders)]


class Alarms:
    """Judges looks one after the other. What lasts is told when it held for `looks` of them."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks = looks
        self._recent: list[Moment] = []

    def judge(self, moment: Moment) -> tuple[Finding, ...]:
        """What is the matter now: alarms (severity "critical") before notes, loader by loader and GPU by GPU."""
        self._recent = [*self._recent, moment][-self._looks :]
        seen = Seen(self._recent, self._looks)
        found = [
            (finding.severity != "critical", alarm.turn // 100, place, alarm.turn, finding)
            for alarm in registered()
            for place, finding in alarm.findings(seen)
        ]
        return tuple(one[-1] for one in sorted(found, key=lambda one: one[:-1]))
