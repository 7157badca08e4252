# SPDX-License-Identifier: Apache-2.0
"""What waiting costs: amounts checked against arithmetic done by hand, and the same in diagnose, report and records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_records
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedline import ConfigError, cost, record
from feedline.profiler.summary.figures import Gpu, Loop, OnDevice, Ranks, Summary, Waits
from feedline.report import page

GPU = Gpu((0,), "A100", power_w=200.0, idle_power_w=90.0)
WAITING = Waits(production=0.5, startup=0.1, step=0.4)
CAUSES = [
    {"cause": "storage_latency", "predicted_gain": [0.25, 1.0]},
    {"cause": "compute_bound", "predicted_gain": [0.0, 0.3]},
    {"cause": "cpu_quota", "predicted_gain": [0.0, 0.0]},
]


def measured(gpu: Gpu | None = GPU, ranks: tuple[float, ...] = (), loop_s: float = 1800.0) -> dict[str, Any]:
    loop, device = Loop(steps=10, loop_s=loop_s), OnDevice(gpu=gpu)
    return Summary(loop=loop, waits=WAITING, on_device=device, of_ranks=Ranks(ranks)).as_dict()


def test_half_an_hour_of_which_a_gpu_waits_three_fifths() -> None:
    spent = cost.of_run(measured(), cost.Price(2.0))
    assert spent is not None
    assert (spent.gpu_hours, spent.idle_gpu_hours) == pytest.approx((0.5, 0.3))
    assert (spent.kwh, spent.idle_kwh) == pytest.approx((0.1, 0.027)), "idle by what it takes when idle"
    found = cost.as_dict(spent, CAUSES, cost.Price(2.0, 100.0))
    assert found is not None and found["idle_money"] == pytest.approx(0.6)
    assert found["saves"] == [{"cause": "storage_latency", "hours": pytest.approx([20.0, 50.0])}]


def test_the_words() -> None:
    price = cost.Price(2.0, 100.0)
    assert cost.lines(cost.of_run(measured(), price), CAUSES, price) == [
        "1 GPU waited for data 60% of the time: 0.3 GPU-hours, 0.027 kWh, costing 0.6 in this run",
        "in a similar job of 100 h: 60 GPU-hours, 5.4 kWh, costing 120",
        "  fixing storage_latency would save 20 to 50 h, worth 40 to 100",
    ]
    hot = cost.of_run(measured(replace(GPU, idle_power_w=None)), cost.NO_PRICE)
    assert "up to 0.06 kWh in this run" in cost.lines(hot, (), cost.NO_PRICE)[0], "its mean is not what idling takes"


def test_each_rank_has_a_gpu_and_its_own_waits() -> None:
    spent = cost.of_run(measured(ranks=(0.2, 0.4, 0.0, 0.2)), cost.NO_PRICE)
    assert spent is not None
    assert (spent.gpus, spent.idle_share) == (4, pytest.approx(0.2))
    assert spent.idle_gpu_hours == pytest.approx(4 * 0.5 * 0.2)


def test_without_a_gpu_only_a_price_makes_costs_and_reports_what_it_assumes() -> None:
    assert cost.of_run(measured(None), cost.NO_PRICE) is None
    assert cost.lines(None, CAUSES, cost.NO_PRICE) == []
    price = cost.Price(3.0)
    spent = cost.of_run(measured(None, (0.1, 0.3)), price)
    assert spent is not None and spent.gpus == 2
    assert "no GPU was detected: one GPU is assumed for each training loop" in cost.lines(spent, (), price)
    assert cost.of_run(Summary().as_dict(), price) is None, "no loop"


@given(st.lists(st.floats(-1, 1e9), min_size=2, max_size=2), st.floats(0.01, 1e6))
def test_no_gain_saves_more_than_the_job(gain: list[float], hours: float) -> None:
    assert all(0 <= one <= hours for one in cost.saved_hours(gain, hours))


@pytest.mark.parametrize("text", ["dear", "-1", "nan", "inf"])
def test_a_price_of_the_environment_is_a_number(text: str) -> None:
    assert cost.price_of(None, environment={cost.PRICE: "2.5"}).gpu_hour == 2.5
    assert cost.price_of(1.0, environment={cost.PRICE: text}).gpu_hour == 1.0, "an option comes first"
    assert cost.price_of(None, environment={}).gpu_hour is None
    with pytest.raises(ConfigError, match=r"FEEDLINE_GPU_PRICE is '.*': "):
        cost.price_of(None, environment={cost.PRICE: text})


def test_a_record_keeps_what_was_spent(tmp_path: Path) -> None:
    document = made_records.diagnosis()
    price, spent = cost.Price(2.0), cost.of_run(measured(), cost.Price(2.0))
    document["cost"] = cost.as_dict(spent, document["verdicts"], price)
    record.write(record.from_diagnosis(document, made_records.STEPS), tmp_path / "run.json")
    read = record.read(tmp_path / "run.json")
    back = cost.of_record(read, price)
    assert back is not None and spent is not None
    assert (back.seconds, back.idle_gpu_hours, back.kwh, back.idle_kwh) == pytest.approx(
        (spent.seconds, spent.idle_gpu_hours, spent.kwh, spent.idle_kwh)
    )
    text = page(read)
    assert "The cost of waiting for data" in text and "costing 0.6" in text, "at the record's price"
    assert "costing 3.0 in this run" in page(read, cost.Price(10.0)), "at a given one"
    assert "GPU-hours" not in page(made_records.bench(), cost.Price(10.0)), "bench has no loop that waits"


def test_report_prices_a_record_that_saw_no_gpu() -> None:
    made = record.from_diagnosis(made_records.diagnosis(), made_records.STEPS)
    assert "The cost of waiting for data" not in page(made)
    assert "no GPU was detected" in page(made, cost.Price(2.0))


def test_the_command_line_takes_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import run

    made = record.from_diagnosis(made_records.diagnosis(), made_records.STEPS)
    (tmp_path / "run.json").write_text(json.dumps(made))
    assert run(["report", str(tmp_path / "run.json"), "--gpu-price", "2", "--job-hours", "10"]) == 0
    assert "in a similar job of 10 h" in (tmp_path / "run.html").read_text()
    monkeypatch.setenv(cost.PRICE, "no money")
    assert run(["report", str(tmp_path / "run.json")]) == 2
    assert "FEEDLINE_GPU_PRICE" in capsys.readouterr().err
