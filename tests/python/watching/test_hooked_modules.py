# SPDX-License-Identifier: Apache-2.0
"""The probe's way into a process: the table of modules that it waits for, and its own loading."""

import subprocess
import sys

import pytest

from feedline.watching.command import environment_of
from feedline.watching.harvest import Harvest, notes_in
from feedline.watching.probe import events, hooks
from feedline.watching.probe.inject import feedline_hooked_modules as hooked

LOADER = """
class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.samples = iter(loader.dataset)
    def __next__(self):
        return next(self.samples)
    def __iter__(self):
        return self
class DataLoader:
    def __init__(self, dataset):
        self.dataset = dataset
    def __iter__(self):
        return _BaseDataLoaderIter(self)
"""
SCRIPT = """
import os, sys
assert "feedline_hooked_modules" not in sys.modules and not any(path.endswith("inject") for path in sys.path)
sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, "feedline"))]
sys.path.insert(0, sys.argv[1])
from torch.utils.data.dataloader import DataLoader
assert sum(DataLoader([1, 2, 3])) == 6
"""


@pytest.mark.parametrize("name", [*hooked.PRIMARY, *hooked.SECONDARY])
def test_each_module_has_hooks_that_are_there(name):
    file, _, function = {**hooked.PRIMARY, **hooked.SECONDARY}[name].partition(".")
    assert callable(getattr(hooks._HOOKS[file], function))


def test_a_script_is_watched_whose_python_has_no_feedline(tmp_path):
    """As one in another environment than the command's: the probe brings its package along."""
    folder, session = tmp_path / "torch/utils/data", tmp_path / "session"
    for made in (folder, session):
        made.mkdir(parents=True)
    for package in (folder.parent.parent, folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "dataloader.py").write_text(LOADER)
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], env=environment_of(session), check=True, timeout=60)
    assert [note for note in notes_in(session) if "probe" in note] == []
    (process,) = Harvest(session).processes()
    assert process.totals[events.WAIT].times == 3
