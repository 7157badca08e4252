# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every profiled Python process, because its folder comes first in PYTHONPATH.

This module loads the probe only when torch's DataLoader or Feedline's loader is imported; in other processes, the only
cost is one lookup per import. This code must not raise into the script, print, or import modules that a process does
not import at its start. If this module shadows another sitecustomize, it runs the shadowed module.
"""

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _note(session, text):
    try:
        with open(os.path.join(session, f"{os.getpid()}.note"), "a") as file:
            file.write(text + "\n")
    except OSError:
        pass


def _load_hooks(session, package):
    import importlib.util
    import time

    begin, cpu = time.perf_counter_ns(), time.thread_time_ns()

    try:
        found = importlib.util.find_spec("feedline") is not None
    except ValueError:
        found = True  # being imported right now
    if not found:  # this Python's environment differs from the command's
        spec: Any = importlib.util.spec_from_file_location(
            "feedline", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["feedline"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop("feedline", None)
            raise
    from feedline.profiler.probe import hooks

    hooks.start(session, begin, cpu)
    return hooks


def _tell_of_last_error(session, package):
    """Runs at the end of the process. Python stores an error that it has printed in sys.last_value."""
    if getattr(sys, "last_value", None) is None or not os.path.isdir(session):
        return
    try:
        import importlib.util

        path = os.path.join(package, "profiler", "probe", "failures.py")
        spec: Any = importlib.util.spec_from_file_location("feedline_failures", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.write_last_error(session)
    except BaseException:
        pass


def _next_to_this(name):
    """Imports a module next to this file, without leaving it in sys.modules."""
    module: Any = __import__(name)
    del sys.modules[name]
    return module


def _run_hidden(here):
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if p != here])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _start():
    here = os.path.dirname(os.path.abspath(__file__))
    session = os.environ.get("FEEDLINE_DIAGNOSE_SESSION")
    if session and os.path.isdir(session):
        try:
            _note(session, "")  # marks a Python process
            package = os.path.dirname(os.path.dirname(os.path.dirname(here)))
            hooked, watcher = _next_to_this("feedline_hooked_modules"), _next_to_this("feedline_import_watcher")

            def load():
                return _load_hooks(session, package)

            def note(text):
                _note(session, text)

            sys.meta_path.insert(0, watcher.ImportWatcher(hooked, load, note))
            atexit.register(_tell_of_last_error, session, package)
        except Exception as error:
            _note(session, f"the probe could not start in process {os.getpid()}: {error!r}")
    while here in sys.path:
        sys.path.remove(here)
    _run_hidden(here)


_start()
