# SPDX-License-Identifier: Apache-2.0
"""Runs a function on many items as Ray Core tasks."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import ConfigError, Error, WorkerDiedError
from ..version import installed_version

_CONNECT_S = 10.0
RETRIES = 5  # of a task whose process or node died
_MOST_PENDING = 1000
_ADDRESS = re.compile(r"ray(://[^/\s]+:\d+)?")


def checked_address(where: str, on: Any) -> str:
    """Returns `on`. Raises ConfigError unless it is ``"ray"`` or ``"ray://HOST:PORT"``."""
    if not isinstance(on, str) or not _ADDRESS.fullmatch(on):
        raise ConfigError(f'{where}: on must be "ray" or "ray://HOST:PORT", not {on!r:.200}')
    return on


def run(
    where: str, on: str, call: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any], *, cpus: int = 1
) -> Iterator[tuple[int, Any]]:
    """Yields (number of the item, ``call(shared, item)``) in the order in which tasks finish.

    Ray runs a task again if its process or node dies, at most 5 times; an exception of `call` ends all tasks. Every
    node must have the same version of Feedline, and the paths that `call` uses.

    Args:
        where: the command, for error messages.
        on: ``"ray"``: the cluster that Ray finds (``RAY_ADDRESS``, or one on this machine), otherwise a new one on this
            machine; ``"ray://HOST:PORT"``: a Ray client server.
        call: a function of a module, which Ray's workers can import.
        cpus: CPUs of a task.

    Raises:
        ConfigError: Ray is not installed or cannot be reached, or its workers cannot import Feedline or have another
            version.
        WorkerDiedError: a task's process or node died too often.
        Error: an error that `call` raised.
    """
    checked_address(where, on)
    with _connected(where, on) as ray:
        try:
            sent = ray.cloudpickle.dumps((call, shared))  # also classes of the main script
        except Exception as error:
            raise ConfigError(
                f"{where}: tasks on Ray need a picklable source and arguments: {error}; pass paths"
            ) from None
        task = ray.remote(num_cpus=cpus, max_retries=RETRIES, retry_exceptions=False)(_run_part)
        head = installed_version(), os.getcwd(), ray.put(sent)
        pending: dict[Any, int] = {}
        left = iter(enumerate(items))
        try:
            while True:
                for number, item in left:
                    pending[task.remote(*head, item)] = number
                    if len(pending) >= _MOST_PENDING:
                        break
                if not pending:
                    return
                for done in ray.wait(list(pending))[0]:
                    number = pending.pop(done)
                    yield number, _result(where, ray, done)
        finally:
            for left_over in pending:
                with contextlib.suppress(Exception):
                    ray.cancel(left_over, force=True)


@contextlib.contextmanager
def _connected(where: str, on: str) -> Iterator[Any]:
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(
            f'{where}: --on {on} needs Ray, which cannot be imported ({error}); run: pip install "ray"'
        ) from None
    if ray.is_initialized():  # by the program that calls Feedline, which also ends it
        yield ray
        return
    _check_that_it_listens(where, on.removeprefix("ray://") if on != "ray" else os.environ.get("RAY_ADDRESS", ""))
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # otherwise Ray prints a warning
    try:
        ray.init(address=None if on == "ray" else on, log_to_driver=False, logging_level="error")
    except Exception as error:  # of many types
        raise ConfigError(f"{where}: cannot connect to Ray ({on}): {error}; see: ray status") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_that_it_listens(where: str, address: str) -> None:
    """Raises ConfigError if nothing listens at HOST:PORT, which Ray reports only after minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # Ray finds a cluster
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except OSError as error:
        raise ConfigError(f"{where}: cannot connect to Ray at {address}: {error}; see: ray status") from None


def _result(where: str, ray: Any, done: Any) -> Any:
    try:
        kind, value = ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if "No module named 'feedline" in str(error):
            raise ConfigError(
                f"{where}: a worker of Ray cannot import Feedline ({_last_line(error)}); install feedline "
                f"{installed_version()} on all nodes"
            ) from None
        raise WorkerDiedError(f"{where}: a task on Ray failed: {_last_line(error)}") from None
    except ray.exceptions.RayError as error:
        raise WorkerDiedError(
            f"{where}: a task on Ray died {RETRIES + 1} times or could not run: {type(error).__name__}: "
            f"{_last_line(error)}; to resume after the finished parts, run the same command again"
        ) from None
    if kind == "version":
        version, node = value
        raise ConfigError(
            f"{where}: the worker on node {node} has Feedline {version}, but this command is {installed_version()}; "
            "install the same version on all nodes"
        )
    if kind == "error":
        raise pickle.loads(value)
    return value


def _last_line(error: Exception) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)


# ---- in the worker process ----


def _run_part(version: str, folder: str, sent: bytes, item: Any) -> tuple[str, Any]:
    own = installed_version()
    if own != version:
        return "version", (own, socket.gethostname())
    with contextlib.suppress(OSError):  # without the folder, relative paths do not exist either
        os.chdir(folder)
    cloudpickle = importlib.import_module("ray.cloudpickle")
    call, shared = cloudpickle.loads(sent)
    try:
        return "result", call(shared, item)
    except (Error, OSError) as error:
        return "error", pickle.dumps(error)
