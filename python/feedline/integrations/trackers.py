# SPDX-License-Identifier: Apache-2.0
"""Sends the metrics of :class:`Meter` to Weights & Biases, MLflow and TensorBoard."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ConfigError
from .meter import Meter

Send = Callable[[Mapping[str, float], int], Any]


class Tracker:
    """Sends a loader's metrics to an experiment tracker, at most once every ``every_s`` seconds.

    ::

        track = trackers.wandb(loader)         # or trackers.mlflow(loader), trackers.tensorboard(loader, writer)
        for step, batch in enumerate(loader):
            ...
            track(step)

    Call it in the thread that iterates over the loader, after each step; most calls only read a clock.
    """

    def __init__(self, loader: Any, send: Send, *, every_s: float = 10.0, prefix: str = "data/") -> None:
        """`send` is called as ``send(numbers, step)``. `loader` and `prefix` are those of :class:`Meter`.

        Raises:
            ConfigError: ``every_s`` is not a number of seconds.
            TypeError: ``loader`` is not a Feedline loader.
        """
        if isinstance(every_s, bool) or not isinstance(every_s, (int, float)) or not every_s >= 0:
            raise ConfigError(f"Tracker: every_s must be a number of seconds, not {every_s!r}")
        self._meter, self._send, self._every_s = Meter(loader, prefix), send, every_s
        self._sent_s = time.monotonic()

    def __call__(self, step: int) -> bool:
        """Sends the current metrics if ``every_s`` seconds have passed. Returns whether they were sent."""
        now_s = time.monotonic()
        if now_s - self._sent_s < self._every_s:
            return False
        self._sent_s = now_s
        self._send(self._meter(), step)
        return True


def wandb(loader: Any, run: Any = None, **options: Any) -> Tracker:
    """Returns a :class:`Tracker` that calls ``run.log``. `run`: by default, the active run of the package wandb.

    `options`: ``every_s`` and ``prefix`` of :class:`Tracker`. Raises ConfigError if wandb has no active run.
    """
    if run is None:
        run = _package("wandb").run
        if run is None:
            raise ConfigError("trackers.wandb: wandb has no active run; call wandb.init() first, or pass run=")
    return Tracker(loader, lambda numbers, step: run.log(dict(numbers), step=step), **options)


def mlflow(loader: Any, run_id: str | None = None, **options: Any) -> Tracker:
    """Returns a :class:`Tracker` that calls ``mlflow.log_metrics`` without waiting for the tracking server.

    `run_id`: by default, MLflow's active run. `options`: ``every_s`` and ``prefix`` of :class:`Tracker`.
    """
    log = _package("mlflow").log_metrics
    return Tracker(
        loader, lambda numbers, step: log(dict(numbers), step=step, run_id=run_id, synchronous=False), **options
    )


def tensorboard(loader: Any, writer: Any, **options: Any) -> Tracker:
    """Returns a :class:`Tracker` that calls ``writer.add_scalar`` for each metric.

    `writer`: a ``SummaryWriter`` of torch or tensorboardX. `options`: ``every_s`` and ``prefix`` of :class:`Tracker`.
    """

    def send(numbers: Mapping[str, float], step: int) -> None:
        for name, number in numbers.items():
            writer.add_scalar(name, number, step)

    return Tracker(loader, send, **options)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"trackers.{name}: {name} cannot be imported ({error}); install it") from None
