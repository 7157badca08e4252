# SPDX-License-Identifier: Apache-2.0
"""PNGs of every kind in the specification, written here: PngSuite has such files, and Pillow writes only a few
kinds.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

import numpy as np

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGBA: (8, 16)}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


@dataclass
class Kind:
    """A PNG's header, and the form in which its rows are written. `filters` are used in turn, row by row."""

    color: int = RGB
    depth: int = 8
    width: int = 32
    height: int = 32
    interlaced: bool = False
    filters: tuple[int, ...] = (0, 1, 2, 3, 4)
    idat: int = 1 << 20  # bytes in one
    level: int = 6  # zlib's
    chunks: list[tuple[bytes, bytes]] = field(default_factory=list)  # chunks between IHDR and IDAT

    @property
    def name(self) -> str:
        more = "interlaced" if self.interlaced else "plain"
        return f"color {self.color}, {self.depth} bits, {self.width} x {self.height}, {more}, filters {self.filters}"


def chunk(kind: bytes, data: bytes) -> bytes:
    """Returns a chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def palette(entries: int) -> tuple[bytes, bytes]:
    """Returns a PLTE chunk with this many colours."""
    return b"PLTE", bytes((i * 37 + 11 * c) % 256 for i in range(entries) for c in range(3))


def samples_of(kind: Kind, seed: int = 0) -> np.ndarray:
    """Returns smooth samples with noise, (height, width, channels), with `depth` bits."""
    rng = np.random.default_rng(seed)
    y, x, c = np.mgrid[: kind.height, : kind.width, : CHANNELS[kind.color]]
    most = (1 << kind.depth) - 1
    smooth = (np.sin(x / 9 + c) + np.cos(y / 7 - c) + 2) / 4
    return np.clip(smooth * most + rng.normal(0, most / 40 + 0.3, x.shape), 0, most).astype(np.int64)


def png(kind: Kind, samples: np.ndarray | None = None) -> bytes:
    """Returns the file."""
    samples = samples_of(kind) if samples is None else samples
    grids = _ADAM7 if kind.interlaced else ((0, 0, 1, 1),)
    raw = b"".join(_filtered(samples[y::dy, x::dx], kind) for x, y, dx, dy in grids)
    data = zlib.compress(raw, kind.level)
    header = struct.pack(">IIBBBBB", kind.width, kind.height, kind.depth, kind.color, 0, 0, kind.interlaced)
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), *(chunk(*one) for one in kind.chunks)]
    parts += [chunk(b"IDAT", data[at : at + kind.idat]) for at in range(0, len(data), kind.idat)]
    return b"".join([*parts, chunk(b"IEND", b"")])


def _filtered(samples: np.ndarray, kind: Kind) -> bytes:
    if samples.size == 0:
        return b""
    rows = _packed(samples, kind.depth)
    step = max(1, CHANNELS[kind.color] * kind.depth // 8)
    out, above = [], np.zeros(rows.shape[1], np.int64)
    for number, row in enumerate(rows):
        how = kind.filters[number % len(kind.filters)]
        out.append(bytes([how]) + (row - _predicted(how, row, above, step)).astype(np.uint8).tobytes())
        above = row
    return b"".join(out)


def _packed(samples: np.ndarray, depth: int) -> np.ndarray:
    height = samples.shape[0]
    if depth == 16:
        rows = np.frombuffer(samples.astype(">u2").tobytes(), np.uint8).reshape(height, -1)
    elif depth == 8:
        rows = samples.reshape(height, -1)
    else:
        bits = np.unpackbits(samples.astype(np.uint8).reshape(height, -1, 1), axis=2)[:, :, 8 - depth :]
        rows = np.packbits(bits.reshape(height, -1), axis=1)
    return rows.astype(np.int64)


def _predicted(how: int, row: np.ndarray, above: np.ndarray, step: int) -> np.ndarray:
    def before(values: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(step, np.int64), values])[: len(values)]

    left, corner = before(row), before(above)
    estimate = left + above - corner
    to_left, to_above, to_corner = abs(estimate - left), abs(estimate - above), abs(estimate - corner)
    upper = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, upper)
    return [np.zeros_like(row), left, above, (left + above) // 2, paeth, np.zeros_like(row)][how]  # 5 does not exist
