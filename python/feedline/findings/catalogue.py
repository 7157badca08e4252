# SPDX-License-Identifier: Apache-2.0
"""The pages of findings: a code's meaning, evidence, thresholds and fix."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple


class Threshold(float):
    """A number with which a rule compares a measurement, and the reason for its value. A threshold can be used as a
    float.

    Thresholds are constants in the rule's file, and are listed on its page by name.
    """

    reason: str

    def __new__(cls, value: float, reason: str = "") -> Threshold:
        made = super().__new__(cls, value)
        made.reason = reason
        return made


class Named(NamedTuple):
    """A threshold as listed on a page."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True)
class Entry:
    """A page of the catalogue.

    Attributes:
        code: the finding's.
        verb: the subcommand: "diagnose", "trace", "top", "inspect", "verify", "env", "diff" or "doctor". A code that
            two subcommands use has two pages.
        title: a short phrase.
        means: an explanation of the problem, in a few sentences.
        recognised: the evidence for the problem.
        to_do: the fix.
        abstains: when the problem is not reported although it may exist; "" if never.
        example: an example with the subcommand's message.
        thresholds: the rule's thresholds.
        contradicted: measurements that make the finding uncertain, as short phrases.
    """

    code: str
    verb: str
    title: str
    means: str
    recognised: str
    to_do: str
    abstains: str = ""
    example: str = ""
    thresholds: tuple[Named, ...] = ()
    contradicted: tuple[str, ...] = ()


def thresholds_of(module: ModuleType) -> tuple[Named, ...]:
    """Returns all thresholds in a module, including imported ones, sorted by name."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, Threshold)}
    return tuple(Named(name.lower(), float(value), value.reason) for name, value in sorted(found.items()))
