# SPDX-License-Identifier: Apache-2.0
"""unity_groups.py MOST SOURCE...: groups sources that can be compiled as one; prints `GROUP SOURCE` for each of them.

Sources have helpers in unnamed namespaces, and helpers of two files often have the same name. A group must compile
like its single sources. Two sources are therefore in different groups if
- both define the same name at the left margin,
- one defines a type with a name that the other contains, possibly for another type,
- one defines a function that headers of the other declare, as a call would be ambiguous, or
- only one registers image operations (FEEDLINE_OPERATION): its header defines templates that the other only declares.

Sources in a folder include similar headers, and a new source should only change the groups of its folder, so groups are
first formed within each folder. Groups that are at most half full are dissolved, and their sources are combined across
folders.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

_NO_NAMES = re.compile(
    r"(?:TEST|TEST_P|TEST_F|INSTANTIATE_TEST_SUITE_P|FEEDLINE_[A-Z_]+|static_assert|namespace|public|private|protected)\b"
)
_TYPE = re.compile(r"(?:class|struct|enum class|enum|union)\s+(\w+)")
_ALIAS = re.compile(r"using\s+(\w+)\s*=")
# not a member of a class: that would begin with the class name
_FIRST = re.compile(r"[^(={;]*?(?<!:)\b(\w+)\s*(?:\(|=|\{|;|\[)")
_REGISTERS = re.compile(r"^FEEDLINE_[A-Z_]+\(", re.MULTILINE)
_FUNCTION = re.compile(r"^(?![ \t#/})])[^(={;\n]*?(?<!:)\b(\w+)\s*\(", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_WORD = re.compile(r"\w+")
_FURTHER = re.compile(r",\s*(k[A-Z]\w+)\s*(?:=|\{)")  # a further constant on the same line


@dataclass
class Names:
    """The names at the left margin of sources: types, aliases, functions and constants.

    `defined` maps each name to the source that defines it, or to the line of an alias, because an alias may be defined
    twice. `own` are names that no header of their source declares, `declared` are names that headers declare, and
    `words` are all words.
    """

    defined: dict[str, str] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    registers: bool = False

    def goes_with(self, other: Names) -> bool:
        same = self.defined.keys() & other.defined.keys()
        return (
            self.registers == other.registers
            and all(self.defined[name] == other.defined[name] for name in same)
            and self.own.isdisjoint(other.declared)
            and other.own.isdisjoint(self.declared)
            and self.types.isdisjoint(other.words)
            and other.types.isdisjoint(self.words)
        )

    def add(self, other: Names) -> None:
        self.defined |= other.defined
        self.types |= other.types
        self.words |= other.words
        self.own |= other.own
        self.declared |= other.declared


@functools.cache
def declared_by(header: Path) -> frozenset[str]:
    """Returns the functions at the left margin of a header and of the headers that it includes."""
    text = header.read_text(encoding="utf-8")
    found = {match[1] for match in _FUNCTION.finditer(text) if not _NO_NAMES.match(match[0])}
    return frozenset(found).union(*map(declared_by, headers_of(header, text)))


def headers_of(source: Path, text: str) -> list[Path]:
    """Returns the headers included with quotes that exist relative to a parent folder of `source` or its `include`."""
    found = []
    for name in _INCLUDE.findall(text):
        for folder in source.parents:
            if (
                header := next(
                    (folder / room / name for room in (".", "include") if (folder / room / name).is_file()), None
                )
            ) is not None:
                found.append(header)
                break
    return found


def names_in(source: Path) -> Names:
    text = source.read_text(encoding="utf-8")
    found = Names(words=set(_WORD.findall(text)), registers=_REGISTERS.search(text) is not None)
    for line in text.splitlines():
        if not line or line[0] in " \t#/})" or _NO_NAMES.match(line):
            continue
        if alias := _ALIAS.match(line):
            found.defined[alias[1]] = line
        elif a_type := _TYPE.match(line):
            found.defined[a_type[1]] = str(source)
            found.types.add(a_type[1])
        elif first := _FIRST.match(line):
            found.defined[first[1]] = str(source)
        found.defined.update((name, str(source)) for name in _FURTHER.findall(line))
    found.declared = set().union(*map(declared_by, headers_of(source, text)))
    found.own = {name for name, path in found.defined.items() if path == str(source)} - found.declared - found.types
    return found


def groups_of(sources: list[Path], most: int) -> list[list[Path]]:
    """Assigns each source, in order, to the first group that has room and that it is compatible with."""
    groups: list[tuple[list[Path], Names]] = []
    for source in sources:
        names = names_in(source)
        for members, taken in groups:
            if len(members) < most and names.goes_with(taken):
                members.append(source)
                taken.add(names)
                break
        else:
            groups.append(([source], names))
    return [members for members, _ in groups]


def named_groups(sources: list[Path], most: int) -> dict[str, list[Path]]:
    """Returns the groups, named `FOLDER_NUMBER`, or `rest_NUMBER` for sources of folders with too few sources."""
    folders: dict[Path, list[Path]] = {}
    for source in sources:
        folders.setdefault(source.parent, []).append(source)
    found, rest = {}, []
    for folder, inside in folders.items():
        for number, members in enumerate(groups_of(inside, most)):
            if 2 * len(members) > most or len(folders) == 1:
                found[f"{folder.parent.name}_{folder.name}_{number}"] = members
            else:
                rest += members
    found.update((f"rest_{number}", members) for number, members in enumerate(groups_of(rest, most)))
    return found


def main(arguments: list[str]) -> None:
    for name, members in named_groups([Path(name) for name in arguments[1:]], int(arguments[0])).items():
        for member in members if len(members) > 1 else ():
            print(name, member)


if __name__ == "__main__":
    main(sys.argv[1:])
