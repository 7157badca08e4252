# SPDX-License-Identifier: Apache-2.0
"""Places that a verb will write to: looked at while the command line is read, before any work.

The types ``OUTPUT_FILE`` and ``OUTPUT_FOLDER`` of :mod:`feedline.cli.parameters` look, so that no verb is called with a
place that cannot be written. What is wrong with it is a usage error, exit status 2, that names the option, the place
and the next step. Where a verb reads files too, or writes several, it begins with :func:`distinct`, so that none is
written over another::

    distinct({"SOURCE": source, "--settings": settings, "--record": record})

Nothing is made or changed by looking. A disk can still fill up meanwhile: verbs write last, and whole or not at all.
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

# "s3://bucket/x"; also what Path makes of it, "s3:/bucket/x"
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")


def problem_of_file(path: str | os.PathLike[str]) -> str | None:
    """Why no file can be written at `path`, with the next step; None where one can."""
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
        return f"'{path}' is a folder; give the name of a file in it, such as {target / 'run.json'}"
    if not os.access(target, os.W_OK):
        return f"'{path}' is there and may not be written; give another name, or chmod u+w it"
    return _problem_of_parent(Path(os.path.realpath(target))) if is_replaced(path) else None


def problem_of_folder(path: str | os.PathLike[str]) -> str | None:
    """Why `path` cannot be a folder with new files in it, with the next step; None where it can: folders are made."""
    target = Path(path)
    found = _problem_of_name(path)
    if found is not None:
        return found
    nearest = target.absolute()
    try:
        while not os.path.lexists(nearest):
            nearest = nearest.parent
        if not nearest.is_dir():
            what = "is there and is no folder" if nearest == target.absolute() else f"lies in {nearest}, no folder"
            return f"'{path}' {what}; give another name"
    except OSError as error:
        return f"'{path}': {error.strerror}"
    return _problem_of_making(nearest)


def distinct(places: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Raises a usage error where two of `places`, by what the command line calls them, are one file."""
    seen: dict[tuple[int, int] | str, str] = {}
    for name, place in places.items():
        if place is None:
            continue
        identity = _identity(local_path(os.fspath(place)))
        if identity is None:
            continue
        if identity in seen:
            raise click.UsageError(f"{seen[identity]} and {name} are the same file, '{os.fspath(place)}': give two")
        seen[identity] = name


def _identity(place: str | os.PathLike[str]) -> tuple[int, int] | str | None:
    """Of a file, there or to be; None of what two may be written to one after the other, such as /dev/stdout."""
    try:
        found = os.stat(place)
    except OSError:
        return os.path.realpath(place)
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) or is_replaced(place) else None


def _problem_of_name(path: str | os.PathLike[str]) -> str | None:
    text = os.fspath(path)
    if not text:
        return "an empty name; give a path"
    if text.startswith("~"):
        return f"'{text}': ~ is not expanded here; write it out: {os.path.expanduser(text)}"
    if _URL.match(text):
        return f"'{text}' is a URL; only local paths are written: give one, and copy it there afterwards"
    return None


def _problem_of_parent(target: Path) -> str | None:
    parent = target.parent
    if not parent.exists():
        return f"'{target}': there is no folder {parent}; make it first: mkdir -p {parent}"
    if not parent.is_dir():
        return f"'{target}': {parent} is no folder; give another name"
    return _problem_of_making(parent)


def _problem_of_making(folder: Path) -> str | None:
    """By making a file without a name: what permissions say is not all, and does not hold for root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"nothing can be written into {folder}: {error.strerror}; give another place"
