# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of audio_fuzz: small WAV, AIFF and AU files, and MP3 frames without a length."""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "audio"
GUID_END = b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
DATA = bytes(range(48))


def wav(code: int, bits: int, riff: bytes = b"RIFF", extensible: bool = False, stated: int | None = None) -> bytes:
    size = bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else code, 2, 16000, 32000 * size, 2 * size, bits)
    if extensible:
        form += struct.pack("<HHIH", 22, bits, 0, code) + GUID_END
    sizes = struct.pack("<4sIQQQI", b"ds64", 28, 0, len(DATA), 0, 0) if riff == b"RF64" else b""
    count = len(DATA) if stated is None else stated
    body = b"WAVE" + sizes + struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", count) + DATA
    return riff + struct.pack("<I", len(body)) + body


def aiff(kind: bytes, bits: int) -> bytes:
    rate = b"\x40\x0c\xfa" + bytes(7)
    common = struct.pack(">HIH", 2, len(DATA) // (bits // 4), bits) + rate + (kind + b"\0\0" if kind else b"")
    sound = bytes(8) + DATA
    body = (b"AIFC" if kind else b"AIFF") + struct.pack(">4sI", b"COMM", len(common)) + common
    body += struct.pack(">4sI", b"SSND", len(sound)) + sound
    return b"FORM" + struct.pack(">I", len(body)) + body


def crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x107 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def flac() -> bytes:
    """Headers of 20 frames of 4096 samples, followed by bytes without meaning."""
    info = struct.pack(">HH6xQ", 4096, 4096, 16000 << 44 | 15 << 36 | 20 * 4096) + bytes(16)
    frames = b""
    for i in range(20):
        head = bytes([0xFF, 0xF8, 0xC5, 0x08, i])
        frames += head + bytes([crc8(head)]) + b"U" * (30 + i % 7)
    return b"fLaC\x80" + struct.pack(">I", len(info))[1:] + info + frames


def main() -> None:
    frame = b"\xff\xf3\x48\xc4" + bytes(140)  # MPEG 2 layer III, 32 kbit/s, 16 kHz, mono
    seeds = {
        "pcm8.wav": wav(1, 8),
        "pcm16.wav": wav(1, 16),
        "float.wav": wav(3, 32, extensible=True),
        "mulaw.wav": wav(7, 8),
        "rf64.wav": wav(1, 24, riff=b"RF64", stated=0xFFFFFFFF),
        "piped.wav": wav(1, 16, stated=0xFFFFFFFF),
        "pcm24.aiff": aiff(b"", 24),
        "float.aiff": aiff(b"fl32", 32),
        "pcm16.au": struct.pack(">4sIIIII", b".snd", 24, len(DATA), 3, 16000, 2) + DATA,
        "frames.flac": flac(),
        "no_length.mp3": b"ID3\3\0\0\0\0\0\4abcd" + frame * 5,
    }
    FOLDER.mkdir(exist_ok=True)
    for name, content in seeds.items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
