# SPDX-License-Identifier: Apache-2.0
"""How the probe enters a process: the table of modules that it waits for, and how it is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

from feedline.profiler.collect import FileCollector, notes_in
from feedline.profiler.command import environment_of
from feedline.profiler.probe import events, hooks
from feedline.profiler.probe.inject import feedline_hooked_modules as hooked

SCRIPT = """
import os, sys
assert "feedline_hooked_modules" not in sys.modules and not any(path.endswith("inject") for path in sys.path)
sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, "feedline"))] + sys.argv[1:]
from torch.utils.data import DataLoader
assert sum(DataLoader([1, 2, 3])) == 6
"""


@pytest.mark.parametrize("name", [*hooked.PRIMARY, *hooked.SECONDARY])
def test_each_module_has_hooks_that_are_there(name):
    file, _, function = {**hooked.PRIMARY, **hooked.SECONDARY}[name].partition(".")
    assert callable(getattr(hooks._HOOKS[file], function))


def test_a_script_is_watched_whose_python_has_no_feedline(tmp_path):
    """A Python in another environment than the command's: the probe brings its package with it."""
    torch = pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
    others, session = tmp_path / "others", tmp_path / "session"
    for made in (others, session):
        made.mkdir()
    for path in Path(torch.__file__).parents[1].iterdir():
        if "feedline" not in path.name:
            (others / path.name).symlink_to(path)
    subprocess.run([sys.executable, "-c", SCRIPT, str(others)], env=environment_of(session), check=True, timeout=HANG_S)
    assert [note for note in notes_in(session) if "probe" in note] == []
    (process,) = FileCollector(session).processes()
    assert 0 < process.totals[events.WAIT].times <= 3  # one event may represent several
