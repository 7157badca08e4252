# SPDX-License-Identifier: Apache-2.0
"""`feedline.profile`: runs torch's profiler with a schedule that skips unrepresentative steps, and records Feedline's
stages.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..machine import ranks

if TYPE_CHECKING:
    from pathlib import Path


class Profile:
    """Records some steps of a training loop. Each recording is a file for ``feedline trace`` and ui.perfetto.dev.

    ::

        with feedline.profile("profiles") as profiler:
            for image, label in loader:
                ...
                profiler.step()

    Steps are counted from 1. The first ``skip_first + wait + warmup`` steps are not recorded, because prefetched
    batches, cuDNN's algorithm search and the profiler's startup would distort them. For example, ``wait=1, warmup=1,
    active=3`` records steps 3 to 5. Each repeated cycle has its own wait and warm-up.

    Args:
        folder: the output folder for files such as ``rank0.steps6-10.pt.trace.json.gz``; created if missing.
        wait, warmup, active: number of steps that are not profiled, profiled but discarded, and recorded.
        repeat: number of recordings; 0 records until the end. One recording is usually enough, and does not slow down
        later steps.
        skip_first: number of steps before the first wait.
        with_stack: record Python stacks, which show the lines that wait for the GPU but slow down Python severely.
        record_shapes, profile_memory: as torch's.
        activities: values of ``torch.profiler.ProfilerActivity``; by default the CPU, and CUDA if there is a GPU.
        stages: record the stages of Feedline's loaders in this process, and merge them into the file.

    Attributes:
        files: paths of the written files, as :class:`pathlib.Path`.

    Raises:
        ConfigError: torch is not installed, or the schedule is invalid.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        wait: int = 3,
        warmup: int = 2,
        active: int = 5,
        repeat: int = 1,
        skip_first: int = 0,
        with_stack: bool = False,
        record_shapes: bool = False,
        profile_memory: bool = False,
        activities: Iterable[Any] | None = None,
        stages: bool = True,
    ) -> None:
        numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
        for name, value in numbers.items():
            low = 1 if name == "active" else 0
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ConfigError(f"profile: {name} must be an integer of at least {low}, not {value!r}")
        import pathlib  # imported here to keep importing Feedline fast

        self.files: list[Path] = []
        self._folder = pathlib.Path(folder)
        self._first, self._cycle = skip_first, (wait, warmup, active, repeat)
        self._steps_done = 0
        self._stages = stages
        self._recording: Any = None
        self._profiler = _torch_profiler()
        self._schedule = self._profiler.schedule(
            wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first
        )
        self._torch = self._profiler.profile(
            activities=list(activities) if activities is not None else self._usual_activities(),
            schedule=self._schedule,
            on_trace_ready=self._write,
            with_stack=with_stack,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
        )

    def __enter__(self) -> Profile:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._torch.__enter__()
        self._follow()
        return self

    def step(self) -> None:
        """Call this method at the end of every step of the loop."""
        self._torch.step()
        self._steps_done += 1
        self._follow()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._torch.__exit__(kind, error, traceback)
        finally:
            self._drop_recording()
        if not self.files and kind is None:
            first = self._first + self._cycle[0] + self._cycle[1] + 1
            import logging

            logging.getLogger("feedline").warning(
                "profile: nothing was recorded: the loop ended after %d steps, and recording would begin at step %d; "
                "use a smaller wait and warmup, and call step() in the loop",
                self._steps_done,
                first,
            )

    def _follow(self) -> None:
        """Records Feedline's stages while torch records."""
        action = self._schedule(self._steps_done)
        actions = self._profiler.ProfilerAction
        if self._stages and self._recording is None and action in (actions.RECORD, actions.RECORD_AND_SAVE):
            from .spans import Recording

            self._recording = Recording()

    def _write(self, torch_profile: Any) -> None:
        """Handles a recording that ended with the current step or with the loop."""
        wait, warmup, active, _ = self._cycle
        cycle = (self._steps_done - self._first) // (wait + warmup + active)
        first = self._first + cycle * (wait + warmup + active) + wait + warmup + 1
        rank = (ranks.from_torch() or ranks.from_environment(os.environ) or (0, 1))[0]
        last = self._steps_done + 1  # step() increments the count after torch has ended the recording
        path = self._folder / f"rank{rank}.steps{first}-{last}.pt.trace.json.gz"
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()
        if recording is None or not len(recording.spans):
            torch_profile.export_chrome_trace(str(path))
        else:
            self._merge(torch_profile, recording, path)
        self.files.append(path)

    @staticmethod
    def _merge(torch_profile: Any, recording: Any, path: Path) -> None:
        from .merging import merge

        plain, spans = path.with_suffix(".torch"), path.with_suffix(".stages")
        try:
            torch_profile.export_chrome_trace(str(plain))
            recording.write(spans)
            merge(plain, [spans], path)
        finally:
            plain.unlink(missing_ok=True)
            spans.unlink(missing_ok=True)

    def _drop_recording(self) -> None:
        if self._recording is not None:
            self._recording.stop()
            self._recording = None

    def _usual_activities(self) -> list[Any]:
        kinds = self._profiler.ProfilerActivity
        cuda = importlib.import_module("torch.cuda")
        return [kinds.CPU, kinds.CUDA] if cuda.is_available() else [kinds.CPU]


profile = Profile  # has the name of torch's method


def _torch_profiler() -> Any:
    try:
        return importlib.import_module("torch.profiler")
    except ImportError as error:
        raise ConfigError(
            f"profile: torch's profiler is required, but torch cannot be imported ({error}); without torch, "
            "use loader.stats() to see where the time goes"
        ) from None
