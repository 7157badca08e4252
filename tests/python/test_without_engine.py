# SPDX-License-Identifier: Apache-2.0
"""The wheel for any platform: imports work without the engine, `DataLoader` is torch's, others say what to do."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
import torch
from running_processes import HANG_S

import feedline
from feedline.no_engine import stock_loader

REPOSITORY = Path(__file__).parents[2]
# Modules of Python that Windows lacks.
AS_ON_WINDOWS = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "grp", "pwd", "resource", "termios"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import multiprocessing, importlib  # before the platform's name changes
import torch
sys.platform = "win32"
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package without the engine."""
    folder = tmp_path_factory.mktemp("no engine")
    source = Path(feedline.__file__).parent
    shutil.copytree(source, folder / "feedline", ignore=shutil.ignore_patterns("_engine*.so", "__pycache__"))
    return folder


def run(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, cwd=package, capture_output=True, text=True, timeout=HANG_S)


@pytest.mark.parametrize("system", ["", AS_ON_WINDOWS], ids=["linux", "windows"])
def test_every_name_can_be_imported(package: Path, system: str) -> None:
    names = {*feedline.__all__, "DataLoader", "StatefulDataLoader", "WorkerPool", "shared"}
    done = run(package, system + f"from feedline import {', '.join(sorted(names))}\nprint(IMAGENET_MEAN, ConfigError)")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(0.485, 0.456, 0.406) <class 'feedline.errors.ConfigError'>\n"


@pytest.mark.parametrize(
    ("system", "remedy"),
    [("", "built? install the wheel"), (AS_ON_WINDOWS, "run Python in WSL 2")],
    ids=["linux", "windows"],
)
def test_calls_say_what_to_do(package: Path, system: str, remedy: str) -> None:
    code = """
    import feedline
    for name in ("open", "WorkerPool", "presets.imagenet_train"):
        try:
            eval(f"feedline.{name}('x')")
        except (feedline.ConfigError, AttributeError) as error:
            print(error)
    print(isinstance(3, feedline.Dataset), hasattr(feedline, "opne"))
    """
    done = run(package, system + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    *messages, last = done.stdout.splitlines()
    assert [message.split(" needs Feedline's engine")[0] for message in messages] == [
        "feedline.open",
        "feedline.WorkerPool",
        "feedline.presets.imagenet_train",
    ]
    assert all(remedy.removeprefix("built? ") in message for message in messages)
    assert last == "False False"


@pytest.mark.parametrize("module", ["packing", "staging", "verifying", "tokenizing", "testing", "samplers"])
def test_submodules_say_what_to_do(package: Path, module: str) -> None:
    done = run(package, f"import feedline.{module}")
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    is_usable = module == "samplers"
    assert is_usable or "install the wheel" in last, done.stderr
    assert done.returncode == (0 if is_usable else 1)


def test_the_loader_is_torchs(package: Path) -> None:
    code = """
    import pickle, torch, feedline, warnings
    data = torch.utils.data.TensorDataset(torch.arange(10))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unused = dict(num_workers="auto", seed=3, on_error="skip")
        loader = feedline.DataLoader(data, 4, True, generator=torch.Generator(), **unused)
    print(caught[0].filename, caught[0].message)
    torchs = torch.utils.data.DataLoader(data, 4, True, generator=torch.Generator())
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(loader, torchs, strict=True))
    loader.set_epoch(2)
    print(loader.explain())
    print(hasattr(loader, "state_dict"), hasattr(loader, "nothing"))
    """
    done = run(package, code)
    assert done.returncode == 0, done.stderr
    warning, explained, attributes = done.stdout.splitlines()
    assert warning.startswith("<string> the native loader needs Feedline's engine")
    assert warning.endswith("these arguments have no effect: on_error, seed, num_workers='auto' (0 is used)")
    assert explained.startswith("DataLoader over TensorDataset: torch's loader")
    assert attributes == "False False"


def test_arguments_of_workers_have_no_effect_without_workers(package: Path) -> None:
    code = """
    import torch, feedline, warnings
    def delivered(*args, **kwargs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = list(feedline.DataLoader([1, 2, 3], *args, **kwargs))
        print(str(caught[0].message).partition("no effect: ")[2])
        assert [batch.tolist() for batch in batches] == [[1, 2], [3]], batches
    delivered(2, num_workers="auto", persistent_workers=True, prefetch_factor=4, timeout=0)
    delivered(2, False, None, None, "auto", multiprocessing_context="spawn")
    class Loader(feedline.DataLoader[int]): pass
    """
    done = run(package, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "num_workers='auto' (0 is used), persistent_workers, prefetch_factor",
        "num_workers='auto' (0 is used), multiprocessing_context",
    ]


def test_set_epoch_reaches_wrapped_samplers(package: Path) -> None:
    code = """
    import torch, feedline
    inside = torch.utils.data.distributed.DistributedSampler(range(8), 2, 0)
    batches = torch.utils.data.BatchSampler(inside, 2, False)
    loader = feedline.DataLoader(torch.arange(8), batch_sampler=batches)
    orders = []
    for epoch in range(2):
        loader.set_epoch(epoch)
        orders.append([batch.tolist() for batch in loader])
    assert orders[0] != orders[1] and inside.epoch == 1
    """
    done = run(package, code)
    assert done.returncode == 0, done.stderr


def test_the_arguments_are_those_of_the_native_loader() -> None:
    torchs = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    own = inspect.signature(feedline.DataLoader.__init__).parameters
    assert own.keys() - torchs.keys() == stock_loader._FEEDLINE_ARGUMENTS


def test_the_command_line_says_what_to_do(package: Path) -> None:
    done = run(package, "import sys; sys.argv[1:] = ['doctor']; from feedline.cli import main; sys.exit(main())")
    assert done.returncode == 2
    assert done.stderr.startswith("feedline: the command line needs Feedline's engine")


def test_an_engine_that_cannot_be_loaded_is_not_replaced(package: Path, tmp_path: Path) -> None:
    shutil.copytree(package, tmp_path / "with")
    (tmp_path / "with/feedline/_engine.py").write_text("raise ImportError('libfoo.so: cannot open shared object file')")
    done = run(tmp_path / "with", "import feedline; feedline.open")
    assert "libfoo.so" in done.stderr


def test_the_wheel_has_no_engine(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    (tree / "python").symlink_to(REPOSITORY / "python")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(tree),
    ]
    environment = {**os.environ, "FEEDLINE_NO_ENGINE": "1"}
    done = subprocess.run(
        [*command, "-w", str(tmp_path), str(tree)], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("feedline-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "feedline/no_engine/__init__.py" in names and "feedline/py.typed" in names
    assert not [name for name in names if name.endswith((".so", ".pyc", ".h", ".cpp"))]
