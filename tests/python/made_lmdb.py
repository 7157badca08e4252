# SPDX-License-Identifier: Apache-2.0
"""LMDB files, written from the layout of their pages (src/format/lmdb/lmdb_page.h), as if a program had written all
entries at once; and Caffe's Datums.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from made_tfrecords import message, varint

_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_HEADER, _NODE = 16, 8
NO_PAGE = 2**64 - 1


class Pages:
    """The pages after the two meta pages. nodes: the maximum number in a leaf or branch, for tall trees with few
    entries.
    """

    def __init__(self, size: int = 4096, nodes: int = 1000) -> None:
        self.size, self.nodes = size, nodes
        self.body: list[bytes] = []

    def tree(self, entries: Mapping[bytes, bytes], *, flags: int = 0, databases: bool = False) -> bytes:
        """Writes a tree, and returns its root; databases: the values are roots."""
        level: list[tuple[bytes, int]] = []
        nodes: list[tuple[bytes, bytes]] = []
        for key in sorted(entries):
            node = self._leaf_node(key, entries[key], 2 if databases else 0)
            if not self._fits(nodes, node):
                level.append((nodes[0][0], self._add(nodes, _LEAF)))
                nodes = []
            nodes.append((key, node))
        if nodes:
            level.append((nodes[0][0], self._add(nodes, _LEAF)))
        depth = 1 if level else 0
        while len(level) > 1:
            level, depth = self._level(level), depth + 1
        page = level[0][1] if level else NO_PAGE
        return struct.pack("<IHHQQQQQ", 0, flags, depth, 0, 0, 0, len(entries), page)

    def file(self, root: bytes, transaction: int = 2) -> bytes:
        even = transaction - transaction % 2
        metas = [self._meta(0, root, even), self._meta(1, root, transaction if transaction % 2 else even - 1)]
        return b"".join(metas + self.body)

    def _meta(self, number: int, root: bytes, transaction: int) -> bytes:
        free = struct.pack("<IHHQQQQQ", self.size, 0, 0, 0, 0, 0, 0, NO_PAGE)
        page = struct.pack("<QHHHH", number, 0, _META, 0, 0) + struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 30)
        page += free + root + struct.pack("<QQ", 1 + len(self.body), max(transaction, 0))
        return page.ljust(self.size, b"\0")

    def _leaf_node(self, key: bytes, value: bytes, flags: int) -> bytes:
        most = ((self.size - _HEADER) // 2 & ~1) - 2
        if _NODE + len(key) + len(value) > most:
            pages = -(-(_HEADER + len(value)) // self.size)
            number = 2 + len(self.body)
            whole = struct.pack("<QHHI", number, 0, _OVERFLOW, pages) + value
            whole = whole.ljust(pages * self.size, b"\0")
            self.body += [whole[i : i + self.size] for i in range(0, len(whole), self.size)]
            node = struct.pack("<IHH", len(value), 1, len(key)) + key + struct.pack("<Q", number)
        else:
            node = struct.pack("<IHH", len(value), flags, len(key)) + key + value
        return node + b"\0" * (len(node) % 2)

    def _fits(self, nodes: list[tuple[bytes, bytes]], node: bytes) -> bool:
        taken = _HEADER + 2 * (len(nodes) + 1) + sum(len(one) for _, one in nodes) + len(node)
        return len(nodes) < self.nodes and taken <= self.size

    def _add(self, nodes: list[tuple[bytes, bytes]], kind: int) -> int:
        number, at, places, packed = 2 + len(self.body), self.size, b"", b""
        for _, node in nodes:
            at -= len(node)
            places += struct.pack("<H", at)
            packed = node + packed
        page = struct.pack("<QHHHH", number, 0, kind, _HEADER + len(places), at) + places
        self.body.append(page.ljust(at, b"\0") + packed)
        return number

    def _level(self, below: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        pages: list[list[tuple[bytes, int]]] = [[]]
        nodes: list[bytes] = []  # size of the last one
        for key, page in below:
            node = self._branch_node(key if nodes else b"", page)
            if not self._fits([(b"", one) for one in nodes], node):
                pages.append([])
                nodes, node = [], self._branch_node(b"", page)
            nodes.append(node)
            pages[-1].append((key, page))
        if len(pages) > 1 and len(pages[-1]) == 1:
            pages[-1].insert(0, pages[-2].pop())  # liblmdb rejects a branch with one node
        level = []
        for entries in pages:
            added = [(key, self._branch_node(key if i else b"", page)) for i, (key, page) in enumerate(entries)]
            level.append((entries[0][0], self._add(added, _BRANCH)))
        return level

    @staticmethod
    def _branch_node(key: bytes, page: int) -> bytes:
        node = struct.pack("<IHH", page & 0xFFFFFFFF, page >> 32, len(key)) + key
        return node + b"\0" * (len(node) % 2)


def file_of(entries: Mapping[bytes, bytes], *, size: int = 4096, nodes: int = 1000) -> bytes:
    pages = Pages(size, nodes)
    return pages.file(pages.tree(entries))


def write(path: Path, entries: Mapping[bytes, bytes], **options: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_of(entries, **options))
    return path


def datum(image: bytes, label: int) -> bytes:
    """A Datum with an image file."""
    return message(4, image) + b"\x28" + varint(label) + b"\x38\x01"


def raw_datum(channels: int, height: int, width: int, data: bytes, label: int) -> bytes:
    extents = b"".join(bytes([8 * i + 8]) + varint(extent) for i, extent in enumerate((channels, height, width)))
    return extents + message(4, data) + b"\x28" + varint(label)


def of_folder(folder: Path, path: Path) -> Path:
    """The photos of class folders as Datums, in the same order, in a folder like liblmdb's."""
    photos = sorted(folder.glob("*/*.jpg"))
    classes = sorted({photo.parent.name for photo in photos})
    entries = {
        f"{i:08d}_{photo.relative_to(folder)}".encode(): datum(photo.read_bytes(), classes.index(photo.parent.name))
        for i, photo in enumerate(photos)
    }
    write(path / "data.mdb", entries, nodes=5)
    return path
