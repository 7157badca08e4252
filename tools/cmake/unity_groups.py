# SPDX-License-Identifier: Apache-2.0
"""unity_groups.py MOST SOURCE...: which tests can be compiled as one: a line `GROUP SOURCE` for each in a group.

Tests have helpers of their own in unnamed namespaces, and those of two files often have one name. Two sources that
define the same name at the left margin are kept apart, so a group compiles as its sources do one by one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_NO_NAMES = re.compile(r"(?:TEST|TEST_P|TEST_F|INSTANTIATE_TEST_SUITE_P|namespace|public|private|protected)\b")
_TYPE = re.compile(r"(?:class|struct|enum class|enum|union)\s+(\w+)")
_ALIAS = re.compile(r"using\s+(\w+)\s*=")
_FIRST = re.compile(r"[^(={;]*?\b(\w+)\s*(?:\(|=|\{|;|\[)")
_FURTHER = re.compile(r",\s*(k[A-Z]\w+)\s*(?:=|\{)")  # of several constants in one line


def names_in(source: Path) -> set[str]:
    """What a source defines at the left margin: types, aliases, functions and constants."""
    found: set[str] = set()
    for line in source.read_text(encoding="utf-8").splitlines():
        if not line or line[0] in " \t#/})" or _NO_NAMES.match(line):
            continue
        if first := _TYPE.match(line) or _ALIAS.match(line) or _FIRST.match(line):
            found.add(first[1])
        found.update(_FURTHER.findall(line))
    return found


def groups_of(sources: list[Path], most: int) -> list[list[Path]]:
    """First come, first served: each source goes to the first group with room where it has no name in common."""
    groups: list[tuple[list[Path], set[str]]] = []
    for source in sources:
        names = names_in(source)
        for members, taken in groups:
            if len(members) < most and not names & taken:
                members.append(source)
                taken |= names
                break
        else:
            groups.append(([source], names))
    return [members for members, _ in groups]


def main(arguments: list[str]) -> None:
    for number, members in enumerate(groups_of([Path(name) for name in arguments[1:]], int(arguments[0]))):
        for member in members if len(members) > 1 else ():
            print(number, member)


if __name__ == "__main__":
    main(sys.argv[1:])
