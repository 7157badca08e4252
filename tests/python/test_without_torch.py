# SPDX-License-Identifier: Apache-2.0
"""The package works with only NumPy, imports neither NumPy nor torch by itself, and starts nothing at import."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from running_processes import HANG_S

BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "PIL", "torchvision", "scipy"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
import os, feedline
"""


def run(script: str, environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + textwrap.dedent(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_import_starts_and_imports_nothing(environment: dict[str, str]) -> None:
    out = run(
        """
        print(len(os.listdir("/proc/self/task")), *(name in sys.modules for name in ("numpy", "torch", "logging")))
        assert set(feedline.__all__) <= set(dir(feedline)) | {"__version__"}
        assert feedline.__version__
        """,
        environment,
    )
    assert out.split() == ["1", "False", "False", "False"]


def test_everything_but_tensors(folder: Path, environment: dict[str, str]) -> None:
    out = run(
        """
        ds = feedline.open(sys.argv[1]).random_resized_crop(16).random_horizontal_flip()
        ds = ds.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
        with ds.loader(4, output="numpy", dtype="float16") as loader:
            batches = list(loader)
        print(sum(len(batch.label) for batch in batches), batches[0].image.dtype)
        print(ds[0].image.shape, feedline.decode_image(ds.encoded(0)).dtype, len(ds.inspect().findings))
        try:
            ds.loader(4)
        except feedline.ConfigError as error:
            assert 'output="numpy"' in str(error) and "torch" in str(error), error
            print("refused")
        """,
        environment,
        str(folder),
    )
    assert out.splitlines() == ["21 float16", "(3, 16, 16) uint8 0", "refused"]


def test_numpy_output_never_imports_torch(folder: Path, environment: dict[str, str]) -> None:
    code = """
import sys, feedline
list(feedline.open(sys.argv[1]).resize((8, 8)).loader(4, output="numpy"))
print("torch" in sys.modules)
"""
    out = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert out.stdout == "False\n", out.stderr
