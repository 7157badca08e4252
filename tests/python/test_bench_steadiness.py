# SPDX-License-Identifier: Apache-2.0
"""How steadily `feedline bench` loads: rates in each second, their mean and their spread."""

from __future__ import annotations

import statistics
from types import SimpleNamespace

import pytest

from feedline.bench import steadiness
from feedline.bench.steadiness import SteadinessWatch, per_second, spread
from feedline.cli.commands.bench import _steadiness
from feedline.errors import Error


def test_samples_are_counted_in_whole_seconds_after_the_first_batch() -> None:
    arrivals = [(0.5, 64), (0.7, 8), (1.4, 8), (1.6, 8), (3.6, 8), (3.7, 8), (4.6, 8)]
    # seconds begin at 0.5; in the third none arrived; the fifth is not whole
    assert per_second(arrivals) == [16, 8, 0, 16]
    assert per_second([]) == per_second([(3.0, 8)]) == []


def test_the_spread_is_the_deviation_over_the_mean() -> None:
    assert spread([10.0, None, 20.0, 30.0]) == {"mean": 20.0, "spread": statistics.pstdev([10, 20, 30]) / 20}
    assert spread([5.0, 5.0, 5.0]) == {"mean": 5.0, "spread": 0.0}
    assert spread([0.0, 0.0, 0.0]) == {"mean": 0.0, "spread": 0.0}
    assert spread([1.0, None, 2.0]) is None


class Host:
    """The first look has no rates; later ones have those that were planned."""

    def __init__(self, rates):
        self.rates, self.closed = iter([(None, None), *rates]), False

    def look(self):
        cpus, disk = next(self.rates)
        return SimpleNamespace(cpus_used=cpus, read_bytes_per_s=disk)

    def close(self):
        self.closed = True


def watched(monkeypatch, rates):
    """What a watch finds whose seconds pass at once, until the rates are used up."""
    host = Host(rates)
    monkeypatch.setattr(steadiness, "HostWatch", lambda pid, interval: host)
    watch = SteadinessWatch(10.0)
    turns = iter(rates)
    monkeypatch.setattr(watch._end, "wait", lambda timeout=None: next(turns, None) is None)
    with watch:
        watch._thread.join()
    assert host.closed
    return watch


def test_cpu_and_disk_are_sampled_once_a_second(monkeypatch) -> None:
    found = watched(monkeypatch, [(2.0, 100e6), (3.0, 100e6), (4.0, 100e6)]).figures((n / 4, 8) for n in range(20))
    assert found["seconds"] == 4 and found["not_judged"] is None
    assert found["cpus"]["mean"] == 3.0 and found["cpus"]["spread"] == pytest.approx(0.2722, abs=1e-4)
    assert found["disk_bytes_per_s"] == {"mean": 100e6, "spread": 0.0}
    assert found["images_per_s"]["mean"] == pytest.approx(32, abs=2)
    words = _steadiness(found)
    assert "over 4 seconds" in words and "3.0 CPUs ±27%" in words and "100.0 MB/s from disk ±0%" in words
    found["disk_bytes_per_s"] = {"mean": 0.0, "spread": 0.0}
    assert "nothing read from disk" in _steadiness(found)


def test_a_short_measurement_and_a_machine_without_counters_are_not_judged(monkeypatch) -> None:
    with SteadinessWatch(0.2) as watch:
        pass
    found = watch.figures([(0.1, 8), (0.2, 8)])
    assert "0 whole seconds, but 3 are needed: raise --seconds" in found["not_judged"]
    assert _steadiness(found).startswith("steadiness: not judged, because the measurement has 0 whole")

    def refuse(pid, interval):
        raise Error("no /proc")

    monkeypatch.setattr(steadiness, "HostWatch", refuse)
    with SteadinessWatch(10.0) as watch:
        watch._thread.join()
    found = watch.figures((n / 4, 8) for n in range(20))
    assert found["not_judged"] == "the machine's counters could not be read: no /proc" and found["cpus"] is None


def test_the_real_counters_are_read() -> None:
    """Three seconds of work on one CPU; how much of it the machine gives is not judged."""
    watch = SteadinessWatch(3.0)
    arrivals = []
    with watch:
        while sum(used is not None for used in watch._cpus) < 3 and not watch._why:
            sum(range(100_000))
            arrivals.append((len(arrivals) / 10, 8))
    found = watch.figures(arrivals)
    assert found["cpus"] is not None and found["cpus"]["mean"] > 0
