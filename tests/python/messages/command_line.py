# SPDX-License-Identifier: Apache-2.0
"""Runs `feedline` in this process."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import sys

import pytest


class Exit(Exception):
    """The command line ended with a status other than 0."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def command_line(*arguments: object) -> None:
    """Runs `feedline ARGUMENTS` in this process. Raises Exit with the text of the standard error."""
    from rich.console import Console

    import feedline.cli
    from feedline.cli import console, root

    # Imported first, as a module imported under the redirection would keep its streams.
    for module in pkgutil.walk_packages(feedline.cli.__path__, "feedline.cli."):
        importlib.import_module(module.name)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("feedline.cli.")]:
            for name, stream in (("OUT", out), ("ERR", err)):
                if getattr(module, name, None) is getattr(console, name):
                    patch.setattr(module, name, Console(file=stream, width=100_000, force_terminal=False))
        status = root.run([str(argument) for argument in arguments])
    if status:
        raise Exit(status, err.getvalue().rpartition("\n\nError: ")[2] or out.getvalue())
