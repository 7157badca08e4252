# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of the sources' files in a thread of the process that reads them."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path

from range_server import RangeServer


@functools.cache
def _serving(root: Path, process: int) -> RangeServer:
    server = RangeServer(root)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


def url(root: Path, name: str) -> str:
    """Another server for each process: a forked child has only the thread that forked."""
    return _serving(root, os.getpid()).url(name)
