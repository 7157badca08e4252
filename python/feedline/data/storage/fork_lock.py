# SPDX-License-Identifier: Apache-2.0
"""A lock for engine threads that import Python libraries: ``fork()`` waits until the lock is free.

Without the lock, a child would wait forever for an import that another thread of its parent had begun. The logging
module also holds its lock during a fork, and most libraries log; because this module imports logging first, fork()
acquires logging's lock after this one.
"""

from __future__ import annotations

import logging  # noqa: F401
import os
import threading

fork_lock = threading.RLock()
os.register_at_fork(before=fork_lock.acquire, after_in_parent=fork_lock.release, after_in_child=fork_lock.release)
