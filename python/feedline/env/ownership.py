# SPDX-License-Identifier: Apache-2.0
"""Maps files to the packages that own them, and finds changed files, from conda-meta and RECORD."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..machine.limits import usable_cpus
from .reading.listed import Listed, sha256_of
from .reading.wheels import Installed
from .scan import Environment

LARGE_BYTES = 64 << 20  # Manual edits are in small files; hashing 6 GB of CUDA libraries takes many seconds.
_HALF = 0.5


@dataclass(frozen=True)
class Clash:
    """Files that conda installed and that another project also lists."""

    project: Installed
    package: str
    paths: tuple[str, ...]


@dataclass
class Files:
    """The state of an environment's files.

    Attributes:
        clashes: projects that pip installed over conda's files.
        twice: paths that two projects list with different content, by the pair of project names.
        missing, altered: paths of missing files, and of files that were changed after the installation, by the owner's
            name.
        half: owners with most of their files missing, with (missing, listed) counts.
        unreadable: paths that this user may not read.
        compared: number of files compared. by_size: number of these files, all large, that were compared only by size.
    """

    clashes: list[Clash] = field(default_factory=list)
    twice: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    altered: dict[str, list[str]] = field(default_factory=dict)
    half: dict[str, tuple[int, int]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    compared: int = 0
    by_size: int = 0


def look_at(seen: Environment, deep: bool = False) -> Files:
    """Compares every file with its package's list; each file is reported in one finding only."""
    files = Files()
    files.clashes = _clashes(seen)
    owned = _owned(seen, files)
    with ThreadPoolExecutor(usable_cpus()) as threads:
        for owner, listed in owned.items():
            _compare(owner, listed, files, deep, threads)
    return files


def _clashes(seen: Environment) -> list[Clash]:
    found = []
    for one in seen.distributions if seen.packages else ():
        if seen.is_condas(one):
            continue
        by_package: dict[str, list[str]] = defaultdict(list)
        for listed in one.files:
            package = seen.conda_paths.get(seen.relative(listed.path))
            if package is not None:
                by_package[package.name].append(listed.path)
        found += [Clash(one, package, tuple(paths)) for package, paths in by_package.items()]
    return found


def _owned(seen: Environment, files: Files) -> dict[str, list[Listed]]:
    """Returns the files to compare, by owner, except files with two owners and packages that other findings cover."""
    overwritten = {clash.package for clash in files.clashes}
    spoilt = _doubled(seen) | {one.name for one in seen.distributions if not one.has_metadata}
    owned = {one.name: list(one.files) for one in seen.packages if one.name not in overwritten}
    claims: dict[str, tuple[str, Listed]] = {}
    for one in seen.distributions:
        if seen.is_condas(one) or one.is_systems or one.name in spoilt:
            continue
        mine = owned.setdefault(one.name, [])
        for listed in one.files:
            other = claims.setdefault(listed.path, (one.name, listed))
            if other[0] == one.name:
                mine.append(listed)
            elif other[1].sha256 != listed.sha256 and listed.size:
                files.twice.setdefault((other[0], one.name), []).append(listed.path)
    disputed = {path for paths in files.twice.values() for path in paths}
    return {owner: [one for one in listed if one.path not in disputed] for owner, listed in owned.items()}


def _doubled(seen: Environment) -> set[str]:
    places = [(one.name, one.site) for one in seen.distributions]
    return {name for name, site in places if places.count((name, site)) > 1}


def _compare(owner: str, listed: Iterable[Listed], files: Files, deep: bool, threads: ThreadPoolExecutor) -> None:
    there: list[Listed] = []
    missing, altered, count = [], [], 0
    for one in listed:
        count += 1
        try:
            size = os.stat(one.path).st_size
        except (FileNotFoundError, NotADirectoryError):
            missing.append(one.path)
            continue
        except OSError:
            files.unreadable.append(one.path)
            continue
        if one.size is not None and size != one.size:
            altered.append(one.path)
        elif one.sha256 and (deep or size < LARGE_BYTES):
            there.append(one)
        else:
            files.by_size += bool(one.sha256)
    for one, digest in zip(there, threads.map(_digest, there), strict=True):
        if digest is None:
            files.unreadable.append(one.path)
        elif digest != one.sha256:
            altered.append(one.path)
    files.compared += count
    if len(missing) > _HALF * count:
        files.half[owner] = (len(missing), count)
    elif missing:
        files.missing[owner] = missing
    if altered:
        files.altered[owner] = sorted(altered)


def _digest(one: Listed) -> str | None:
    try:
        return sha256_of(one.path)
    except OSError:
        return None
