# SPDX-License-Identifier: Apache-2.0
"""Waits in a process for the modules that the probe goes around functions of.

sitecustomize imports this at the start of every Python process that is watched, by this name, as its folder is on the
path then; so it imports no more than a process has at its start. A notebook's process has it from the package.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ImportWatcher:
    """A finder that lets the others find, and tells the probe when a module it cares for has been executed.

    `hooked`: the table, feedline_hooked_modules. `load` gives the module of hooks when the first of its PRIMARY is
    there; `note` takes a sentence about what did not go well.
    """

    def __init__(self, hooked, load, note):
        self.primary, self.secondary = hooked.PRIMARY, hooked.SECONDARY
        self.load, self.note = load, note
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
                self.hooks = self.load()
                for earlier in (*self.primary, *self.secondary):
                    if earlier in sys.modules:
                        self.hooks.patch(earlier)
            elif self.hooks is not None:
                self.hooks.patch(name)
        except Exception as error:
            self.hooks = None
            self.note(f"the probe could not be loaded into process {os.getpid()}: {error!r}")
        finally:
            self.loading = False
