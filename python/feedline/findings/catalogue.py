# SPDX-License-Identifier: Apache-2.0
"""The pages of findings: what a code means, how it is recognised, by which numbers, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple


class Threshold(float):
    """A number that a rule compares with, and why it is that one. A float wherever one is wanted.

    It stands in the rule's file under a name in capitals, and the page lists it by that name.
    """

    reason: str

    def __new__(cls, value: float, reason: str = "") -> Threshold:
        made = super().__new__(cls, value)
        made.reason = reason
        return made


class Named(NamedTuple):
    """A threshold as a page shows it."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True)
class Entry:
    """One page of the catalogue.

    Attributes:
        code: the finding's.
        verb: whose finding it is: "diagnose", "trace", "top", "inspect", "verify", "env", "diff" or "doctor". A code of
            two verbs has two pages.
        title: what it says, in half a sentence.
        means: what is the matter, in a few sentences.
        recognised: what decides.
        to_do: what to change.
        abstains: when it is not reported although it may be so; "": there is no such case.
        example: a case, with what the verb says of it.
        thresholds: the numbers that its rule compares with.
        contradicted: measured figures that keep it from being certain, in half a sentence each.
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
    """The thresholds that a module names, its own and those that it shares, in the order of their names."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, Threshold)}
    return tuple(Named(name.lower(), float(value), value.reason) for name, value in sorted(found.items()))
