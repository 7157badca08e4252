# SPDX-License-Identifier: Apache-2.0
"""Runs a campaign, prints its defects, and records the figures."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import feedline

from .children import Children
from .jobs import JOBS, PLANTED, Job, make_sources
from .kills import kill, kill_training
from .memory import starve
from .soak import soak
from .walk import Walk, walk

_RECORD = Path(__file__).with_name("record.jsonl")
_MOST_SHOWN = 200
_KILLS, _REMOTE_FAULTS = 1000, 10_000
_HANG_WITHOUT_MEMORY_S = 10.0  # many of these runs hang in CPython
_FAULTS_AT_ONCE = 5000  # of one seed
_KILLED_PACKS = ("pack tar", "pack parquet", "pack pixels", "pack ranges")  # the others write in the same way


def run(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    figures, complaints = _CAMPAIGNS[options.campaign](options, begun + 60 * options.minutes)
    for complaint in complaints[:_MOST_SHOWN]:
        print(f"WRONG {complaint}")
    line = {
        "campaign": options.campaign,
        "date": f"{datetime.date.today()}",
        "version": feedline.__version__,
        "commit": _commit(),
        "seconds": round(time.monotonic() - begun),
        **figures,
        "wrong": len(complaints),
    }
    print(json.dumps(line))
    if options.record:
        with _RECORD.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return 1 if complaints else 0


def _chosen(options: argparse.Namespace) -> list[Job]:
    """Returns the jobs of these names whose modules are installed."""
    if options.job == PLANTED.name:
        return [PLANTED]
    is_there = {name: importlib.util.find_spec(name) is not None for job in JOBS for name in job.needs}
    return [job for job in JOBS if options.job in job.name and all(is_there[name] for name in job.needs)]


def _begin(options: argparse.Namespace) -> tuple[Children, Path]:
    """Imports the modules of jobs before children are forked, and makes the jobs' data."""
    import feedline.cli.root
    import feedline.pack.packer
    import feedline.tokenizing

    for name in feedline.cli.root.root.commands:
        feedline.cli.root.root.commands[name]  # imports the subcommand
    for name in ("pyarrow.parquet", "tokenizers", "jinja2"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    children = Children(options.inside)
    source = options.inside / "source"
    made = children.run(lambda: str(make_sources(source)))
    if made.status:
        raise SystemExit(made.output)
    return children, source


def _calls(options: argparse.Namespace, until: float) -> tuple[dict[str, Any], list[str]]:
    children, source = _begin(options)
    found = Walk()
    walked = 0
    for job in _chosen(options):
        before = time.monotonic(), found.faults, len(found.complaints)
        is_whole = walk(job, children, source, until, found, options.stride)
        walked += is_whole
        faults, wrong = found.faults - before[1], len(found.complaints) - before[2]
        end = "" if is_whole else ", cut short"
        print(f"{job.name}: {faults} faults, {wrong} wrong, {time.monotonic() - before[0]:.0f} s{end}", flush=True)
    figures = {"jobs": walked, "faults": found.faults, "errors": found.errors, "absorbed": found.absorbed}
    return figures, found.complaints


def _kills(options: argparse.Namespace, until: float) -> tuple[dict[str, Any], list[str]]:
    children, source = _begin(options)
    found, count = Walk(), options.count or _KILLS
    jobs = [job for job in _chosen(options) if not job.name.startswith("pack ") or job.name in _KILLED_PACKS]
    of_training = 0 if options.job else count // 4
    trained = kill_training(children, options.inside / "training", of_training, until, options.seed, found)
    killed = kill(jobs, children, source, count - trained, until, options.seed, found)
    return {"kills": killed + trained, "of_training": trained, "jobs": len(jobs)}, found.complaints


def _memory(options: argparse.Namespace, until: float) -> tuple[dict[str, Any], list[str]]:
    children, source = _begin(options)
    found, ends = Walk(), Counter[str]()
    children.hang_s = _HANG_WITHOUT_MEMORY_S
    for job in _chosen(options):
        starve(job, children, source, until, found, ends, options.stride)
        print(f"{job.name}: {dict(ends)}", flush=True)
    return {"runs": found.faults, "ends": dict(ends)}, found.complaints


def _soak(options: argparse.Namespace, until: float) -> tuple[dict[str, Any], list[str]]:
    source, root = options.inside / "source", options.inside / "root"
    make_sources(source)
    return soak(source, root, until)


def _remote(options: argparse.Namespace, until: float) -> tuple[dict[str, Any], list[str]]:
    """Runs tests/python/remote/campaign.py in parts, with a new seed each, until all faults have happened."""
    import campaign
    from certificates import Authority

    figures = Counter[str]()
    complaints: list[str] = []
    seed, count = options.seed, options.count or _REMOTE_FAULTS
    while figures["faults"] < count and time.monotonic() < until:
        folder = options.inside / f"remote{seed}"
        folder.mkdir()
        part = min(_FAULTS_AT_ONCE, count - figures["faults"])
        report = campaign.Campaign(folder / "campaign", seed, part, Authority(folder)).run()
        figures += Counter(
            faults=report.faults.total(), requests=report.requests, kills=report.kills, expiries=report.expiries,
            errors=len(report.errors), epochs=report.epochs,
        )  # fmt: skip
        complaints += [f"seed {seed}: {one}" for one in (*report.complaints, *report.leaks)]
        print(f"seed {seed}: {figures['faults']} faults, {len(complaints)} wrong", flush=True)
        seed += 1
    return {**figures, "seeds": seed - options.seed}, complaints


def _commit() -> str:
    folder = Path(__file__).parent
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=folder, text=True).strip()


_CAMPAIGNS = {"calls": _calls, "kills": _kills, "memory": _memory, "soak": _soak, "remote": _remote}
