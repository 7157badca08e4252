# SPDX-License-Identifier: Apache-2.0
"""Videos that the ffmpeg program makes, and their frames as it decodes them in order."""

from __future__ import annotations

import functools
import shutil
import struct
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


def _length_at(content: bytes, at: int) -> tuple[int, int]:
    """The value of an EBML number, and its bytes."""
    size = 9 - content[at].bit_length()
    return int.from_bytes(content[at : at + size], "big") & ((1 << 7 * size) - 1), size


def make_rolled(path: Path, degrees: float) -> Path:
    """Writes a Matroska file whose video track has that ProjectionPoseRoll."""
    plain = path.with_name("plain.mkv")
    codec = ("-c:v", "libx264", "-g", "12", "-preset", "ultrafast", "-live", "1")  # without positions that would change
    content = make(plain, *codec).read_bytes()
    projection = bytes.fromhex("7671 81 00 7675 84") + struct.pack(">f", degrees)
    added = bytes.fromhex("7670") + bytes([0x80 | len(projection)]) + projection

    def insert(at: int, end: int, ids: list[bytes]) -> bytes:
        """Returns the elements from `at` to `end`, with the projection at the end of the element that `ids` lead to."""
        out = b""
        while at < end:
            id_bytes = 9 - content[at].bit_length()
            name, (length, length_bytes) = content[at : at + id_bytes], _length_at(content, at + id_bytes)
            body = at + id_bytes + length_bytes
            is_unknown = length == (1 << 7 * length_bytes) - 1
            stop = end if is_unknown else min(body + length, end)
            if ids and name == ids[0]:
                inner = insert(body, stop, ids[1:]) if ids[1:] else content[body:stop] + added
                size = content[at + id_bytes : body] if is_unknown else struct.pack(">Q", len(inner) | 1 << 56)
                out += name + size + inner
            else:
                out += content[at:stop]
            at = stop
        return out

    segment, tracks, entry, video = (bytes.fromhex(name) for name in ("18538067", "1654AE6B", "AE", "E0"))
    path.write_bytes(insert(0, len(content), [segment, tracks, entry, video]))
    plain.unlink()
    return path
