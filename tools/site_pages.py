# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the documentation site to a folder: tools/site_pages.py FOLDER (tools/docs).

These are README.md, docs/ and all files to which they link, with the same paths as in the checkout. Markdown that
GitHub and Python-Markdown interpret differently is rewritten: lists directly after a paragraph, and nested lists. The
page of the command line contains the ``--help`` of every subcommand.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

CHECKOUT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()(?!https?://|mailto:)([^)#\s]+)((?:#[^)\s]+)?\))")
NUMBERED = re.compile(r"^\[(\d+)\] \[", re.MULTILINE)  # Python-Markdown would treat both as one link
FENCE = re.compile(r"^ *(```|~~~)")
ITEM = re.compile(r"^( *)([-*]|\d+\.) ")
HELP = "<!-- the --help of each subcommand -->\n"
INDEX = "index.md"
CAUSES = "causes.md"  # in docs/; generated, not committed


def outside_fences(text: str, change: Callable[[list[str]], list[str]]) -> str:
    """Returns `text` with `change` applied to its lines outside code."""
    changed: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if not fence and found:
            changed += change(prose)
            prose, fence = [], found[1]
            changed.append(line)
        elif fence:
            changed.append(line)
            fence = "" if found and found[1] == fence else fence
        else:
            prose.append(line)
    return "\n".join(changed + change(prose))


def lists_apart(lines: list[str]) -> list[str]:
    """Inserts a blank line before each list that lacks one, and indents each level by four spaces instead of two."""
    apart: list[str] = []
    inside = False  # a list
    for line in lines:
        item = ITEM.match(line)
        if item and not inside and apart and apart[-1].strip():
            apart.append("")
        inside = item is not None or (inside and (not line.strip() or line.startswith(" ")))
        spaces = len(line) - len(line.lstrip(" "))
        apart.append(" " * spaces + line if inside and spaces in (2, 4, 6) else line)
    return apart


def page(path: Path) -> str:
    """Returns a page of the site from a Markdown file of the checkout. Links to folders refer to the folders' pages."""

    def linked(found: re.Match[str]) -> str:
        target = path.parent / found[2]
        return found[1] + (f"{found[2].rstrip('/')}/{entry(target).name}" if target.is_dir() else found[2]) + found[3]

    text = outside_fences(NUMBERED.sub(r"\\[\1\\] [", path.read_text()), lists_apart)
    return outside_fences(text, lambda lines: [LINK.sub(linked, line) for line in lines])


def entry(folder: Path) -> Path:
    """Returns the page to which links to a folder refer."""
    return folder / ("README.md" if (folder / "README.md").exists() else INDEX)


def targets(path: Path) -> Iterator[Path]:
    """Returns the files of the checkout to which a Markdown file links; a folder is replaced by its files."""
    for line in re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S).split("\n"):
        for found in LINK.finditer(line):
            target = Path(os.path.normpath(path.parent / found[2]))
            if target.is_dir():
                yield target / INDEX if not (target / "README.md").exists() else target / "README.md"
                yield from (one for one in sorted(target.iterdir()) if one.suffix == ".md")
            elif target.exists():
                yield target


def contents(folder: Path) -> str:
    """Returns the page of a folder without a README: the titles of its pages, or the names of its files."""
    rows = []
    for file in sorted(folder.iterdir()):
        if file.suffix == ".md":
            title = file.read_text().partition("\n")[0].removeprefix("# ")
            rows.append(f"- [{title}]({file.name})")
        elif file.is_file():
            rows.append(f"- [{file.name}]({file.name})")
    return f"# {folder.name.replace('_', ' ').capitalize()}\n\n" + "\n".join(rows) + "\n"


def stand_in_for_the_engine() -> None:
    """Replaces the engine if it is not compiled, so that the command can be imported to print its help."""

    class Engine(ModuleType):
        def __getattr__(self, name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__init__": lambda self, *_, **__: None, "__iter__": lambda self: iter(())})

    if "feedline._engine" not in sys.modules and importlib.util.find_spec("feedline._engine") is None:
        sys.modules["feedline._engine"] = Engine("feedline._engine")


def help_of_verbs() -> str:
    """Returns the help of the command and its subcommands, as shown in a terminal of 90 columns."""
    import click

    stand_in_for_the_engine()
    from feedline.cli.root import root

    def shown(context: click.Context, command: click.Command) -> Iterator[str]:
        name = context.command_path
        yield f"{'##' if name.count(' ') < 2 else '###'} {name}\n\n```\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            for verb in command.list_commands(context):
                inner = command.get_command(context, verb)
                assert inner is not None
                yield from shown(click.Context(inner, info_name=verb, parent=context), inner)

    settings: dict[str, Any] = root.context_settings
    return "\n".join(shown(click.Context(root, info_name="feedline", max_content_width=90, **settings), root))


def causes() -> str:
    """Returns the pages of all findings, as printed by `feedline explain --markdown`."""
    stand_in_for_the_engine()
    from feedline.cli.commands.explain import pages_of
    from feedline.findings import formats

    return formats.document(pages_of())


def gather(folder: Path) -> int:
    """Writes the pages. Returns the number of files."""
    docs = CHECKOUT / "docs"
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "docs" / CAUSES).write_text(outside_fences(causes(), lists_apart))
    pending = [
        CHECKOUT / "README.md",
        *(page for page in sorted(docs.rglob("*.md")) if page.name != CAUSES),
        *docs.glob("*.css"),
        *docs.glob("*.js"),
    ]
    seen = set(pending)
    while pending:
        path = pending.pop()
        written = folder / path.relative_to(CHECKOUT)
        written.parent.mkdir(parents=True, exist_ok=True)
        if path.name == INDEX and not path.exists():
            written.write_text(contents(path.parent))
            found = [file for file in path.parent.iterdir() if file.is_file()]
        elif path.suffix == ".md":
            text = page(path)
            written.write_text(text.replace(HELP, help_of_verbs()) if HELP in text else text)
            found = list(targets(path))
        else:
            shutil.copyfile(path, written)
            found = []
        for target in found:
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return len(seen) + 1


if __name__ == "__main__":
    print(gather(Path(sys.argv[1]).resolve()), "files")
