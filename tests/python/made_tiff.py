# SPDX-License-Identifier: Apache-2.0
"""TIFFs of every kind that Feedline reads natively, written here: Pillow writes few of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NONE, LZW, DEFLATE, PACK_BITS, OLD_DEFLATE = 1, 5, 8, 32773, 32946
COMPRESSIONS = (NONE, LZW, DEFLATE, PACK_BITS, OLD_DEFLATE)
_BYTES = {3: "H", 4: "I", 16: "Q"}  # SHORT, LONG, LONG8


@dataclass
class Layout:
    """How the pixels of a page are stored."""

    compression: int = NONE
    predictor: int = 1
    planar: bool = False
    tile: tuple[int, int] | None = None  # height, width
    rows: int = 7  # per strip
    big_endian: bool = False
    big_tiff: bool = False

    @property
    def name(self) -> str:
        parts = [f"{self.compression}", f"predictor {self.predictor}", f"tile {self.tile}" if self.tile else "strips"]
        return ", ".join(parts + [name for name in ("planar", "big_endian", "big_tiff") if getattr(self, name)])


def tiff(pages: np.ndarray | Sequence[np.ndarray], layout: Layout | None = None, **tags: int) -> bytes:
    """Returns a file with these pages, each (height, width) or (height, width, channels). `tags` are further tags, such
    as t274=6 for an orientation.
    """
    layout = layout or Layout()
    order = ">" if layout.big_endian else "<"
    head = b"MM" if layout.big_endian else b"II"
    head += struct.pack(order + "HHHQ", 43, 8, 0, 0) if layout.big_tiff else struct.pack(order + "HI", 42, 0)
    file = bytearray(head)
    link = len(file) - (8 if layout.big_tiff else 4)
    for page in [pages] if isinstance(pages, np.ndarray) else pages:
        link = _add_page(file, link, page if page.ndim == 3 else page[..., None], layout, order, tags)
    return bytes(file)


def _add_page(file: bytearray, link: int, page: np.ndarray, layout: Layout, order: str, tags: dict[str, int]) -> int:
    height, width, channels = page.shape
    chunks = [_encoded(chunk, layout, order) for chunk in _chunks(page, layout)]
    offsets = []
    for chunk in chunks:
        offsets.append(len(file))
        file += chunk
    formats = {"u": 1, "i": 2, "f": 3}
    entries: dict[int, tuple[int, list[int]]] = {
        256: (4, [width]),
        257: (4, [height]),
        258: (3, [page.dtype.itemsize * 8] * channels),
        259: (3, [layout.compression]),
        262: (3, [2 if channels == 3 else 1]),
        277: (3, [channels]),
        284: (3, [2 if layout.planar else 1]),
        317: (3, [layout.predictor]),
        339: (3, [formats[page.dtype.kind]] * channels),
    }
    kind = 16 if layout.big_tiff else 4
    sizes = [len(chunk) for chunk in chunks]
    if layout.tile:
        entries |= {322: (4, [layout.tile[1]]), 323: (4, [layout.tile[0]]), 324: (kind, offsets), 325: (kind, sizes)}
    else:
        entries |= {273: (kind, offsets), 278: (4, [layout.rows]), 279: (kind, sizes)}
    entries |= {int(name[1:]): (4, [value]) for name, value in tags.items()}
    word, room = ("Q", 8) if layout.big_tiff else ("I", 4)
    directory = b""
    for tag, (type_, values) in sorted(entries.items()):
        data = struct.pack(f"{order}{len(values)}{_BYTES[type_]}", *values)
        if len(data) > room:
            place = len(file)
            file += data
            data = struct.pack(order + word, place)
        directory += struct.pack(order + "HH" + word, tag, type_, len(values)) + data.ljust(room, b"\0")
    file += bytes(-len(file) % 8)
    struct.pack_into(order + word, file, link, len(file))
    count = struct.pack(order + ("Q" if layout.big_tiff else "H"), len(entries))
    file += count + directory
    link = len(file)
    file += bytes(room)
    return link


def _chunks(page: np.ndarray, layout: Layout) -> list[np.ndarray]:
    height, width, channels = page.shape
    rows, columns = layout.tile or (layout.rows, width)
    planes = [page[..., c : c + 1] for c in range(channels)] if layout.planar else [page]
    found = []
    for plane in planes:
        for y in range(0, height, rows):
            for x in range(0, width, columns):
                chunk = plane[y : y + rows, x : x + columns]
                if layout.tile:  # tiles at the edges are padded
                    more = [(0, rows - chunk.shape[0]), (0, columns - chunk.shape[1]), (0, 0)]
                    chunk = np.pad(chunk, more, constant_values=1)
                found.append(chunk)
    return found


def _encoded(chunk: np.ndarray, layout: Layout, order: str) -> bytes:
    size = chunk.dtype.itemsize
    if layout.predictor == 2:
        bits = chunk.copy(order="C").view(f"u{size}")
        bits[:, 1:] -= bits[:, :-1].copy()
        data = bits.astype(f"{order}u{size}").tobytes()
    elif layout.predictor == 3:
        rows = np.ascontiguousarray(chunk).astype(f">f{size}").reshape(chunk.shape[0], -1).view(np.uint8)
        planes = rows.reshape(chunk.shape[0], -1, size).transpose(0, 2, 1).reshape(chunk.shape[0], -1).copy()
        step = chunk.shape[2]
        planes[:, step:] -= planes[:, :-step].copy()
        data = planes.tobytes()
    else:
        data = chunk.astype(chunk.dtype.newbyteorder(order)).tobytes()
    if layout.compression in (DEFLATE, OLD_DEFLATE):
        return zlib.compress(data)
    coders: dict[int, Any] = {NONE: bytes, LZW: lzw, PACK_BITS: pack_bits}
    return bytes(coders[layout.compression](data))


def lzw(data: bytes) -> bytes:
    """Compresses as TIFF 6.0 does, with clear codes before the table is full."""
    bits, count, width = 0, 0, 9
    out = bytearray()

    def put(code: int) -> None:
        nonlocal bits, count
        bits, count = bits << width | code, count + width
        while count >= 8:
            out.append(bits >> (count - 8) & 0xFF)
            count -= 8
        bits &= (1 << count) - 1

    table: dict[bytes, int] = {}
    put(256)
    text = b""
    for byte in data:
        longer = text + bytes([byte])
        if len(longer) == 1 or longer in table:
            text = longer
            continue
        put(table[text] if len(text) > 1 else text[0])
        table[longer] = 258 + len(table)
        text = bytes([byte])
        if len(table) + 258 in (512, 1024, 2048):
            width += 1
        if len(table) + 258 == 4094:
            put(256)
            table, width = {}, 9
    if text:
        put(table[text] if len(text) > 1 else text[0])
        if len(table) + 259 in (512, 1024, 2048):
            width += 1
    put(257)
    return bytes(out) + (bytes([bits << (8 - count) & 0xFF]) if count else b"")


def pack_bits(data: bytes) -> bytes:
    """Compresses runs of equal bytes, and copies all others."""
    out, at = bytearray(), 0
    while at < len(data):
        run = 1
        while at + run < len(data) and run < 128 and data[at + run] == data[at]:
            run += 1
        if run > 1:
            out += bytes([257 - run, data[at]])
            at += run
            continue
        end = at + 1
        while end < len(data) and end - at < 128 and (end + 1 == len(data) or data[end] != data[end + 1]):
            end += 1
        out += bytes([end - at - 1]) + data[at:end]
        at = end
    return bytes(out)
