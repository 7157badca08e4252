# SPDX-License-Identifier: Apache-2.0
"""The probe: wraps functions of torch, torchvision, Pillow and Feedline in the profiled processes.

A hook calls the wrapped function with the same arguments, returns its result or raises its exception, and records the
call. The probe is loaded by ``inject/sitecustomize.py``, never by ``import feedline``.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from feedline.profiler.probe import failures, fetch_hooks, loop_hooks, pool_hooks, sample_hooks, worker_hooks
from feedline.profiler.probe.inject.feedline_hooked_modules import PRIMARY, SECONDARY
from feedline.profiler.probe.originals import Originals
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock
from feedline.profiler.variables import APPLY, EXTENSION

_HOOKS = {
    module.__name__.rpartition(".")[2]: module
    for module in (fetch_hooks, loop_hooks, pool_hooks, sample_hooks, worker_hooks)
}
_HOOKED = {**PRIMARY, **SECONDARY}
# Modules with a loader or its iterator, to which settings and a command's extension are applied.
_EXTENDED = (*PRIMARY, "feedline.torch_loader.data_loader", "feedline.torch_loader.native.native_iterator")

_recorder: Recorder | None = None
_patched: set[str] = set()
_originals: Originals | None = None  # of a process that outlives its session


def start(session: str, begin_ns: int = 0, begin_cpu_ns: int = 0) -> None:
    """`begin_ns`, `begin_cpu_ns`: times of ``clock`` and ``cpu_clock`` when loading the probe began."""
    global _recorder
    _recorder = Recorder(session)
    if EXTENSION in os.environ:
        importlib.import_module(os.environ[EXTENSION])  # part of the cost of loading
    if begin_ns:
        failures.keep_stack(session)  # not in a notebook's process, which outlives the session
        _recorder.load = (cpu_clock() - begin_cpu_ns, clock() - begin_ns)
    _recorder.opened.listen()


def start_here(session: str) -> Recorder:
    """Installs the hooks in this process, which will outlive the session; :func:`end_here` removes the hooks."""
    global _originals
    if _recorder is None:
        start(session)
    else:
        _recorder.restart(session)
    assert _recorder is not None
    _originals = Originals()
    for name in _HOOKED:
        patch(name)
    return _recorder


def end_here() -> None:
    """Restores all functions except those that other code has wrapped since; the hooks of those become inactive."""
    global _originals
    if _recorder is not None:
        _recorder.end()
    if _originals is not None:
        _originals.put_back()
        _originals = None
    _patched.clear()


def patch(module_name: str) -> None:
    """Installs the hooks in a module after its code has run. Ignores missing names."""
    module = sys.modules.get(module_name)
    if module is None or _recorder is None or module_name in _patched or module_name not in _HOOKED:
        return
    _patched.add(module_name)
    hooks, _, function = _HOOKED[module_name].partition(".")
    if _originals is not None:
        _originals.keep(module)
    try:
        getattr(_HOOKS[hooks], function)(module, _recorder)
        if module_name in _EXTENDED:
            _extend(module, _recorder)
    except Exception as error:  # an unknown version of the module
        _recorder.note(f"{module_name} is not profiled: {error!r}")


def _extend(module: Any, recorder: Recorder) -> None:
    """Installs the hooks that change loaders, and those of the extension, around the other hooks, which then see the
    changed loader.
    """
    if APPLY in os.environ and hasattr(module, "DataLoader"):
        from feedline.profiler import apply

        apply.install(module)
    if EXTENSION in os.environ:
        importlib.import_module(os.environ[EXTENSION]).install(module, recorder)
