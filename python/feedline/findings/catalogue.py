# SPDX-License-Identifier: Apache-2.0
"""The pages of findings: a code's meaning, evidence, thresholds and fix."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple


class Threshold(float):
    """A number that a rule compares with, and its reason. Usable as a float.

    It is a constant in the rule's file, and the page lists it by that name.
    """

    reason: str

    def __new__(cls, value: float, reason: str = "") -> Threshold:
        made = super().__new__(cls, value)
        made.reason = reason
        return made


class Named(NamedTuple):
    """A threshold on a page."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True)
class Entry:
    """A page of the catalogue.

    Attributes:
        code: the finding's.
        verb: "diagnose", "trace", "top", "inspect", "verify", "env", "diff" or "doctor". A code of two verbs has two
            pages.
        title: a short phrase.
        means: an explanation of the problem, in a few sentences.
        recognised: the evidence for it.
        to_do: the fix.
        abstains: when it is not reported although it may be present; "" if that cannot happen.
        example: a case, with the verb's message.
        thresholds: the numbers that its rule compares with.
        contradicted: measurements that make it uncertain, as short phrases.
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
    """Returns a module's thresholds, its own and imported ones, sorted by name."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, Threshold)}
    return tuple(Named(name.lower(), float(value), value.reason) for name, value in sorted(found.items()))
