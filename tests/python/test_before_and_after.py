# SPDX-License-Identifier: Apache-2.0
"""examples/before_and_after on a CPU: the three cases, their gains apart, and the page; no speed is judged."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="torch, which trains, is not installed")
pytest.importorskip("PIL", reason="Pillow, with which the stock loader decodes, is not installed")
SCRIPT = Path(__file__).parents[2] / "examples/before_and_after/before_and_after.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("before_and_after", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["before_and_after"] = module
    spec.loader.exec_module(module)
    return module


def test_all_cases_run_on_any_machine_and_the_stand_in_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    small = ["--made", "12", "--batch-size", "2", "--steps", "3", "--rounds", "1", "--side", "32", "--device", "cpu"]
    command = [sys.executable, SCRIPT, *small, "--gpu-rate", "1000", "--amp-rate", "2000", "--page", page]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["is_stand_in"] and found["step"].startswith("simulated GPU: waits as for 1000 images/s")
    rates = [row["images_per_s"] for row in found["rows"]]
    assert len(rates) == 3 and min(rates) > 0
    assert all(0 < row["utilisation"] <= 1 for row in found["rows"])
    assert found["gain_of_loader"] == pytest.approx(rates[1] / rates[0])
    assert found["gain_of_mixed_precision"] == pytest.approx(rates[2] / rates[1])
    text = page.read_text()
    assert text.count("<rect") == 3 and "simulated GPU" in text and "mixed precision: " in text
    assert max(rates) <= 2000  # no loader is faster than the step


def test_the_share_of_steps_and_the_rate_are_of_the_counted_batches(example, monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(example.time, "perf_counter", lambda: clock[0])

    def batches():
        for number in range(100):
            clock[0] += 30.0 if number < example.WARM else 3.0
            yield torch.zeros(8, 1), torch.zeros(8)

    def step(images, labels):
        clock[0] += 1.0

    found = example.measure(batches(), step, 10)
    assert found == {"images_per_s": pytest.approx(8 / 4), "utilisation": pytest.approx(0.25)}


def test_the_stand_in_waits_as_long_as_its_rate_says(example, monkeypatch) -> None:
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    example.StandIn(380.0)(torch.zeros(64, 3), torch.zeros(64))
    assert slept == [pytest.approx(64 / 380)]


def test_the_page_draws_bars_to_scale(example) -> None:
    rows = [
        {"case": name, "images_per_s": rate, "utilisation": 0.5, "lowest": rate, "highest": rate}
        for name, rate in (("stock & co", 100.0), ("ours", 230.0), ("amp", 460.0))
    ]
    found = {"step": "a step", "batch_size": 4, "cpus": 2, "rounds": 1, "rows": rows}
    text = example.page({**found, "gain_of_loader": 2.3, "gain_of_mixed_precision": 2.0})
    assert 'width="560.0"' in text and f'width="{560 * 100 / 460:.1f}"' in text and "stock &amp; co" in text
    assert "2.30 times as many images" in text and "2.00 times." in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "pass either a folder or --made N"),
        (["nowhere"], "nowhere is not a folder"),
        (["--made", "100", "--steps", "0"], "must be positive"),
        (["--made", "10"], "--made must be at least --batch-size, 64"),
    ],
)
def test_wrong_arguments_are_refused(example, capsys, words, why) -> None:
    with pytest.raises(SystemExit) as refused:
        example.parsed(words)
    assert refused.value.code == 2 and why in capsys.readouterr().err
