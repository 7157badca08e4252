# SPDX-License-Identifier: Apache-2.0
"""What all tests share: how long anything takes on this machine is no property of what they test."""

from __future__ import annotations

import collections
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from time_limit import Watch

# The same examples in each run, so that a failure is due to a change; the long proofs draw new ones. CI runs fewer.
settings.register_profile(
    "any_machine",
    max_examples=int(os.environ.get("FEEDLINE_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("FEEDLINE_PROOFS") != "long",
)
settings.load_profile("any_machine")

# They measure this machine: rates, shares of time, causes. tools/test runs them only with --measures, one at a time.
_MEASURE = (
    "scenarios/",
    "python/diagnose/test_experiments.py",
    "python/diagnose/test_garbage.py",
    "python/diagnose/test_odd_loops.py",
    "python/diagnose/test_own_loaders.py",
    "python/diagnose/test_wait_sampler.py",
    "python/diagnose/test_several.py",
    "python/test_live_controller.py",
    "python/test_peers_harness.py",
    "python/test_telemetry_table.py",
    "python/top/test_top_terminal.py",
    "python/trace/test_profile.py",
    "python/tune/test_tune.py",
    "python/profiler/test_worker_hooks.py",
)

# Files that take a minute or more by few tests. Side by side they begin first: the last to begin is what all wait for.
_LONG = (
    "python/torch_loader/test_same_as_torch.py",
    "python/integrations/test_examples.py",
    "python/remote/test_campaign.py",
    "python/diagnose/test_certainty.py",
    "python/tune/test_tune_search.py",
)

# The limit only ends hangs: on a busy machine a test takes several times longer, and limits inside the tests (HANG_S in
# python/running_processes.py) end first.
_LIMIT_S = 900.0
# Tests that install packages, compile, or run for hours in their long forms.
_LONG_LIMIT_S = 4 * 3600.0
_LONG_LIMIT = (
    "python/proofs/",
    "python/remote/",
    "python/originals/",
    "python/integrations/test_streams.py",
    "python/env/test_real_environments.py",
    "scenarios/",
    "tooling/",
    "wheel/",
)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(_MEASURE):
            item.add_marker(pytest.mark.measures)
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(_LONG_LIMIT):
            item.add_marker(pytest.mark.time_limit(_LONG_LIMIT_S))
    if "PYTEST_XDIST_WORKER" in os.environ:  # with --no-loadscope-reorder files begin in this order
        counts = collections.Counter(item.path for item in items)
        long = {here / name: number for number, name in enumerate(_LONG)}
        items.sort(key=lambda item: (long.get(item.path, len(long)), -counts[item.path], str(item.path)))


def pytest_collection_finish() -> None:
    """Exempts modules and collected tests from garbage collection, since with them each collection takes a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # pytest's own faulthandler keeps the real stderr
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        return  # the tests run in xdist's processes
    config.pluginmanager.register(_Limits(), "feedline_time_limits")


class _Limits:
    """Limits every test, and the end of the run, since exit handlers wait for threads and processes."""

    def __init__(self) -> None:
        self._watch = Watch(os.dup(2))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        own = item.get_closest_marker("time_limit")
        self._watch.begin(item.nodeid, own.args[0] if own is not None else _LIMIT_S)
        try:
            return (yield)
        finally:
            self._watch.end()

    def pytest_unconfigure(self) -> None:
        self._watch.begin("the end of the run", _LIMIT_S)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Removes signal handlers that a test installed, since processes forked by later tests would inherit them."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:  # None: not installed by Python
            signal.signal(number, handler)
