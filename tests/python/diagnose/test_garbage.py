# SPDX-License-Identifier: Apache-2.0
"""The time that Python's garbage collections take in a loop is counted, and reported with the cause that triggers
them.
"""

from dataclasses import replace

import pytest
from summaries import BY_CAUSE
from test_signals import MS, event, record_of, recording
from watched import watched

from feedline.diagnose.verdict import evaluate
from feedline.profiler.probe import events
from feedline.profiler.summary import timeline
from feedline.profiler.summary.figures import Garbage


def loop_with_collections(held, count):
    """Ten waits of 5 ms and steps of 5; those with numbers in `held` take 45 ms and contain a collection. Counted:
    `count`.
    """
    recorded, at = [event(events.ITER, 0, 1), event(events.COLLECTIONS, 1, 0, a=7)], 1.0
    for number in range(10):
        wait = 45 if number in held else 5
        recorded += [event(events.WAIT, at, wait, b=number)]
        if number in held:
            recorded += [event(events.COLLECTIONS, at, wait, a=8, b=1)]
        recorded += [event(events.STEP, at + wait, 5, b=1)]
        at += wait + 5
    recorded += [event(events.LAST, at, 1), event(events.COLLECTIONS, at + 1, 0, a=7 + count)]
    elsewhere = event(events.COLLECTIONS, at + 900, 0, a=900)
    fetched = {events.FETCH: events.Total(10, 50 * MS, 50 * MS)}
    return timeline.summarise(recording([record_of(1, 0, [*recorded, elsewhere], fetched)]))


def test_collections_that_were_not_seen_take_as_long_as_those_that_were():
    summary = loop_with_collections(held=[4], count=3)
    assert summary.garbage.collections == 3 and summary.garbage.each_ms == pytest.approx(40)
    assert summary.garbage.share == pytest.approx(3 * 40 / (1000 * summary.loop.loop_s), rel=0.02)


def test_of_collections_that_no_one_saw_only_the_number_is_known():
    assert loop_with_collections(held=[], count=3).garbage == Garbage(3)
    # the wait for an epoch's first batch includes the start of workers
    assert loop_with_collections(held=[0], count=1).garbage == Garbage(1)


def test_a_process_without_records_of_it_has_no_figure():
    loop = [
        event(events.ITER, 0, 1),
        event(events.WAIT, 1, 5),
        event(events.STEP, 6, 5, b=1),
        event(events.LAST, 11, 1),
    ]
    assert timeline.summarise(recording([record_of(1, 0, loop)])).garbage is None


@pytest.mark.parametrize(("share", "is_reported"), [(0.4, True), (0.02, False), (None, False)])
def test_they_are_reported_with_what_makes_the_objects(share, is_reported):
    summary = replace(BY_CAUSE["worker_handover"], garbage=Garbage(8, 80.0 if share else None, share))
    (found,) = (v for v in evaluate(summary).verdicts if v.code == "worker_handover")
    assert any("8 full garbage collections in Python, 80 ms each" in line for line in found.evidence) is is_reported
    assert sum("gc.freeze()" in line for v in evaluate(summary).verdicts for line in v.evidence) == is_reported


SCRIPT = """
import gc, torch
class Lists(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return [[float(i)] for i in range(20_000)]
if __name__ == "__main__":
    {first}
    kept = []
    for batch in torch.utils.data.DataLoader(Lists(), batch_size=2, collate_fn=list):
        kept.append(batch)
"""


@pytest.mark.parametrize("collects", [True, False])
def test_a_loop_that_keeps_many_objects_collects(tmp_path, collects):
    pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    script = SCRIPT.format(first="pass" if collects else "gc.disable()")
    status, _, _, found = watched(tmp_path, script, "--quick")
    assert status == 0 and (found["summary"]["garbage"]["collections"] > 0) is collects
