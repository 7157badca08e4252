# SPDX-License-Identifier: Apache-2.0
"""The chain from storage to the GPU: the source of each link's figures, the link that limits the rate, and its
display.
"""

from __future__ import annotations

from typing import Any

import made_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedline import record
from feedline.profiler.summary.figures import Copies, Loop, Making, OnDevice, Summary, WaitedFor
from feedline.record import chain
from feedline.record.figures import link
from feedline.report import compare, page

COPY = Copies(pinned=True, asked=True, per_step=1, bytes_per_step=38e6, host_ms=0.1, device_ms=1.9, timed=20)


def summary(waits: dict[str, float] | None = None, **on_device: Any) -> dict[str, Any]:
    stages = {"storage": 0.4, "decode": 0.6, "transform": 0.0, "python": 0.0, "collate": 0.0}
    return Summary(
        loop=Loop(steps=100, loop_s=4.0, step_ms=2.0, wait_ms=30.0, epochs=1),
        workers=4,
        making=Making(
            batches=100, wall_ms=100.0, cpu_ms=60.0, stages=stages, waited_for=WaitedFor(50, waits or {"file": 1.0})
        ),
        on_device=OnDevice(watched_steps=30, **on_device),
    ).as_dict()


def by_name(links: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in links}


def test_copies_and_steps_are_timed_by_the_devices_own_events() -> None:
    links = by_name(chain.of_diagnosis(summary(copies=(COPY,), device_step_ms=12.5, timed_steps=20)))
    assert links["pcie"]["ms_per_batch"] == pytest.approx(1.9)
    assert links["pcie"]["bytes_per_s"] == pytest.approx(20e9)
    assert "page-locked" in links["pcie"]["note"] and "device events" in links["pcie"]["note"]
    assert links["gpu"]["ms_per_batch"] == 12.5, "not the 2 ms in which the loop launches the work"
    assert (links["storage"]["ms_per_batch"], links["host"]["ms_per_batch"]) == (40.0, 60.0)
    assert links["storage"]["at_once"] == links["host"]["at_once"] == 4


def test_copies_without_events_are_timed_by_their_calls_and_so_called() -> None:
    untimed = Copies(per_step=1, bytes_per_step=1e6, host_ms=3.0)
    one = by_name(chain.of_diagnosis(summary(copies=(untimed,))))["pcie"]
    assert one["ms_per_batch"] == 3.0 and one["bytes_per_s"] is None, "no rate out of a time that may hold waiting"
    assert "in copy calls" in one["note"]


def test_what_was_not_seen_is_reported_as_missing() -> None:
    links = by_name(chain.of_diagnosis(summary()))
    assert links["pcie"]["ms_per_batch"] is None and "no copy to a device was observed" in links["pcie"]["note"]
    nothing = by_name(chain.of_diagnosis({}))
    assert all(one["ms_per_batch"] is None for one in nothing.values()) and chain.lines(list(nothing.values())) == []
    assert chain.slowest(list(nothing.values())) is None


def test_workers_that_make_batches_side_by_side_are_counted() -> None:
    """40 + 60 ms by four workers make one batch per 25 ms: less than the GPU's 30, more than its 20."""
    fed = chain.of_diagnosis(summary(copies=(COPY,), device_step_ms=30.0, timed_steps=20))
    starved = chain.of_diagnosis(summary(copies=(COPY,), device_step_ms=20.0, timed_steps=20))
    assert chain.slowest(fed) == "gpu" and chain.slowest(starved) == "host"


def test_the_drawing() -> None:
    links = chain.of_diagnosis(summary(copies=(COPY,), device_step_ms=20.0, timed_steps=20))
    assert chain.lines(links) == [
        "+--------------+   +==============+   +--------------+   +--------------+",
        "|   storage    |   #     host     #   |     PCIe     |   |     GPU      |",
        "|    40 ms     |   #    60 ms     #   |    1.9 ms    |   |    20 ms     |",
        "|  /4 = 10 ms  |-->#  /4 = 15 ms  #-->|              |-->|              |",
        "|              |   #              #   |   20 GB/s    |   |              |",
        "+--------------+   +==============+   +--------------+   +--------------+",
    ]


@pytest.mark.parametrize(
    ("kinds", "title"),
    [
        ({"file": 0.9, "lock": 0.1}, "storage"),
        ({"store": 1.0}, "storage"),
        ({"sleep": 1.0}, "waiting"),
        ({"network": 0.7, "file": 0.3}, "waiting"),
    ],
)
def test_a_wait_is_storage_only_if_files_or_stores_were_waited_for(kinds: dict[str, float], title: str) -> None:
    made = summary(waits=kinds)
    drawn = "\n".join(chain.lines(chain.of_diagnosis(made)))
    assert (title in drawn) and ({"storage", "waiting"} - {title}).pop() not in drawn
    document = made_records.diagnosis()
    document["summary"] |= {"making": made["making"]}
    assert title in {stage["name"] for stage in record.from_diagnosis(document)["stages"]}


def test_a_wait_whose_reason_was_not_observed_is_not_called_storage() -> None:
    made = summary()
    made["making"]["waited_for"] = None
    assert "storage" not in "\n".join(chain.lines(chain.of_diagnosis(made)))
    made["loader"] = {"native": True}
    assert "storage" in "\n".join(chain.lines(chain.of_diagnosis(made))), "native threads wait only for storage"


def test_a_run_without_a_gpu_has_no_box_of_one() -> None:
    assert chain.lines(chain.of_diagnosis(summary())) == [
        "+--------------+   +==============+   +--------------+",
        "|   storage    |   #     host     #   | loop's step  |",
        "|    40 ms     |-->#    60 ms     #-->|     2 ms     |",
        "|  /4 = 10 ms  |   #  /4 = 15 ms  #   |              |",
        "+--------------+   +==============+   +--------------+",
    ]
    document = made_records.diagnosis()
    document["summary"] |= {**summary(), "waits": document["summary"]["waits"]}
    text = page(record.from_diagnosis(document))
    assert ">loop&#x27;s step<" in text or ">loop's step<" in text
    assert ">GPU<" not in text and ">PCIe<" not in text


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0, 1e9)), st.one_of(st.none(), st.floats(0, 1e16)), st.integers(1, 512)
        ),
        min_size=4,
        max_size=4,
    )
)
def test_any_figures_fit_into_80_columns_of_ascii(values: list[tuple[float | None, float | None, int]]) -> None:
    links = [link(name, ms, rate, "", count) for name, (ms, rate, count) in zip(chain.TITLES, values, strict=True)]
    drawn = chain.lines(links)
    assert all(len(line) <= 76 and line.isascii() for line in drawn)
    assert len({len(line) for line in drawn}) <= 1, "the sides are in line"
    known = [one for one in links if one["ms_per_batch"] is not None]
    assert sum("#" in line for line in drawn[1:2]) == (len(known) > 1)


def test_the_page_marks_the_same_link_and_reports_how_many_work_at_once() -> None:
    document = made_records.diagnosis()
    waits = document["summary"]["waits"]
    document["summary"] |= {**summary(copies=(COPY,), device_step_ms=20.0, timed_steps=20), "waits": waits}
    text = page(record.from_diagnosis(document))
    hot = text[text.index('class="box hot"') :]
    assert hot.index(">host<") < hot.index(">PCIe<") and "15.0 ms by 4 at once" in text
    assert "1.90 ms" in text and "not measured" not in text[: text.index("Timeline")]


def test_diff_judges_the_loops_own_work_whatever_the_chain_shows() -> None:
    """A step that is timed on the device in only one of two runs is not a slower step."""
    records = []
    for extra in ({}, {"device_step_ms": 19.0, "timed_steps": 20}):
        document = made_records.diagnosis()
        document["summary"] |= extra
        records.append(record.from_diagnosis(document, made_records.STEPS))
    records[1]["machine"]["gpu_driver"] = "one that differs"
    found = compare(*records)
    assert [(one.name, one.ratio) for one in found.figures if one.name == "step_ms"] == [("step_ms", 1.0)]
    assert not found.differs
