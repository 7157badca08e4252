# SPDX-License-Identifier: Apache-2.0
"""A lock for engine threads that import Python libraries: ``fork()`` waits until it is free.

Otherwise a child would wait forever for an import that another thread of its parent had begun. logging also holds its
lock during a fork, and most libraries log: importing it first makes fork() take its lock after this one.
"""

from __future__ import annotations

import logging  # noqa: F401
import os
import threading

fork_lock = threading.RLock()
os.register_at_fork(before=fork_lock.acquire, after_in_parent=fork_lock.release, after_in_child=fork_lock.release)
