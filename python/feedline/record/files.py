# SPDX-License-Identifier: Apache-2.0
"""Creates, checks, reads and writes run records."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedline.errors import RecordError

from ..env.snapshot import own_fingerprint
from ..machine.facts import machine_facts
from ..machine.packages import package_facts
from ..machine.software import software_facts
from ..machine.storage import storage_facts
from . import diagnosis
from .validation import problem

VERSION = 1
_LARGEST_FILE = 256 << 20  # a record has about 100 kB: larger files are something else


def envelope(
    verb: str, command: Sequence[str], subject: str, *, began: float | None = None, source: str | None = None
) -> dict[str, Any]:
    """Returns a record without measurements: author, time, and all facts about this machine.

    Args:
        verb: the subcommand that measured, without ``feedline``.
        command: the command line, as a list of arguments.
        subject: a description of the dataset or script.
        began: start time in seconds since 1970; defaults to the current time.
        source: a path on the storage to describe; None if the storage is unknown.
    """
    when = datetime.now(UTC) if began is None else datetime.fromtimestamp(began, UTC)
    machine, machine_notes = machine_facts()
    storage, storage_notes = storage_facts(source)
    return {
        "run_record": VERSION,
        "verb": verb,
        "command": list(command),
        "began": when.isoformat(timespec="seconds"),
        "subject": subject,
        "machine": machine,
        "software": {**software_facts(), "environment_fingerprint": own_fingerprint()},
        "storage": storage,
        "packages": package_facts(),
        **empty_measurements(),
        "notes": machine_notes + storage_notes,
    }


def empty_measurements() -> dict[str, Any]:
    return {
        "configuration": {},
        "figures": [],
        "stages": [],
        "chain": [],
        "waits": None,
        "histograms": {},
        "timeline": None,
        "ladder": None,
        "verdicts": [],
        "abstained": [],
        "notes": [],
    }


def check(record: Any, name: str = "the record") -> dict[str, Any]:
    """Checks that `record` is a run record of a supported version, and returns it converted to the current version.

    Also accepts diagnoses written by older versions of ``feedline diagnose --json``.

    Raises:
        RecordError: `record` is not a record, is damaged, or has a later version; the message uses `name` for it.
    """
    if not isinstance(record, dict):
        raise RecordError(f"{name} is not a run record: the file has no JSON object")
    if "run_record" not in record and str(record.get("schema", "")).startswith("feedline.diagnosis/"):
        record = _with_facts_missing(record, name)
    version = record.get("run_record")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise RecordError(
            f"{name} is not a run record: it has no 'run_record' key; `feedline bench SOURCE --record FILE` and "
            "`feedline diagnose --record FILE -- COMMAND` write run records"
        )
    if version > VERSION:
        raise RecordError(
            f"{name} is a run record of version {version}; this version of Feedline reads versions up to {VERSION}; "
            "update Feedline"
        )
    found = problem(record) or _unequal_edges(record)
    if found:
        raise RecordError(f"{name} is damaged: {found}")
    return record


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads and checks the run record in the file `path`.

    Raises:
        RecordError: see :func:`check`.
        OSError: the file cannot be read.
    """
    if os.stat(path).st_size > _LARGEST_FILE:
        raise RecordError(f"{os.fspath(path)} is not a run record: the file is larger than any run record")
    try:
        value = json.loads(Path(path).read_bytes(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{os.fspath(path)} is not a run record: the file is not JSON ({error})") from None
    return check(value, os.fspath(path))


def write(record: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes a record atomically.

    Raises:
        RecordError: the record violates the schema.
        OSError: the file cannot be written.
    """
    check(dict(record))
    replace(path, (json.dumps(finite(record), indent=2, allow_nan=False) + "\n").encode())


def is_replaced(path: str | os.PathLike[str]) -> bool:
    """Whether :func:`replace` creates a new file in place of `path`; it writes directly to pipes and /dev/stdout."""
    target = Path(path)
    return not os.path.abspath(target).startswith(("/dev/", "/proc/")) and (target.is_file() or not target.exists())


def replace(path: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file atomically; if `path` is a link, its target is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    if not is_replaced(path):
        Path(path).write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def finite(value: Any) -> Any:
    """Replaces values that JSON cannot represent with None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def _with_facts_missing(document: dict[str, Any], name: str) -> dict[str, Any]:
    bare = {
        "run_record": VERSION,
        "verb": "diagnose",
        "command": [],
        "began": None,
        "subject": "",
        "machine": None,
        "software": None,
        "storage": None,
        **empty_measurements(),
        "notes": ["this file contains no facts about the machine on which it was measured"],
    }
    try:
        return diagnosis.join(bare, document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{name}: the diagnosis cannot be read: {error!r}") from None


def _unequal_edges(record: Mapping[str, Any]) -> str | None:
    for name, histogram in record["histograms"].items():
        edges, counts = histogram["edges"], histogram["counts"]
        if len(edges) != len(counts) + 1 or any(a >= b for a, b in itertools.pairwise(edges)):
            return f"record.histograms.{name} must have ascending edges, and one more edge than counts"
    for series in (record["timeline"] or {"series": []})["series"]:
        if any(len(point) != 3 for point in series["points"]):
            return "record.timeline: every point must have three numbers"
    if any(len(verdict["predicted_gain"]) != 2 for verdict in record["verdicts"]):
        return "record.verdicts: predicted_gain must have two numbers"
    return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
