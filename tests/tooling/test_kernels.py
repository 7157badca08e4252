# SPDX-License-Identifier: Apache-2.0
"""The images of the GPU's kernels in the tree are those of their source, which a change of it makes again."""

import os
import re
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import kernel_images  # noqa: E402

MADE = kernel_images.MADE.read_text()


def images():
    """By name, as the driver gets them."""
    arrays = re.findall(r"k_(\w+)\[\] = \{([^}]*)\}", MADE)
    return {
        name: zlib.decompress(bytes(int(byte) for byte in text.split(",") if byte.strip())) for name, text in arrays
    }


def test_the_images_are_of_this_source():
    assert f'kSourceDigest = "{kernel_images.digest()}"' in MADE, "the kernels changed: run tools/kernels"


def test_a_change_of_the_source_shows(monkeypatch):
    before = kernel_images.digest()
    monkeypatch.setattr(kernel_images, "PREFACE", kernel_images.PREFACE + "\n")
    assert kernel_images.digest() != before


def test_code_is_for_the_gpus_that_its_name_lists():
    for name, image in images().items():
        if name.startswith("compute_"):
            assert f".target sm_{name.removeprefix('compute_')}\n".encode() in image
            continue
        assert image.startswith(b"\x7fELF")
        # where the header has it differs with the age of the format
        flags = int.from_bytes(image[48:52], "little")
        assert int(name.removeprefix("sm_")) in (flags & 0xFF, flags >> 8 & 0xFF)


def test_they_are_small():
    assert len(MADE) < 400_000
    assert sum(map(len, images().values())) < 500_000


def test_the_compiler_makes_the_same_bytes():
    packages = ROOT / "build/nvrtc"
    if os.environ.get("FEEDLINE_PROOFS") != "long":
        pytest.skip("compiling takes seconds: FEEDLINE_PROOFS=long")
    if not packages.is_dir():
        pytest.skip("CUDA's run-time compiler is not in build/nvrtc: tools/kernels installs it")
    compiler = kernel_images.Compiler(packages)
    assert kernel_images.written(kernel_images.images(compiler), compiler.version()) == MADE
