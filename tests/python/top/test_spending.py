# SPDX-License-Identifier: Apache-2.0
"""The cost of waiting GPUs in `feedline top`, and the host's figures next to it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest

from feedline.cost import NO_PRICE, Price, Spent
from feedline.machine import gpu, host, memory, processes
from feedline.top import published, rates, screen, watch
from feedline.top.alarms import LOOKS, Alarms
from feedline.top.host_indicators import rising_bytes
from feedline.top.rules import Moment, Seen
from feedline.top.spending import Spending

GPU = gpu.Reading(0, "GPU", 0.1, 10**9, 10**10, None, None, None, None, None, ())
HOST = host.Figures(
    **{
        **dict.fromkeys((field.name for field in dataclasses.fields(host.Figures)), None),
        "pids": (7,),
        "cpus_usable": 4.0,
        "threads": 9,
        "resident_bytes": 2_000_000,
        "disks": (),
        "processes": (),
        "notes": (),
        "memory": memory.Memory(1_000_000, 0, None, None, 0, 10**9, ()),
    }
)
OWN = dataclasses.replace(GPU, pids=(7,), power_w=100.0)
OTHERS = dataclasses.replace(GPU, index=1, pids=(9,), power_w=700.0)


def waits(share: float) -> rates.LoaderRates:
    return dataclasses.replace(rates.UNKNOWN, wait_share=share)


def moment(gpus: tuple[gpu.Reading, ...], waiting: float | None = None, **of_host: Any) -> Moment:
    totals = published.Loader(
        **{
            **dict.fromkeys((field.name for field in dataclasses.fields(published.Loader)), None),
            "number": 0,
            "kind": "Loader",
            "source": "train",
            "batches": 0,
            "bad_samples": 0,
            "stages": {},
        }
    )
    seen = () if waiting is None else (("loader 0", totals, waits(waiting), 0.0),)
    return Moment(seen, dataclasses.replace(HOST, **of_host), gpus)


def view(**values: Any) -> watch.View:
    process = processes.Identity(7, 1, os.geteuid(), 1000, "python train.py")
    return watch.View(process, 3700.0, False, (), HOST, (), "no NVIDIA driver", (), (), (), **values)


def test_looks_add_up() -> None:
    spending = Spending(NO_PRICE)
    assert spending.add(0.0, [(7, None)], (OWN, OTHERS), (7,)) is None, "the first look has no time before it"
    spending.add(1800.0, [(7, waits(0.5))], (OWN, OTHERS), (7,))
    spent = spending.add(1800.0, [(7, waits(0.1))], (OWN, OTHERS), (7,))
    assert spent is not None and (spent.gpus, spent.gpu_hours) == (1, 1.0), "another run's GPU is not this one's"
    assert (spent.idle_gpu_hours, spent.kwh) == pytest.approx((0.3, 0.1))


def test_whose_waits_and_whose_gpus() -> None:
    hidden = tuple(dataclasses.replace(GPU, index=i) for i in range(8))
    two = Spending(NO_PRICE).add(3600.0, [(7, waits(0.2)), (8, waits(0.6)), (8, waits(0.3))], hidden, (7, 8))
    assert two is not None and two.gpus == 2, "a container that is told of no process: one for each loop"
    assert two.idle_share == pytest.approx((0.2 + 0.9) / 2)
    by_use = Spending(NO_PRICE).add(3600.0, [], (OWN,), (7,))
    assert by_use is not None and by_use.idle_share == pytest.approx(0.9), "no loader tells: by GPU-Util"
    assert Spending(NO_PRICE).add(3600.0, [(7, waits(0.5))], (), (7,)) is None
    assumed = Spending(Price(2.0)).add(3600.0, [(7, waits(0.5))], (), (7,))
    assert assumed is not None and assumed.assumed


def texts(seen: watch.View) -> list[str]:
    return [line.plain for line in screen.lines(seen, 100)]


def test_a_line_on_the_screen() -> None:
    found = view(spent=Spent(2, 1800.0, 0.5, 100.0), price=Price(4.0))
    (line,) = (line for line in texts(found) if line.startswith("cost"))
    assert line == "cost    idle, by GPU-Util, 50% of 00:30:00: 0.5 GPU-hours, up to 0.05 kWh, costing 2.0"
    assert found.as_dict()["spent"]["idle_money"] == 2.0
    assert not any(line.startswith("cost") for line in texts(view()))


def sentence(looks: list[Moment]) -> str:
    alarms, found = Alarms(len(looks)), ()
    for look in looks:
        found = alarms.evaluate(look)
    return next((one.text for one in found if one.code in ("gpu_idle", "gpu_sawtooth")), "")


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ({"cpus_used": 0.4, "io_pressure": 0.5}, "1 process uses 0.4 of 4 CPUs, and tasks wait for storage"),
        ({"cpus_used": 0.4, "read_bytes_per_s": 1e6}, "and tasks wait for storage"),
        ({"cpus_used": 3.9, "pids": (7, 8, 9)}, "3 processes use 3.9 of 4 CPUs, so producing batches is CPU-bound"),
    ],
)
def test_few_busy_cpus_next_to_reading_are_storage_and_all_busy_ones_are_not(host: dict[str, Any], words: str) -> None:
    assert words in sentence([moment((GPU,), **host)] * LOOKS)


@pytest.mark.parametrize(
    "host",
    [
        {"cpus_used": 0.4},
        {"cpus_used": 0.4, "io_pressure": 0.01, "read_bytes_per_s": 1e6},
        {"cpus_used": 2.5, "io_pressure": 0.5},
    ],
)
def test_an_idle_gpu_next_to_nothing_is_not_said_to_wait_for_data(host: dict[str, Any]) -> None:
    assert "whether it waits for data cannot be seen from outside" in sentence([moment((GPU,), **host)] * LOOKS)


def test_the_sawtooth_is_joined_with_processes_and_memory() -> None:
    saw = [
        moment((dataclasses.replace(GPU, utilisation=u),), 0.5, cpus_used=3.9, resident_bytes=10**9 + i * 10**8)
        for i, u in enumerate((0.95, 0.9, 0.0, 0.0, 0.97, 0.9, 0.1, 0.0, 0.9, 0.9))
    ]
    found = sentence(saw)
    assert (
        "between busy and idle (1 process uses 3.9 of 4 CPUs, so producing batches is CPU-bound; "
        "memory rises, by 0.9 GB" in found
    )
    assert "the GPU waits for data" in found


def test_memory_that_comes_and_goes_does_not_rise() -> None:
    def held(*sizes: int) -> float | None:
        return rising_bytes(Seen([Moment((), dataclasses.replace(HOST, resident_bytes=s), ()) for s in sizes], 4))

    giga = 10**9
    assert held(1 * giga, 2 * giga, 3 * giga, 4 * giga) == 3 * giga
    assert held(1 * giga, 3 * giga, 2 * giga, 4 * giga) is None
    assert held(10 * giga, 10 * giga, 10 * giga, 10 * giga + 10**8) is None
    assert held(giga, 2 * giga) is None, "too few looks"
