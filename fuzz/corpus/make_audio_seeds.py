# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of audio_fuzz: small WAV, AIFF, AU and FLAC files, and MP3 frames without a length; and those of
flac_fuzz: subframes of FLAC."""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).parent
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


def crc(data: bytes, width: int, polynomial: int) -> int:
    value = 0
    for byte in data:
        value ^= byte << width - 8
        for _ in range(8):
            value = value << 1 ^ (polynomial if value >> width - 1 & 1 else 0)
    return value


def flac(stated: int, metadata: bytes = b"") -> bytes:
    """20 frames of 4096 equal samples, and one of 3 samples that are not compressed."""
    info = struct.pack(">HH6xQ", 4096, 4096, 16000 << 44 | 15 << 36 | stated) + bytes(16)
    file = b"fLaC" + bytes([0 if metadata else 0x80]) + struct.pack(">I", len(info))[1:] + info + metadata
    for i in range(21):
        head, samples = bytes([0xFF, 0xF8, 0xC5, 0x08, i]), struct.pack(">Bh", 0, i * 1000)
        if i == 20:
            head, samples = bytes([0xFF, 0xF8, 0x65, 0x08, i, 2]), struct.pack(">Bhhh", 2, 1, -2, 3)
        frame = head + bytes([crc(head, 8, 0x107)]) + samples
        file += frame + struct.pack(">H", crc(frame, 16, 0x18005))
    return file


def subframes(assignment: int, width: int, frames: int, *fields: tuple[int, int]) -> bytes:
    """The header of flac_fuzz, (value, bits) pairs, and bytes that continue as numbers or codes of residuals."""
    text = "".join(f"{value % (1 << bits):0{bits}b}" for value, bits in fields)
    text += "0" * (-len(text) % 8)
    head = struct.pack(">BBH", assignment, width - 4, frames - 1)
    return head + int(text, 2).to_bytes(len(text) // 8, "big") + bytes(range(7, 256, 9)) * 3


def flac_seeds() -> dict[str, bytes]:
    lpc = [(i * 77 % 100 - 50, 16) for i in range(9)]
    factors = [((512, -256, 128)[i % 3], 12) for i in range(9)]
    predicted = [((31 + 9) << 1, 8), *lpc, (11, 4), (9, 5), *factors]
    return {
        "constant": subframes(0, 16, 100, (0, 8), (-5, 16)),
        "verbatim": subframes(0, 12, 20, (2, 8)),
        "verbatim_stereo": subframes(8, 32, 5, (2, 8)),
        "wasted": subframes(0, 24, 8, (3, 8), (1, 3)),
        "fixed_0": subframes(0, 16, 64, (16, 8), (0, 2), (3, 4), (3, 4)),
        "fixed_1": subframes(0, 24, 64, (18, 8), (99, 24), (1, 2), (2, 4), (5, 5)),
        "fixed_4": subframes(0, 32, 32, (24, 8), *[(i, 32) for i in range(4)], (0, 2), (0, 4), (2, 4)),
        "escape": subframes(0, 16, 32, (18, 8), (9, 16), (0, 2), (1, 4), (15, 4), (7, 5)),
        "lpc_9": subframes(0, 16, 64, *predicted, (0, 2), (1, 4), (4, 4)),
        "long_code": subframes(0, 16, 16, (16, 8), (0, 2), (0, 4), (0, 4), (0, 70), (1, 1)),
        "zeros_at_the_end": bytes([1, 0, 0, 0, 0, 1]) + bytes(9),
        "mid_side": subframes(10, 31, 4, (2, 8)),
        "side_right": subframes(9, 8, 6, (2, 8)),
    }


def main() -> None:
    frame = b"\xff\xf3\x48\xc4" + bytes(140)  # MPEG 2 layer III, 32 kbit/s, 16 kHz, mono
    points = struct.pack(">QQHQQH", 4096, 11, 4096, 40960, 110, 4096)
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
        "frames.flac": flac(20 * 4096 + 3),
        "no_length.flac": flac(0),
        "seek_table.flac": flac(20 * 4096 + 3, b"\x83\0\0\x24" + points),
        "no_length.mp3": b"ID3\3\0\0\0\0\0\4abcd" + frame * 5,
    }
    for folder, contents in (("audio", seeds), ("flac", flac_seeds())):
        (FOLDER / folder).mkdir(exist_ok=True)
        for name, content in contents.items():
            (FOLDER / folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
