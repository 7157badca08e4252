# SPDX-License-Identifier: Apache-2.0
"""Notifies the probe when modules that it hooks are imported.

sitecustomize imports this module by name at the start of every profiled Python process, with its folder on the path, so
it imports only modules that every process has already imported. A notebook's process imports it from the package.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ImportWatcher:
    """A meta path finder that delegates to the other finders, and notifies the probe after a hooked module has been
    executed.

    `hooked` is the module feedline_hooked_modules. `load` returns the module with the hooks, and is called when the
    first module in PRIMARY is imported; `note` is called with a message if `load` fails.
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
        if self.loading:  # imports by the probe itself; it examines all modules when it is loaded
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
