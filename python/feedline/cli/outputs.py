# SPDX-License-Identifier: Apache-2.0
"""Output paths, checked while the command line is parsed, before any work.

The types ``OUTPUT_FILE`` and ``OUTPUT_FOLDER`` of :mod:`feedline.cli.parameters` check them, so that no subcommand
runs with a path that cannot be written. A problem is a usage error, exit status 2, that names the option, the path and
the next step. A subcommand that also reads files, or writes several, starts with :func:`distinct`, so that no file
overwrites another::

    distinct({"SOURCE": source, "--settings": settings, "--record": record})

Checking creates and changes nothing. A disk can still fill up later: subcommands write last, and completely or
not at all.
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
from feedline.record import is_replaced

# "s3://bucket/x", and "s3:/bucket/x", which Path makes of it
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


def problem_of_file(path: str | os.PathLike[str]) -> str | None:
    """Returns why no file can be written at `path`, with the next step; None if one can."""
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
        return f"'{path}' exists and is not writable; use another name, or chmod u+w it"
    return _problem_of_parent(Path(os.path.realpath(target))) if is_replaced(path) else None


def problem_of_folder(path: str | os.PathLike[str]) -> str | None:
    """Returns why no folder can be written at `path`, with the next step; None if one can. Folders are created."""
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
    """Raises a usage error if two of `places`, keyed by their names on the command line, are the same file."""
    seen: dict[tuple[int, int] | str, str] = {}
    for name, place in places.items():
        if place is None:
            continue
        identity = _identity(local_path(os.fspath(place)))
        if identity is None:
            continue
        if identity in seen:
            raise click.UsageError(
                f"{seen[identity]} and {name} are the same file, '{os.fspath(place)}': use two files"
            )
        seen[identity] = name


def _identity(place: str | os.PathLike[str]) -> tuple[int, int] | str | None:
    """Returns a file's identity, whether it exists or not; None if it can be written twice, such as /dev/stdout."""
    try:
        found = os.stat(place)
    except OSError:
        return os.path.realpath(place)
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) or is_replaced(place) else None


def _problem_of_name(path: str | os.PathLike[str]) -> str | None:
    text = os.fspath(path)
    if not text:
        return "empty name; pass a path"
    if text.startswith("~"):
        return f"'{text}': ~ is not expanded here; write {os.path.expanduser(text)}"
    if _URL.match(text):
        return f"'{text}' is a URL; only local paths can be written: use one, and copy the file there afterwards"
    return None


def _problem_of_parent(target: Path) -> str | None:
    parent = target.parent
    if not parent.exists():
        return f"'{target}': the folder {parent} does not exist; create it first: mkdir -p {parent}"
    if not parent.is_dir():
        return f"'{target}': {parent} is not a folder; use another name"
    return _problem_of_making(parent)


def _problem_of_making(folder: Path) -> str | None:
    """Checks by creating an unnamed file: permissions are not sufficient, and do not apply to root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot write into {folder}: {error.strerror}; use another location"
