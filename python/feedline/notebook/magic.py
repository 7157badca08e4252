# SPDX-License-Identifier: Apache-2.0
"""The cell magic. This module is imported only by IPython, so IPython is available here."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from feedline import cost
from feedline.errors import ConfigError
from feedline.profiler.in_process import AlreadyWatched

from .cell import diagnose
from .result import Diagnosed

_SHOWN = "showtraceback", "showsyntaxerror"


@magics_class
class FeedlineMagics(Magics):  # type: ignore[misc]  # IPython may be without types
    """``%%feedline``."""

    @magic_arguments("%%feedline")
    @argument("--budget", default="30s", help="Time for experiments after the cell, by default 30s; Ctrl-C ends them.")
    @argument("--quick", action="store_true", help="Skip the experiments.")
    @argument("--gpu-price", type=float, default=None, help="Price of a GPU-hour.")
    @argument("--record", default=None, help="Write a run record to this file, or, if it ends in .html, the page.")
    @cell_magic("feedline")
    def feedline(self, line: str, cell: str) -> Any:
        """Run the cell, watch its data loading, and report where the time goes.

        The cell runs in this process, as without the magic, so its definitions remain. `_` is the diagnosis, with
        `_.findings`, `_.record` and `_.save("run.json")`.
        """
        __tracebackhide__ = True
        given = parse_argstring(self.feedline, line)
        budget = 0.0 if given.quick else _seconds(given.budget)
        ran: list[Any] = []
        progress, number = Progress(self.shell), _number_of_cell(self.shell)
        try:
            found = diagnose(
                lambda: _run(self.shell, cell, number, ran),
                f"In [{number}]",
                budget,
                cost.price_of(given.gpu_price),
                progress,
                lambda: {name: f"In [{cell}]" for name, cell in _cells(self.shell).items()},
            )
        except AlreadyWatched as error:
            raise ConfigError(f"%%feedline: {error}") from None
        finally:
            progress.clear()
        if given.record:
            _save(found, given.record)
        if ran[0].error_before_exec is not None:  # nothing ran
            raise ran[0].error_before_exec.with_traceback(None)
        raised = ran[0].error_in_exec
        if raised is None:
            return found
        display(found)
        raise raised.with_traceback(_of_cell(raised))


def _save(found: Diagnosed, path: str) -> None:
    """Writes the record. An error here does not affect the cell, and `_.save(...)` remains available."""
    try:
        found.save(path)
    except OSError as error:
        print(f"feedline: cannot write {path}: {error.strerror}", file=sys.stderr)


def _run(shell: Any, cell: str, number: int, ran: list[Any]) -> str | None:
    """Runs the cell as the notebook does; an exception is displayed only once, by the code that raises it at the
    end.
    """
    before = set(_cells(shell))
    lines = cell if cell.lstrip().startswith("%%") else f"# %%feedline\n{cell}"  # to number lines as in the notebook
    with _silenced(shell):
        result = shell.run_cell(lines, store_history=False)
    for name in set(_cells(shell)) - before:
        _cells(shell)[name] = number
    ran.append(result)
    error = result.error_before_exec or result.error_in_exec
    return None if error is None else type(error).__name__


def _cells(shell: Any) -> dict[str, int]:
    """Returns the shell's cell numbers by file name as in tracebacks."""
    found = getattr(shell.compile, "_filename_map", None)
    return found if isinstance(found, dict) else {}


def _number_of_cell(shell: Any) -> int:
    """Returns the number of the running cell; the shell's own counter may already have advanced."""
    frame, known = sys._getframe(), _cells(shell)
    while frame is not None:
        if frame.f_code.co_filename in known:
            return known[frame.f_code.co_filename]
        frame = frame.f_back  # type: ignore[assignment]
    return int(shell.execution_count)


@contextlib.contextmanager
def _silenced(shell: Any) -> Iterator[None]:
    def nothing(*_arguments: Any, **_options: Any) -> None:
        pass

    outer = getattr(shell.displayhook, "exec_result", None)  # a nested cell would replace it
    for name in _SHOWN:
        shell.__dict__[name] = nothing
    try:
        yield
    finally:
        shell.displayhook.exec_result = outer
        for name in _SHOWN:
            shell.__dict__.pop(name, None)


def _of_cell(error: BaseException) -> Any:
    """Returns the traceback starting at the cell's first line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(("IPython", "feedline.")):
        trace = trace.tb_next
    return trace or error.__traceback__


def _seconds(text: str) -> float:
    words = text.strip().lower()
    factor = 60.0 if words.endswith("m") else 1.0
    try:
        value = factor * float(words.rstrip("sm"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigError(f"%%feedline: --budget {text!r} is not a time such as 30s or 2m")
    return value


class Progress:
    """Shows the current experiment after the cell in a line that is overwritten, and cleared at the end."""

    def __init__(self, shell: Any) -> None:
        self._show: Callable[[str], None] | None = None
        if getattr(shell, "kernel", None) is not None:
            self._show = _in_notebook()
        elif sys.stderr.isatty():
            self._show = _in_terminal
        self._last = ""

    def __call__(self, what: str, left_s: float) -> None:
        self._write(
            f"feedline: trying {what}, up to {max(left_s, 0):.0f} s left (interrupt the kernel to end the experiments)"
        )

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._show is not None and text != self._last:
            self._show(text)
            self._last = text


def _in_terminal(text: str) -> None:
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _in_notebook() -> Callable[[str], None]:
    held: list[Any] = []

    def show(text: str) -> None:
        content = {"text/plain": text}
        if held:
            held[0].update(content, raw=True)
        else:
            held.append(display(content, raw=True, display_id=True))

    return show


def load(shell: Any) -> None:
    """Implements ``%load_ext feedline``."""
    shell.register_magics(FeedlineMagics)
