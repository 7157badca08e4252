# SPDX-License-Identifier: Apache-2.0
"""Proves that each script is slow for the planted reason, without a diagnosis: takes the cause away, and measures.

    python tests/scenarios/blind/proof.py [NAME...] [--pairs 2]

For each cause the script runs as it is and with the cause removed, by turns. A third form is its ceiling: the same
steps on batches that are there already. Figures per form are medians: ms per step from the first iter() of a loader to
the end of the script, the share of that spent in next(), CPU seconds of the process and of its children.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import resource
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
_RESULT, _FORM = "FEEDLINE_PROOF_RESULT", "FEEDLINE_PROOF_FORM"
_KEPT = 4  # batches that the ceiling's steps use in turn


class Watch:
    """Patches the iter() and next() of loaders when the script's own process calls them outside a loader."""

    def __init__(self):
        self.begun = None
        self.inside = 0
        self.waited = self.aside = self.cpu = 0.0
        self.steps = 0
        self.process = os.getpid()

    @contextlib.contextmanager
    def waiting(self):
        outermost = self.inside == 0 and os.getpid() == self.process
        if self.begun is None:
            self.begun, self.cpu = time.perf_counter(), time.process_time()
        self.inside += 1
        begin = time.perf_counter()
        try:
            yield outermost
        finally:
            self.inside -= 1
            self.waited += (time.perf_counter() - begin) * outermost

    def around_next(self, original):
        def watched(iterator):
            with self.waiting() as outermost:
                batch = original(iterator)
                self.steps += outermost
                return batch

        return watched

    def around_iter(self, original):
        def watched(loader):
            with self.waiting():
                return original(loader)

        return watched

    def around_iter_of_ceiling(self, original):
        """Reads the epoch in advance, so that the loop receives batches at no cost."""

        def watched(loader):
            if self.inside:
                return original(loader)
            with self.waiting():
                begin, cpu = time.perf_counter(), time.process_time()
                batches, count = [], 0
                for batch in original(loader):
                    count += 1
                    batches = batches if len(batches) == _KEPT else [*batches, batch]
                self.aside += time.perf_counter() - begin
                self.cpu += time.process_time() - cpu
            self.waited = 0.0
            self.steps += count
            return itertools.islice(itertools.cycle(batches), count)

        return watched

    def figures(self):
        spent = time.perf_counter() - self.begun - self.aside
        own = time.process_time() - self.cpu
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        children = gone.ru_utime + gone.ru_stime + _cpu_of_living_children()
        return {
            "step_ms": 1000 * spent / self.steps,
            "waiting": self.waited / spent,
            "cpu_s": own,
            "children_cpu_s": children,
            "steps": self.steps,
            "seconds": spent,
        }


def _cpu_of_living_children():
    """Returns seconds; workers that run until the process ends are not among the children that it has waited for."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # threads and children that end in the meantime
            for child in (task / "children").read_text().split():
                ticks += sum(map(int, Path("/proc", child, "stat").read_text().rsplit(")", 1)[1].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _measure(script):
    """Runs one script in this process, in the form given by its environment, and writes its figures."""
    import torch

    import feedline

    watch = Watch()
    around = watch.around_iter_of_ceiling if os.environ[_FORM] == "ceiling" else watch.around_iter
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    iterator.__next__ = watch.around_next(iterator.__next__)
    for loader in (torch.utils.data.DataLoader, feedline.DataLoader, feedline.Loader):
        loader.__iter__ = around(loader.__dict__["__iter__"])
    own = feedline.loader.loader.LoaderIterator
    own.__next__ = watch.around_next(own.__next__)
    sys.argv = [script]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")
    rank = os.environ.get("RANK", "0")
    Path(os.environ[_RESULT], rank).write_text(json.dumps(watch.figures()))


def _run(scenario, form):
    """`form`: "planted", "ceiling" or the cause to remove."""
    from limits import Limits

    limits = scenario.limits if scenario.limits and form != "cpu_quota" else Limits()
    with tempfile.TemporaryDirectory() as results, limits.groups() as groups, contextlib.ExitStack() as stack:
        settings = {_RESULT: results, _FORM: form, "REMOVED": form, "OMP_NUM_THREADS": "1"}
        if groups:
            settings["TMPDIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run(
            [sys.executable, "-W", "ignore", *scenario.launcher, __file__, "--measure", str(scenario.path)],
            env=os.environ | settings,
            check=True,
            preexec_fn=lambda: limits.enter(groups),
            stdout=subprocess.DEVNULL,
        )
        throttled = {"throttled_s": sum(map(_throttled_s, groups))}
        return [json.loads(path.read_text()) | throttled for path in sorted(Path(results).iterdir())]


def _throttled_s(group):
    """Returns the seconds for which a control group's quota stopped its processes; 0 without a quota."""
    if not (group / "cpu.stat").exists():
        return 0.0
    stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(stat.get("throttled_usec", 0)) / 1e6 + int(stat.get("throttled_time", 0)) / 1e9


def _median(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def prove(scenario, pairs):
    forms = ["planted", *scenario.causes] + ["ceiling"] * ("compute_bound" in scenario.causes)
    runs = {form: [] for form in forms}
    for _ in range(pairs):
        for form in forms:
            runs[form].append(_run(scenario, form))
    print(scenario.script)
    for form in forms:
        for rank in range(len(runs[form][0])):
            one = _median([run[rank] for run in runs[form]])
            shares = [
                1 - with_it[rank]["step_ms"] / planted[rank]["step_ms"]
                for with_it, planted in zip(runs[form], runs["planted"], strict=True)
            ]
            print(
                f"  {form:20} rank {rank}  {one['step_ms']:8.1f} ms/step  in next() {one['waiting']:4.0%}"
                f"  CPU {one['cpu_s']:5.1f} s + {one['children_cpu_s']:5.1f} s  {one['steps']:.0f} steps"
                f" in {one['seconds']:4.1f} s  held back {one['throttled_s']:.1f} s"
                f"  saved {statistics.median(shares):4.0%}"
                f"  ({', '.join(f'{share:.0%}' for share in shares)})",
                flush=True,
            )


def main():
    if sys.argv[1:2] == ["--measure"]:
        return _measure(sys.argv[2])
    sys.path.insert(0, str(FOLDER.parent))
    from scenarios import BLIND

    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pairs", type=int, default=2)
    arguments = parser.parse_args()
    for scenario in BLIND:
        if not arguments.names or scenario.script in arguments.names:
            prove(scenario, arguments.pairs)
    return None


if __name__ == "__main__":
    main()
