# SPDX-License-Identifier: Apache-2.0
"""Runs cases in a process that is restarted after a crash or a hang."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from .case import Case

# A case takes about 50 ms, and two seconds at most on an idle machine.
LIMIT_S = float(os.environ.get("FEEDLINE_API_FUZZ_LIMIT_S", "60"))
_STACKS_S = 1.0  # for writing them
_CASES = 100  # that a process runs before it is replaced, so that its end is tested as well
PROCESSES = 2  # a small machine's CPUs


@dataclass
class Failure:
    verdict: str  # "crash", "hang", "exception" or "rows"
    detail: str


class Runner:
    """One process at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._ran = 0

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kill()
        self._errors.close()

    def run(self, case: Case) -> str | Failure:
        """ "ran", "refused", or what is wrong."""
        process = self._ready()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(case.as_text().encode() + b"\n")
        process.stdin.flush()
        self._ran += 1
        if not select.select([process.stdout], [], [], LIMIT_S)[0]:
            return self._hung(f"no end after {LIMIT_S:g} s")
        line = process.stdout.readline()
        if not line:
            return self._crashed(process)
        verdict, detail = json.loads(line)
        if verdict in ("ran", "refused"):
            return self._ended() or verdict if self._ran >= _CASES else verdict
        self._kill()  # its remains must not affect the next case
        return Failure(verdict, detail)

    def ends(self) -> Failure | None:
        """Whether the process ends after its cases."""
        return self._ended()

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors.seek(0)
            self._errors.truncate()
            self._ran = 0
            self._process = subprocess.Popen(
                [sys.executable, "-m", "api_fuzz.worker", str(self._root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        return self._process

    def _ended(self) -> Failure | None:
        process = self._process
        if process is None:
            return None
        assert process.stdin is not None
        process.stdin.close()
        try:
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return self._hung("the process does not exit after its cases")
        if code != 0:
            return self._crashed(process)
        self._kill()
        return None

    def _hung(self, detail: str) -> Failure:
        assert self._process is not None
        with contextlib.suppress(OSError):
            self._process.send_signal(signal.SIGUSR1)
        time.sleep(_STACKS_S)
        return self._failure("hang", detail)

    def _crashed(self, process: subprocess.Popen[bytes]) -> Failure:
        code = process.wait()
        return self._failure("crash", f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}")

    def _failure(self, verdict: str, detail: str) -> Failure:
        self._kill()
        self._errors.seek(0)
        return Failure(verdict, f"{detail}\n{self._errors.read().decode(errors='replace')[-6000:]}")

    def _kill(self) -> None:
        """Ends the process with all of its descendants."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = None
