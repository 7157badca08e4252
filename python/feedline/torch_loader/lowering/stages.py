# SPDX-License-Identifier: Apache-2.0
"""Lines of `explain()` that several kinds of plans share, and lines for loaders that are not lowered."""

from __future__ import annotations

from typing import Any

from torch.utils.data import BatchSampler

from ...data.dataset import Dataset
from ...data.draws import is_random
from ...machine import limits
from ..native.plans import NATIVE, Reason, Stage
from ..options.settings import Settings
from .datasets import sources
from .transforms import transforms

DRAWN_IN_WORKERS = "the engine draws random numbers, seeded by one number per sample from torch's generator"


def reason_for(settings: Settings, why: str, part: Any = None) -> Reason:
    """Returns the plan for a loader that is not lowered for the reason `why`, which concerns only `part` of the
    dataset if `part` is given.
    """
    where = python_place(settings)
    stages = [order_stage(settings), Stage("read", type(settings.dataset).__qualname__, where, why)]
    leaves = sources.leaves(settings.dataset)
    if len(leaves) == 1 and type(leaves[0]) is Dataset:
        for operation in leaves[0].operations:
            drawn = "seeded by one number per sample from torch's generator" if is_random(operation) else "comes after"
            stages.append(Stage("transform", operation, where, drawn))
    transform = getattr(settings.dataset, "transform", None)
    if transform is not None:
        stages.append(Stage("transform", type(transform).__qualname__, where, "comes after"))
    stages.append(collate_stage(settings, "comes after"))
    return Reason(stages, part)


def order_stage(settings: Settings) -> Stage:
    sampler = settings.index_sampler
    name = type(sampler).__name__
    if type(sampler) is BatchSampler:
        name += f"({type(sampler.sampler).__name__})"
    return Stage("order", name, "Python, in this process", "samplers are user code")


def known_stages(chain: transforms.Chain, native: str, drawn: str) -> list[Stage]:
    return [
        Stage("transform", name, native, drawn if draws else "as on PIL images")
        for name, draws in zip(chain.known, chain.drawn, strict=True)
    ]


def rest_stages(runs: list[transforms.Run], where: str, native: str, of: str = "") -> list[Stage]:
    """Returns the stages of the transforms, beginning with the first unsupported one."""
    stages, before = [], ""
    for run in runs:
        if run.chain is None:
            before = transforms.name_of(run.transforms[0])
            stages.append(Stage("transform", of + before, where, run.why))
            continue
        given = f"if {before} returns an RGB or L PIL image"
        drawn = f"{given}; {DRAWN_IN_WORKERS}"
        for name, draws in zip(run.chain.known, run.chain.drawn, strict=True):
            stages.append(Stage("transform", of + name, native, drawn if draws else given))
    return stages


def collate_stage(settings: Settings, why: str) -> Stage:
    collate = getattr(settings.collate_fn, "__qualname__", type(settings.collate_fn).__qualname__)
    return Stage("collate", collate, python_place(settings), why)


def python_place(settings: Settings) -> str:
    """Returns where stages that are not lowered run."""
    if settings.num_workers == 0:
        return "Python, in this process"
    kind = "threads" if settings.in_threads else "processes"
    return f"Python, in {settings.num_workers} worker {kind}"


def threads_of(settings: Settings) -> tuple[int, str]:
    """Returns the maximum number of threads, with a description."""
    threads = limits.share_of_cpus() if settings.adapts else max(1, settings.num_workers)
    return threads, f"{NATIVE}, {'up to ' if settings.adapts else ''}{threads} thread{'s' if threads > 1 else ''}"


def drawn_by(unique: bool) -> str:
    key = "(seed, epoch, sample)" if unique else "(seed, epoch, sample, position in the order)"
    return f"the engine draws random numbers, seeded by {key}"
