# SPDX-License-Identifier: Apache-2.0
"""The kernels' images on a real GPU, with the driver alone: every image that fits the GPU produces NumPy's elements,
bit for bit.

src/pipeline/fields/pixel_kernels_test.cpp compares the same source with the engine's CPU path; these tests show that a
GPU runs this source like the CPU.
"""

from __future__ import annotations

import ctypes
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, in whose memory the kernels work, is not installed")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
MADE = Path(__file__).parents[2] / "src/device/cuda/kernels/image_bytes.inc"
ROWS, HEIGHT, WIDTH, CHANNELS = 5, 61, 83, 3
SHARE, THREADS = 4096, 256  # size of a block: see pixel_job.h
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


class PixelJob(ctypes.Structure):
    """The struct in pixel_job.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("pixels", "in_stride", "out", "out_stride")),
        *((name, ctypes.c_uint64) for name in ("tables", "inputs", "mixed", "rectangles", "patches")),
        *((name, ctypes.c_uint32) for name in ("rows", "width", "height", "channels", "planar", "reserved")),
    )


PIXEL_ROW = np.dtype([("mirrored", "u4"), ("first_rectangle", "u4"), ("rectangles", "u4")])
RECTANGLE = np.dtype([("box", "i4", 4), ("value", "u4", 4), ("patch", "u8")])
MIXED_ROW = np.dtype([("own", "u4"), ("partner", "u4"), ("kind", "u4"), ("share", "f4", 2), ("box", "i4", 4)])


def images() -> list[Any]:
    """Returns the images that this GPU can run: its generation's code, and PTX."""
    major, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)
    found = []
    for name, data in re.findall(r"k_(\w+)\[\] = \{([^}]*)\}", MADE.read_text()):
        kind, digits = name.split("_")
        of = int(digits[:-1]), int(digits[-1])
        if (of <= (major, minor)) if kind == "compute" else (of[0] == major and of[1] <= minor):
            bytes_ = bytes(int(byte) for byte in data.split(",") if byte.strip())
            found.append(pytest.param(zlib.decompress(bytes_), id=name))
    return found or [pytest.param(b"", id="none")]


def upload(array: Any) -> Any:
    """Copies `array`'s bytes to the GPU."""
    return torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).reshape(-1)).cuda()


def launched(image: bytes, element: str, job: PixelJob, units: int) -> None:
    """Runs the kernel once, and waits for it."""
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    name = f"feedline_pixels_{element}".encode()
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(job))
    blocks = job.rows * -(-units // SHARE)
    assert cuda.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, None, arguments, None) == 0
    torch.cuda.synchronize()
    cuda.cuModuleUnload(module)


def to_bits(values: Any, element: str) -> Any:
    """Returns float32 as the bits of the element type, rounded to nearest even."""
    if element == "float32":
        return values.view(np.uint32)
    if element == "float16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_floats(bits: Any, element: str) -> Any:
    if element == "float32":
        return bits.view(np.float32)
    if element == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("image", images())
def test_a_gpu_gives_numpys_bits(image: bytes, element: str, planar: bool) -> None:
    random = np.random.default_rng(3)
    pixels = random.integers(0, 256, (ROWS, HEIGHT, WIDTH, CHANNELS), dtype=np.uint8)
    every = np.arange(256, dtype=np.float32) / np.float32(255)
    tables = to_bits(np.stack([(every - MEAN[c]) / STD[c] for c in range(CHANNELS)]), element)

    # the expected values: (row, y, x, channel) as bits
    plain = np.stack([tables[c][pixels[..., c]] for c in range(CHANNELS)], axis=-1)
    plain[1::2] = plain[1::2, :, ::-1]
    value = to_bits(np.float32([0.25, -3.5, 1e-6]), element)
    plain[2, 10:40, 5:50] = value
    patch = to_bits(random.normal(size=(7, 9, CHANNELS)).astype(np.float32), element)
    plain[2, 30:37, 40:49] = patch
    expected = plain.copy()
    share, rest = np.float32(0.3), np.float32(0.7)

    def times(bits: Any, factor: Any) -> Any:
        return to_floats(to_bits(to_floats(bits, element) * factor, element), element)

    expected[0] = to_bits(times(plain[0], share) + times(plain[4], rest), element)
    expected[3, 20:50, 0:30] = plain[2, 20:50, 0:30]

    rectangles = np.zeros(2, RECTANGLE)
    rectangles[0] = ((5, 10, 45, 30), (*value.astype(np.uint32), 0), 2**64 - 1)
    rectangles[1] = ((40, 30, 9, 7), 0, 0)
    inputs = np.zeros(ROWS, PIXEL_ROW)
    inputs["mirrored"] = np.arange(ROWS) % 2
    inputs["rectangles"][2] = 2
    mixed = np.zeros(ROWS, MIXED_ROW)
    mixed["own"] = np.arange(ROWS)
    mixed[0] = (0, 4, 1, (share, rest), 0)
    mixed[3] = (3, 2, 2, 0, (0, 20, 30, 50))

    held = [upload(a) for a in (pixels, tables, inputs, mixed, rectangles, patch.transpose(2, 0, 1))]
    pixels_at, *others = (tensor.data_ptr() for tensor in held)
    size = expected.itemsize * HEIGHT * WIDTH * CHANNELS
    out = torch.zeros(ROWS * size, dtype=torch.uint8, device="cuda")
    job = PixelJob(pixels_at, HEIGHT * WIDTH * CHANNELS, out.data_ptr(), size, *others)
    job.rows, job.width, job.height, job.channels, job.planar = ROWS, WIDTH, HEIGHT, CHANNELS, planar
    launched(image, element, job, HEIGHT * WIDTH * (1 if planar else CHANNELS))

    if planar:
        expected = expected.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(out.cpu().numpy().view(expected.dtype).reshape(expected.shape), expected)
