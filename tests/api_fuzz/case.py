# SPDX-License-Identifier: Apache-2.0
"""One case: drawn from a seed, serialised as plain values, and run."""

from __future__ import annotations

import functools
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import feedline

from . import loaders, operations
from .sources import SOURCES

ODD_SHARE = 0.1
DROP_IN_SHARE = 0.25


@dataclass
class Case:
    seed: int  # for the numbers that a way to consume draws itself
    door: str  # "loader", "DataLoader" or "odd values"
    way: str
    source: str = ""
    steps: list[operations.Step] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def as_text(self) -> str:
        return json.dumps(asdict(self))  # Python's json also reads Infinity


def from_text(text: str) -> Case:
    values = json.loads(text)
    values["steps"] = [(name, _arguments(arguments)) for name, arguments in values["steps"]]
    return Case(**values)


def _arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()}


def drawn(seed: int) -> Case:
    """The same case for the same seed."""
    from . import drop_in

    rng = random.Random(seed)
    if rng.random() < ODD_SHARE:
        return Case(seed, "odd values", "once")
    if rng.random() < DROP_IN_SHARE:
        return Case(seed, "DataLoader", rng.choice(list(drop_in.WAYS)), options=drop_in.draw(rng))
    name = rng.choice(list(SOURCES))
    source = SOURCES[name]
    steps = operations.draw(rng, source)
    return Case(seed, "loader", rng.choice(list(_ways())), name, steps, loaders.draw(rng, source))


def _ways() -> dict[str, Callable[[Any], None]]:
    from . import consumers, ranks

    return {**consumers.WAYS, **ranks.WAYS}


def run(case: Case, root: Path) -> str:
    """ "ran", or "refused" if a ConfigError refused the loader. Raises the failure."""
    rng = random.Random(case.seed + 1)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
        warnings.simplefilter("ignore")
        try:
            way = _prepared(case, rng, root, Path(scratch))
        except feedline.ConfigError:
            return "refused"
        way()
    return "ran"


def _prepared(case: Case, rng: random.Random, root: Path, scratch: Path) -> Callable[[], None]:
    """Runs the part after the loader was made, in which an error is not a refusal."""
    if case.door == "odd values":
        from . import odd_values

        return functools.partial(odd_values.run, rng, root, scratch)
    if case.door == "DataLoader":
        from . import drop_in

        setting = drop_in.Setting(case.options, rng, root)
        setting.loader()
        return functools.partial(drop_in.WAYS[case.way], setting)
    from . import consumers

    ways = consumers.WAYS if case.way in consumers.WAYS else _ways()  # which also imports torch
    source = SOURCES[case.source]
    opened = source.open(root)
    dataset = operations.applied(opened, case.steps, scratch)
    dataset.loader(**case.options).close()
    # without operations, as the samples do not depend on them
    native = consumers.Setting(source, dataset, case.steps, case.options, rng, source.number(opened))
    return functools.partial(ways[case.way], native)
