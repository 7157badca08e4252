# SPDX-License-Identifier: Apache-2.0
"""Users' classes are understood in each supported CPython that is installed, without torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import feedline

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")  # a new version is added after its classes pass
OWN_CODE = Path(feedline.__file__).parent / "torch_loader" / "lowering" / "own_code"

SCRIPT = """
import os
import sys
import types

package = types.ModuleType("own_code")
package.__path__ = [sys.argv[1]]
sys.modules["own_code"] = package
pillow = types.ModuleType("PIL.Image")
pillow.open = lambda path: None
sys.modules["PIL.Image"] = pillow

from own_code.sample_code import sample_code
from own_code.sample_values import Refused

Image = pillow
TRANSFORM = object


class Photos:
    def __init__(self):
        self.names, self.labels, self.root, self.transform = ["a", "b"], [3, 4], "photos", TRANSFORM

    def __len__(self):
        return len(self.names)


class Tutorial(Photos):
    def __getitem__(self, index):
        path = os.path.join(self.root, f"{self.names[index]}.jpg")
        with open(path, "rb") as file:
            image = Image.open(file)
            image = image.convert("RGB")
        label = 1 if "a" in self.names[index] else 0
        if self.transform is not None:
            image = self.transform(image)
        return image, label


class Dict(Photos):
    def read(self, index):
        return Image.open(self.names[index]).convert("RGB")

    def __getitem__(self, index):
        assert index < len(self)
        tags = [self.labels[index] + extra for extra in (1, 2) if extra > 1]
        sample = {"tags": tags, "image": self.read(index)}
        sample["image"] = self.transform(sample["image"]) if self.transform else sample["image"]
        return sample


class Special(Photos):
    def __getitem__(self, index):
        image = Image.open(self.names[index])
        if index == 1:
            image = image.convert("L")
        return self.transform(image), self.labels[index]


class Catches(Photos):
    def __getitem__(self, index):
        try:
            return self.transform(Image.open(self.names[index])), self.labels[index]
        except OSError:
            return None


class Counts(Photos):
    def __getitem__(self, index):
        self.count += 1
        return self.transform(Image.open(self.names[index])), self.labels[index]


code = sample_code(Tutorial())
assert code.row(0) == (("photos/a.jpg",), (1,)) and code.row(1) == (("photos/b.jpg",), (0,))
(image,) = code.images
assert (code.kind, image.at, image.mode, [step.transform for step in image.steps]) == (tuple, 0, "RGB", [TRANSFORM])
code = sample_code(Dict())
assert code.row(1) == (("b",), ([6],)) and code.sample(("made",), ([6],)) == {"tags": [6], "image": "made"}
for kind in (Special, Catches, Counts):
    try:
        sample_code(kind())
    except Refused:
        continue
    raise AssertionError(kind)

# The source of the file must be that of the running code.
Tutorial.__getitem__.__code__ = Tutorial.__getitem__.__code__.replace(co_code=Dict.__getitem__.__code__.co_code)
try:
    sample_code(Tutorial())
except Refused as refused:
    assert "differs" in refused.why
else:
    raise AssertionError("a changed function was accepted")
"""


@pytest.mark.parametrize("version", SUPPORTED)
def test_classes_are_understood(version: str, tmp_path: Path) -> None:
    running = "{}.{}".format(*sys.version_info)
    python = sys.executable if version == running else shutil.which(f"python{version}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if python is None or subprocess.run([python, "-c", ""], env=environment, capture_output=True).returncode:
        pytest.skip(f"python{version} is not installed")
    script = tmp_path / "understand.py"
    script.write_text(SCRIPT)
    done = subprocess.run([python, str(script), str(OWN_CODE)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
