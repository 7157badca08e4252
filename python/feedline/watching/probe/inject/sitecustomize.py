# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python process that is watched, because its folder comes first in PYTHONPATH.

It waits for torch's DataLoader, or Feedline's loader, to be imported and only then loads the probe; a process that
imports neither pays for one look-up per import. Nothing here may raise into the script, import more than a process has
at its start, or print. The sitecustomize that this one hides runs as if it were not hidden.
"""

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


class _Watcher:
    """A finder that lets the others find, and tells the probe when a module it cares for has been executed."""

    def __init__(self, session, package, hooked):
        self.session, self.package = session, package
        self.primary, self.secondary = hooked.PRIMARY, hooked.SECONDARY
        self.hooks = None
        self.loading = False
        self.searching = set()

    def find_spec(self, name, path=None, target=None):
        if (name not in self.primary and name not in self.secondary) or name in self.searching:
            return None
        import importlib.util

        self.searching.add(name)
        try:
            spec: Any = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            return None
        finally:
            self.searching.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                self.executed(name)

            try:
                spec.loader.exec_module = exec_module
            except AttributeError:
                return None
        return spec

    def executed(self, name):
        if self.loading:  # the probe's own imports; it looks at all modules when it is there
            return
        try:
            if self.hooks is None and name in self.primary:
                self.loading = True
                self.hooks = self.load_hooks()
                for earlier in (*self.primary, *self.secondary):
                    if earlier in sys.modules:
                        self.hooks.patch(earlier)
            elif self.hooks is not None:
                self.hooks.patch(name)
        except Exception as error:
            self.hooks = None
            _note(self.session, f"the probe could not be loaded into process {os.getpid()}: {error!r}")
        finally:
            self.loading = False

    def load_hooks(self):
        import importlib.util
        import time

        begin, cpu = time.perf_counter_ns(), time.thread_time_ns()

        try:
            found = importlib.util.find_spec("feedline") is not None
        except ValueError:
            found = True  # being imported right now
        if not found:  # this Python has another environment than the command's
            spec: Any = importlib.util.spec_from_file_location(
                "feedline", os.path.join(self.package, "__init__.py"), submodule_search_locations=[self.package]
            )
            module = importlib.util.module_from_spec(spec)
            sys.modules["feedline"] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                sys.modules.pop("feedline", None)
                raise
        from feedline.watching.probe import hooks

        hooks.start(self.session, begin, cpu)
        return hooks


def _hooked_modules():
    """The table beside this file, which is not left behind in the process."""
    hooked: Any = __import__("feedline_hooked_modules")
    del sys.modules["feedline_hooked_modules"]
    return hooked


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
            _note(session, "")  # a Python process was here
            package = os.path.dirname(os.path.dirname(os.path.dirname(here)))
            sys.meta_path.insert(0, _Watcher(session, package, _hooked_modules()))
        except Exception as error:
            _note(session, f"the probe could not start in process {os.getpid()}: {error!r}")
    while here in sys.path:
        sys.path.remove(here)
    _run_hidden(here)


_start()
