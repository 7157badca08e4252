# SPDX-License-Identifier: Apache-2.0
"""Output paths, checked while the command line is parsed, before any work starts.

The types ``OUTPUT_FILE`` and ``OUTPUT_FOLDER`` of :mod:`feedline.cli.parameters` check output paths, so that no
subcommand starts with a path that cannot be written. A problem is a usage error with exit status 2 that names the
option, the path and the next step. A subcommand that also reads files, or writes several, starts with :func:`distinct`,
so that no file overwrites another::

    distinct({"SOURCE": source, "--settings": settings, "--record": record})

The checks create and change nothing. A disk can still fill up later, so subcommands write each output at the end,
either completely or not at all.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from feedline.machine.storage import local_path

# "s3://bucket/x", and "s3:/bucket/x", which Path makes of it
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


def problem_of_file(path: str | os.PathLike[str]) -> str | None:
    """Returns the reason why no file can be written at `path`, and the next step; None if it can be written."""
    target = Path(path)
    found = _problem_of_name(path)
    if found is not None:
        return found
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        return _problem_of_parent(target)
    except OSError as error:
        return f"'{path}': {error.strerror}"
    if stat.S_ISDIR(kind):
        return f"'{path}' is a folder; pass the name of a file in it, such as {target / 'run.json'}"
    if not os.access(target, os.W_OK):
        return f"'{path}' exists and is not writable; use another name, or make the file writable (chmod u+w)"
    from feedline.record import is_replaced  # imported here: the import takes as long as most commands

    return _problem_of_parent(Path(os.path.realpath(target))) if is_replaced(path) else None


def problem_of_folder(path: str | os.PathLike[str]) -> str | None:
    """Returns the reason why no folder can be written at `path`, and the next step; None if it can be written. Folders
    are created.
    """
    target = Path(path)
    found = _problem_of_name(path)
    if found is not None:
        return found
    nearest = target.absolute()
    try:
        while not os.path.lexists(nearest):
            nearest = nearest.parent
        if not nearest.is_dir():
            what = (
                "exists and is not a folder"
                if nearest == target.absolute()
                else f"is in {nearest}, which is not a folder"
            )
            return f"'{path}' {what}; use another name"
    except OSError as error:
        return f"'{path}': {error.strerror}"
    return _problem_of_making(nearest)


def distinct(places: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raises a usage error if two of `places`, which maps command-line names to paths, are the same file."""
    seen: dict[tuple[int, int] | str, str] = {}
    for name, output in places.items():
        if output is None:
            continue
        identity = _identity(local_path(os.fspath(output)))
        if identity is None:
            continue
        if identity in seen:
            raise click.UsageError(
                f"{seen[identity]} and {name} are the same file, '{os.fspath(output)}': use two files"
            )
        seen[identity] = name


def _identity(output: str | os.PathLike[str]) -> tuple[int, int] | str | None:
    """Returns an identifier of a file that may not exist yet; None if it can be written twice, such as /dev/stdout."""
    try:
        found = os.stat(output)
    except OSError:
        return os.path.realpath(output)
    from feedline.record import is_replaced

    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) or is_replaced(output) else None


def _problem_of_name(path: str | os.PathLike[str]) -> str | None:
    text = os.fspath(path)
    if not text:
        return "the path is empty; pass a path"
    if text.startswith("~"):
        return f"'{text}': ~ is not expanded by the shell here; write {os.path.expanduser(text)}"
    if _URL.match(text):
        return f"'{text}' is a URL; only local files can be written; pass a local path, and upload the file afterwards"
    return None


def _problem_of_parent(target: Path) -> str | None:
    parent = target.parent
    if not parent.exists():
        return f"'{target}': the folder {parent} does not exist; create it first: mkdir -p {parent}"
    if not parent.is_dir():
        return f"'{target}': {parent} is not a folder; use another name"
    return _problem_of_making(parent)


def _problem_of_making(folder: Path) -> str | None:
    """Checks writability by creating an unnamed file, because permission bits are not sufficient and do not apply to
    root.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot write into {folder}: {error.strerror}; use another location"
