# SPDX-License-Identifier: Apache-2.0
"""Videos that the ffmpeg program makes, and their frames as it decodes them in order."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest

import feedline

SIZE = (50, 70)  # height, width
FRAMES = 40


@functools.cache
def _missing() -> str:
    if shutil.which("ffmpeg") is None:
        return "the ffmpeg program is not installed"
    try:
        feedline._engine.ffmpeg_version()
    except feedline.ConfigError as error:
        return str(error)
    return ""


def skip_without_ffmpeg() -> None:
    if _missing():
        pytest.skip(_missing())


def run(*arguments: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], check=True, stdin=subprocess.DEVNULL)


def make(path: Path, *codec: str, scene: str = "testsrc2", frames: int = FRAMES, rate: int = 25) -> Path:
    """Writes a video of `frames` frames."""
    height, width = SIZE
    source = f"{scene}=size={width}x{height}:rate={rate}"
    path.parent.mkdir(parents=True, exist_ok=True)
    options = codec or ("-c:v", "libx264", "-g", "12", "-preset", "ultrafast", "-bf", "2")
    run("-f", "lavfi", "-i", source, "-frames:v", str(frames), "-pix_fmt", "yuv420p", *options, str(path))
    return path


def frames_of(path: Path, size: tuple[int, int] = SIZE) -> Any:
    """All frames: uint8 (frames, channels, height, width)."""
    raw = path.with_suffix(".rgb")
    passed = ("-fps_mode", "passthrough", "-sws_flags", "bilinear", "-pix_fmt", "rgb24", "-f", "rawvideo")
    run("-i", str(path), "-an", *passed, str(raw))
    pixels = numpy.fromfile(raw, numpy.uint8).reshape(-1, *size, 3)
    raw.unlink()
    return numpy.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
