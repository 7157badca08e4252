# SPDX-License-Identifier: Apache-2.0
"""A process that runs cases: one line of JSON in, one line with its result out."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import sys
import traceback
from pathlib import Path

from . import case as cases
from . import planted
from .consumers import Wrong


def main(root: Path) -> None:
    logging.getLogger("feedline").setLevel(logging.ERROR)  # skipped samples are intended
    os.environ["XDG_CACHE_HOME"] = str(root / "cache")  # indexes of remote files
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is only for answers
    for line in sys.stdin:
        one = cases.from_text(line)
        verdict, detail = "", ""
        try:
            planted.plant(one)
            verdict = cases.run(one, root)
        except Wrong as wrong:
            verdict, detail = "rows", str(wrong)
        except BaseException as error:
            verdict, detail = "exception", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        answers.write(json.dumps([verdict, detail]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
