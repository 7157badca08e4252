#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include, every import of the Python package, folder and source file against tools/layers.txt.

Prints `file:line: rule: text` for each violation, and exits with 1 if there is one. The rules:

layer     a quoted include of a folder that the including folder may not include
import    a module of the package imports from a folder that its own folder may not import, even only for types
closure   the same through other headers: the includes of a file's includes count as well
without   a header that a folder may not include, although it may include the header's folder
foreign   a header of another project outside the folder it belongs to, or one that no folder owns
public    include/ uses only its own headers and the C++ standard library, so that users need nothing else
path      a quoted include that names no file, or a file of src/ whose path does not start from src/
cycle     the table allows two folders to include each other
circle    more than two modules of the package import each other, including in functions and for types
folder    a folder of src/ that the table lacks, or that it lists without need
readme    a folder of src/ without a README.md, or with one of more than 40 lines
units     a folder that directly contains more than 30 units: modules, or headers with their sources. Tests, their
          headers and the folder tests/ do not count, as a test is in the folder of the code that it tests
licence   a source file without the SPDX line first (second after #!)
name      a meaningless word in a file or folder name
thread    C++ that creates a thread: only base::Thread may, because exceptions in its body must not end the process
call      C++ of src/ that passes a file name to the system, outside the folders that may: storage does so for others
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from import_circles import circles, imports_in

README_LINES = 40
MOST_UNITS = 30  # folders with more are hard to read: group the units in subfolders
LICENCE = "SPDX-License-Identifier: Apache-2.0"
BANNED_WORDS = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "new", "old", "2"}
SKIPPED_FOLDERS = {"build", "dist", "demo", "__pycache__"}
CPP_SUFFIXES = {".h", ".cpp"}
UNIT_SUFFIXES = CPP_SUFFIXES | {".py", ".pyi"}
LICENSED_SUFFIXES = CPP_SUFFIXES | {".py", ".pyi", ".sh", ".cmake"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

# C++ standard headers contain neither a dot nor a slash. The other system headers that every folder may use are those
# of POSIX, Linux and the compiler.
SYSTEM_HEADER = re.compile(r"(sys|linux|arpa|netinet|net|asm)/[\w/]+\.h|\w+intrin\.h|arm_neon\.h|cpuid\.h")
SYSTEM_HEADERS = {
    "cxxabi.h",
    "dirent.h",
    "dlfcn.h",
    "errno.h",
    "fcntl.h",
    "float.h",
    "limits.h",
    "math.h",
    "netdb.h",
    "poll.h",
    "pthread.h",
    "sched.h",
    "setjmp.h",
    "signal.h",
    "spawn.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "strings.h",
    "time.h",
    "ucontext.h",
    "unistd.h",
}
# Ways to create a thread; std::thread::id and std::this_thread do not create one.
THREAD = re.compile(r"\bstd::(?:j?thread\b(?!::)|async\b)|\b(?:pthread_create|thrd_create)\b")
THREAD_FILES = {
    Path("src/base/thread.h"),
    Path("src/base/thread.cpp"),
    Path("python/bindings/glibc_floor/functions.cpp"),  # forwards pthread_create to glibc
}

# Functions that pass a file name to the system. Functions for descriptors, such as fstat and pread, are allowed
# everywhere, and so is std::filesystem::path, which only splits names.
CALL = re.compile(
    r"(?<![\w>])::(?:open|openat|open64|creat|stat|lstat|fstatat|statx|access|faccessat|opendir|rename|renameat|unlink"
    r"|unlinkat|mkdir|mkdirat|rmdir|link|symlink|readlink|truncate|statvfs|realpath|remove|fopen|freopen)\("
    r"|\bstd::(?:fopen|freopen|remove|rename)\("
    r"|\bstd::(?:basic_)?[io]?f(?:stream|ilebuf)\b"
    r"|\bstd::filesystem::(?!path\b)\w+"
    r"|(?<![\w:.>])(?:fopen|opendir|openat|lstat|fstatat|statx|unlink|mkdir)\("
)

TEST_HEADERS = ("gtest/", "gmock/")
BENCH_HEADERS = ("benchmark/",)


@dataclass
class Table:
    may_include: dict[str, set[str]] = field(default_factory=dict)  # folder -> folders; "*" means every folder
    owners: list[tuple[str, set[str]]] = field(default_factory=list)  # header prefix -> folders
    # folder -> its own headers, in the form in which they are included
    without: dict[str, set[str]] = field(default_factory=dict)
    callers: set[str] = field(default_factory=set)  # folders of src/ that may pass file names to the system

    def is_free(self, folder: str) -> bool:
        return "*" in self.may_include[folder]

    def folder_of(self, path: Path) -> str | None:
        """Returns the innermost folder of the table that contains `path`, which is relative to the root."""
        return next((str(parent) for parent in path.parents if str(parent) in self.may_include), None)

    def is_open_to_tests(self, room: str, reached: str) -> bool:
        """Whether tests in a subfolder may use `reached`: its parents, their subfolders, and what they may include."""
        around = [str(parent) for parent in (Path(room), *Path(room).parents) if str(parent) in self.may_include]
        return any(reached in self.may_include[folder] or is_within(reached, folder) for folder in around)

    def owners_of(self, header: str) -> set[str] | None:
        return next((folders for prefix, folders in self.owners if header.startswith(prefix)), None)


@dataclass(frozen=True)
class Break:
    path: Path
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


C_HEADERS = ("stddef.h", "stdint.h")  # of the C interface of plugins, which is also compiled as C


def read_table(path: Path) -> Table:
    table = Table()
    for text in path.read_text().splitlines():
        words = text.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "only":
            table.owners.append((words[1], set(words[2:])))
        elif words[0] == "calls":
            table.callers.update(words[1:])
        elif words[0] == "without":
            table.without.setdefault(words[1], set()).update(words[2:])
        else:
            table.may_include[words[0]] = set(words[1:])
    for folders in (*table.may_include.values(), *(owners for _, owners in table.owners), table.callers):
        for whole in [name for name in folders if name.endswith("/")]:
            folders.remove(whole)
            folders.update(name for name in table.may_include if is_within(name, whole))
    return table


def is_within(folder: str, other: str) -> bool:
    return Path(folder).is_relative_to(other)


def is_test(path: Path) -> bool:
    return path.stem.endswith(("_test", "_contract", "_fixture")) or path.stem.startswith(("fake_", "test_"))


def source_files(root: Path) -> Iterator[Path]:
    """Returns every file of the checkout, relative to it, except for hidden folders and build folders."""
    pending = [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if path.is_symlink() or path.name.startswith("."):
                continue
            if path.is_dir():
                if path.name not in SKIPPED_FOLDERS:
                    pending.append(path)
            else:
                yield path.relative_to(root)


def includes(text: str) -> Iterator[tuple[int, bool, str]]:
    """Returns (line, quoted, header) for each #include that is not commented out."""
    text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1] == '"', found[2]


def resolve(root: Path, path: Path, header: str) -> Path | None:
    """Returns the file of the checkout to which a quoted include refers, relative to the root."""
    for folder in (path.parent, Path("src"), Path("include"), Path("python/bindings"), Path()):
        candidate = root / folder / header
        if candidate.is_file():
            return candidate.resolve().relative_to(root)
    return None


def check_own_header(table: Table, path: Path, header: str, target: Path) -> tuple[str, str] | None:
    folder = table.folder_of(path)
    reached = table.folder_of(target)
    assert folder is not None
    if path.parts[0] == "src" and header not in {
        str(target.relative_to(base)) for base in ("src", "include", ".") if target.is_relative_to(base)
    }:
        return "path", f'"{header}" should be written from src/, include/ or the root'
    if reached is None:
        return "layer", f'"{header}" is in no folder of the table'
    if reached in (folder, "include"):
        return None
    allowed = table.may_include[folder]
    if folder == "include":
        return "public", f'"{header}": public headers include public headers only'
    if table.is_free(folder) or reached in allowed:
        return None
    if is_test(path) and (reached == "tests" or table.is_open_to_tests(folder, reached)):
        return None
    return "layer", f"{folder} may not include {reached}"


def check_foreign_header(table: Table, path: Path, header: str) -> tuple[str, str] | None:
    folder = table.folder_of(path)
    assert folder is not None
    if ("." not in header and "/" not in header) or header in C_HEADERS:
        return None
    if folder == "include":
        return "public", f"<{header}>: public headers include the C++ standard library only"
    if header in SYSTEM_HEADERS or SYSTEM_HEADER.fullmatch(header):
        return None
    test = is_test(path)
    if header.startswith(TEST_HEADERS):
        return None if test or table.is_free(folder) else ("foreign", f"<{header}> belongs to tests")
    if header.startswith(BENCH_HEADERS):
        return None if folder == "bench" else ("foreign", f"<{header}> belongs to bench")
    owners = table.owners_of(header)
    if table.is_free(folder) or (test and owners):
        return None
    if owners is None:
        return "foreign", f"<{header}> has no folder: add an `only` line to tools/layers.txt"
    if folder not in owners:
        return "foreign", f"<{header}> belongs to {' and '.join(sorted(owners))}"
    return None


def check_includes(root: Path, table: Table, path: Path) -> Iterator[Break]:
    if table.folder_of(path) is None:
        yield Break(path, 1, "folder", "is in no folder of tools/layers.txt")
        return
    for line, quoted, header in includes((root / path).read_text()):
        target = resolve(root, path, header) if quoted else None
        first = header.partition("/")[0]
        if target:
            broken = check_own_header(table, path, header, target)
        elif quoted and (first == "feedline" or f"src/{first}" in table.may_include):
            broken = "path", f'"{header}" names no file'
        else:
            broken = check_foreign_header(table, path, header)
        if broken:
            yield Break(path, line, *broken)


Ways = dict[Path, list[tuple[int, Path]]]  # file -> (line, file that it includes)


def own_includes(root: Path, table: Table) -> Ways:
    """Returns the checkout's files that each file of the table's folders includes."""
    ways: Ways = {}
    for path in source_files(root):
        if path.suffix in CPP_SUFFIXES and table.folder_of(path) is not None:
            quoted = (
                (line, resolve(root, path, header)) for line, quoted, header in includes(read(root / path)) if quoted
            )
            ways[path] = [(line, target) for line, target in quoted if target is not None]
    return ways


def read(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def check_closures(table: Table, ways: Ways) -> Iterator[Break]:
    """Returns the files that each file includes through other headers. Direct includes have their own rule."""
    for path, direct in ways.items():
        folder = table.folder_of(path)
        assert folder is not None
        if table.is_free(folder) or is_test(path):
            continue
        reported: set[str] = set()
        seen = {path}
        pending = [(line, [target]) for line, target in direct]
        while pending:
            line, way = pending.pop(0)
            if way[-1] in seen:
                continue
            seen.add(way[-1])
            broken = forbidden(table, folder, way)
            if broken and broken[1] not in reported:
                reported.add(broken[1])
                yield Break(path, line, broken[0], f"{broken[2]}, through {' -> '.join(map(str, way))}")
            pending += [(line, [*way, target]) for _, target in ways.get(way[-1], [])]


def forbidden(table: Table, folder: str, way: list[Path]) -> tuple[str, str, str] | None:
    """Returns (rule, key for reporting it once, words) if the end of the include chain is not allowed."""
    target, reached = way[-1], table.folder_of(way[-1])
    written = str(target.relative_to("include")) if target.parts[0] == "include" else str(target)
    if written in table.without.get(folder, set()):
        return "without", written, f"{folder} may not reach {written}"
    if len(way) == 1 or reached in (None, folder, "include") or reached in table.may_include[folder]:
        return None
    return "closure", str(reached), f"{folder} may not reach {reached}"


PACKAGE = Path("python/feedline")
# number of files: a class and the function that creates it; larger circles are hard to read file by file
LARGEST_CIRCLE = 2
SHARED_MODULES = {"_engine", "errors", "imagenet", "version"}  # modules of the package that every folder may import


def check_imports(root: Path, table: Table, path: Path) -> Iterator[Break]:
    """Returns the modules of the package that a module imports, at its top or in a function."""
    folder = table.folder_of(path)
    if folder is None or (folder == str(PACKAGE) and len(path.parts) > 3):
        yield Break(path, 1, "folder", "is in no folder of tools/layers.txt")
        return
    if table.is_free(folder):
        return
    for line, module in imports_of(path, read(root / path)):
        reached = table.folder_of(PACKAGE.parent / Path(*module.split("."), "x"))
        named = module.split(".")[1:2]
        if reached == folder or (reached == str(PACKAGE) and named and named[0] in SHARED_MODULES):
            continue
        if reached is None or reached not in table.may_include[folder]:
            yield Break(path, line, "import", f"{folder} may not import {module}")


def check_circles(root: Path) -> Iterator[Break]:
    graph = imports_in(root / PACKAGE)
    for group in circles(graph):
        if len(group) > LARGEST_CIRCLE:
            line = min(line for target, line in graph[group[0]].items() if target in group)
            names = ", ".join(str(path.relative_to(root / PACKAGE)) for path in group)
            yield Break(group[0].relative_to(root), line, "circle", f"{len(group)} files import each other: {names}")


def imports_of(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Returns (line, dotted name) for each import of the package; for `from x import y`, the name is x.y."""
    package = [*path.relative_to(PACKAGE.parent).parts[:-1]]
    pending: list[ast.AST] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, *(node.module.split(".") if node.module else [])]
            if base[:1] == ["feedline"]:
                yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from ((node.lineno, name) for name in names if name.split(".")[0] == "feedline")
        else:
            pending += ast.iter_child_nodes(node)


def check_file(path: Path, text: str) -> Iterator[Break]:
    lines = text.splitlines()[:2]
    script = bool(lines) and lines[0].startswith("#!")
    if (path.suffix in LICENSED_SUFFIXES or path.name == "CMakeLists.txt" or script) and lines:
        first = lines[1] if script and len(lines) > 1 else lines[0]
        if LICENCE not in first:
            yield Break(path, 2 if script else 1, "licence", f"the line `{LICENCE}` is missing")
    if path.suffix in CPP_SUFFIXES | {".py"}:
        for word in sorted(BANNED_WORDS & set(re.split(r"[_\-./]", str(path)))):
            yield Break(path, 1, "name", f"`{word}` has no meaning")


def check_threads(table: Table, path: Path, text: str) -> Iterator[Break]:
    folder = table.folder_of(path)
    if folder is None or table.is_free(folder) or path in THREAD_FILES or is_test(path):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if found := THREAD.search(line.partition("//")[0]):
            yield Break(path, number, "thread", f"{found[0]}: use base::Thread, which receives exceptions of its body")


def check_calls(table: Table, path: Path, text: str) -> Iterator[Break]:
    if path.parts[0] != "src" or table.folder_of(path) in table.callers or is_test(path):
        return
    text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        if found := CALL.search(line.partition("//")[0]):
            what = found[0].rstrip("(").lstrip(":")
            yield Break(
                path, number, "call", f"{what}: pass file names to storage, or to cache for Feedline's own files"
            )


def check_folders(root: Path, table: Table) -> Iterator[Break]:
    layers = Path("tools/layers.txt")
    for folder, allowed in table.may_include.items():
        if cycle := find_cycle(table, folder):
            yield Break(layers, 1, "cycle", " -> ".join(cycle))
        for other in sorted(allowed - {"*"} - table.may_include.keys()):
            yield Break(layers, 1, "folder", f"{folder} names {other}, which the table does not have")
    for folder in sorted(table.without.keys() - table.may_include.keys()):
        yield Break(layers, 1, "folder", f"`without` names {folder}, which the table does not have")
    for folder in sorted(table.callers - table.may_include.keys()):
        yield Break(layers, 1, "folder", f"`calls` names {folder}, which the table does not have")
    for path in sorted((root / "src").glob("*/")):
        folder = path.relative_to(root)
        if not any(path.rglob("*.*")):
            continue
        if str(folder) not in table.may_include:
            yield Break(folder, 1, "folder", "is not in tools/layers.txt")
        readme = path / "README.md"
        if not readme.is_file():
            yield Break(folder / "README.md", 1, "readme", "is missing")
        elif (lines := len(readme.read_text().splitlines())) > README_LINES:
            yield Break(folder / "README.md", lines, "readme", f"has more than {README_LINES} lines")


def check_units(files: list[Path]) -> Iterator[Break]:
    """Reports folders that directly contain too many units."""
    units: dict[Path, set[str]] = {}
    for path in files:
        if path.suffix in UNIT_SUFFIXES and path.parts[0] != "tests" and not is_test(path):
            units.setdefault(path.parent, set()).add(path.stem)
    for folder, names in units.items():
        if len(names) > MOST_UNITS:
            yield Break(folder, 1, "units", f"has {len(names)} units, more than {MOST_UNITS}: group them in subfolders")


def find_cycle(table: Table, start: str) -> list[str] | None:
    """Returns a path through the table from `start` back to `start`."""
    pending, seen = [[start]], set()
    while pending:
        way = pending.pop()
        for folder in sorted(table.may_include.get(way[-1], set()) - {"*"}):
            if folder == start:
                return [*way, start]
            if folder not in seen:
                seen.add(folder)
                pending.append([*way, folder])
    return None


def check(root: Path) -> list[Break]:
    root = root.resolve()
    table = read_table(root / "tools/layers.txt")
    breaks = list(check_folders(root, table))
    breaks += check_closures(table, own_includes(root, table))
    breaks += check_circles(root)
    files = list(source_files(root))
    breaks += check_units(files)
    for path in files:
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        breaks += check_file(path, text)
        if path.suffix in CPP_SUFFIXES:
            breaks += check_threads(table, path, text)
            breaks += check_calls(table, path, text)
            breaks += check_includes(root, table, path)
        if path.suffix == ".py" and path.is_relative_to(PACKAGE):
            breaks += check_imports(root, table, path)
    return breaks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    breaks = check(parser.parse_args().root)
    for found in breaks:
        print(found)
    return 1 if breaks else 0


if __name__ == "__main__":
    sys.exit(main())
