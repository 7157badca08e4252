# SPDX-License-Identifier: Apache-2.0
"""Collects the facts for an analysis: the machine, the planned loader, the script of a command, and the source."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..findings import Finding
from ..machine.gpu import Gpus, Reading
from ..machine.planned_load import PlannedLoad
from ..machine.preflight_facts import PreflightFacts, look
from ..machine.system_files import SystemFiles
from .advice import Advice, advise
from .evaluation import evaluate
from .leftovers import leftovers
from .rules import Analysis
from .script import command
from .script.facts import Script
from .script.reading import read
from .source import look_at

_PATIENCE_S = 1.2  # for a driver that has to wake a GPU


@dataclass(frozen=True)
class Request:
    """The load that the user specified. If a value is None, it is taken from the script, or else it is the default for
    this machine.
    """

    workers: int | None = None
    prefetch: int | None = None
    batch_bytes: int | None = None
    batch_size: int | None = None
    dataset_bytes: int | None = None
    ranks: int | None = None
    pinned: bool | None = None

    @property
    def is_load(self) -> bool:
        given = (self.workers, self.prefetch, self.batch_bytes, self.dataset_bytes, self.pinned)
        return any(one is not None for one in given)


@dataclass(frozen=True)
class Examination:
    """The results of an examination. `unseen` has one sentence for each fact that could not be examined."""

    analysis: Analysis
    advice: Advice
    findings: tuple[Finding, ...]
    unseen: tuple[str, ...]


def examine(
    root: SystemFiles,
    gpus: Gpus,
    environment: Mapping[str, str],
    source: str | None = None,
    words: Sequence[str] = (),
    request: Request | None = None,
) -> Examination:
    """Examines the machine once. Neither runs nor imports the script.

    Args:
        words: the command that will be run, such as ``["python", "train.py"]``.

    Raises:
        StorageError: `source` does not exist.
    """
    request = request or Request()
    machine = look(root, Patient(gpus), environment)
    unseen = list(machine.unseen)
    found = None
    if source is not None:
        found, notes = look_at(source, root)
        unseen += notes
    script = ranks = None
    if words:
        parsed = command.parsed(words)
        ranks = parsed.ranks
        if parsed.script is None:
            why = command.hint_for(words) or f"{' '.join(words[:3])} does not name a Python file"
            unseen.append(f"the loader's settings: {why}")
        else:
            script = read(parsed.script, parsed.arguments, machine.cpus.online)
            unseen += script.notes
    load = planned(request, script, ranks if request.ranks is None else request.ranks, machine)
    if load is not None and load.workers and load.batch_bytes is None:
        unseen.append("the loader's memory use: the size of a batch is unknown (--batch-mb)")
    own = tuple(one for one in leftovers(root) if os.geteuid() in (0, one.owner))
    analysis = Analysis(machine, load, script, found, own, ranks)
    return Examination(analysis, advise(machine, load, found), evaluate(analysis), tuple(unseen))


def planned(request: Request, script: Script | None, ranks: int | None, machine: PreflightFacts) -> PlannedLoad | None:
    """Returns the load that the user specified, with missing values taken from whichever of the script's loaders queues
    the most batches.
    """
    known = [call for call in script.loaders if call.workers is not None] if script is not None else []
    call = max(known, key=lambda one: (one.workers or 0) * (one.prefetch or 2), default=None)
    if call is None and not request.is_load:
        return None
    workers = request.workers if request.workers is not None else call.workers if call is not None else None
    load = PlannedLoad(
        workers=workers if workers is not None else max(machine.cpus.threads - 1, 1),
        prefetch=call.prefetch or 2 if call is not None else 2,
        pinned=call is not None and call.get("pin_memory") is True,
        ranks=ranks or machine.ranks,
        in_shared_memory=call is None or not call.is_feedline,
    )
    size = call.get("batch_size") if call is not None else None
    if isinstance(size, int) and size > 0:
        sample = script.sample_bytes if script is not None else None
        load = replace(load, batch_size=size, batch_bytes=sample * size if sample is not None else None)
    given = {
        "prefetch": request.prefetch,
        "batch_bytes": request.batch_bytes,
        "batch_size": request.batch_size,
        "dataset_bytes": request.dataset_bytes,
        "pinned": request.pinned,
    }
    return replace(load, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


class Patient:
    """Queries the GPUs, which may take long to respond; after a timeout, the result is unknown."""

    def __init__(self, gpus: Gpus, patience_s: float = _PATIENCE_S) -> None:
        self._gpus, self._patience_s = gpus, patience_s
        self._unavailable = ""

    @property
    def unavailable(self) -> str:
        return self._unavailable or self._gpus.unavailable

    def read(self) -> tuple[Reading, ...]:
        answers: list[tuple[Reading, ...]] = []
        thread = threading.Thread(target=lambda: answers.append(self._gpus.read()), daemon=True)
        thread.start()
        thread.join(self._patience_s)
        if answers:
            return answers[0]
        self._unavailable = f"the driver did not respond within {self._patience_s:g} s"
        return ()
