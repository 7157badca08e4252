# SPDX-License-Identifier: Apache-2.0
"""Conditions that need attention immediately, each with a first remedy. Each alarm is a file that registers itself.

``feedline diagnose`` proves causes; alarms only indicate them.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from ...findings import Entry, Finding, rules_in
from ..rules import LOOKS, Alarm, Moment, Seen

__all__ = ["LOOKS", "Alarms", "Moment", "entries", "registered"]


@functools.cache
def registered(folders: tuple[Path | str, ...] = ()) -> tuple[Alarm, ...]:
    """Returns all alarms, by priority.

    Raises:
        ConfigError: a file defines no alarm, or one whose name differs from the file name; the message names the file.
    """
    alarms = rules_in(sys.modules[__name__], folders, "ALARM", Alarm)
    return tuple(sorted(alarms, key=lambda alarm: (alarm.priority, alarm.page.code)))


def entries(folders: tuple[Path | str, ...] = ()) -> list[Entry]:
    """Returns the documentation pages of all alarms."""
    return [alarm.page for alarm in registered(folders)]


class Alarms:
    """Evaluates the alarms on successive samples. A condition is reported once it has lasted for `looks` samples."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._looks = looks
        self._recent: list[Moment] = []

    def evaluate(self, moment: Moment) -> tuple[Finding, ...]:
        """Returns the current findings: alarms (severity "critical") before notes, grouped by loader and GPU."""
        self._recent = [*self._recent, moment][-self._looks :]
        seen = Seen(self._recent, self._looks)
        found = [
            (finding.severity != "critical", alarm.priority // 100, location, alarm.priority, finding)
            for alarm in registered()
            for location, finding in alarm.findings(seen)
        ]
        return tuple(one[-1] for one in sorted(found, key=lambda one: one[:-1]))
