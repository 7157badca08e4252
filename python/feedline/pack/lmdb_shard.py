# SPDX-License-Identifier: Apache-2.0
"""Writes LMDB databases as files that liblmdb 0.9 opens with ``subdir=False``, with the pages of one transaction.

A value of more than about half a page has its own pages, which are written immediately. Keys, small values and the
numbers of those pages stay in memory until `commit`, which sorts them, writes the leaves and branches of the tree, and
then the two meta pages at the start of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError
from .mds_columns import Content
from .shard_file import AtomicFile, sha256_of

PAGE_BYTES = 4096
META_PAGES = 2
_HEADER = struct.Struct("<QHHHH")  # number, padding, flags, end of the offsets, begin of the nodes
_OVERFLOW_HEADER = struct.Struct("<QHHI")  # number, padding, flags, number of pages
_NODE = struct.Struct("<IHH")  # size of the value or page of the branch, flags or its upper bits, size of the key
_DATABASE = struct.Struct("<IHHQQQQQ")  # padding, flags, depth, branch, leaf and overflow pages, entries, root
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG_VALUE = 1  # flag of a node whose value has its own pages
_INTEGER_KEYS = 8  # flag of the database of free pages
_NO_PAGE = 2**64 - 1
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_MOST_KEY_BYTES = 511
_MOST_NODE_BYTES = ((PAGE_BYTES - _HEADER.size) // 2 & ~1) - 2
_MOST_VALUE_BYTES = 2**32 - 1

_Node = tuple[bytes, bytes]  # key and node


class LmdbFile(AtomicFile):
    """A database. The content of a sample is its keys and values."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bytes = META_PAGES * PAGE_BYTES
        self._pages = META_PAGES
        self._counts = {_BRANCH: 0, _LEAF: 0, _OVERFLOW: 0}
        self._nodes: list[_Node] = []
        self._file.write(bytes(self.bytes))

    def take(self, content: Content) -> None:
        """Appends values under keys, in any order."""
        for name, value in content:
            key = _key(name)
            self._nodes.append((key, self._leaf_node(key, value)))
            self.bytes += entry_bytes(name, len(value))

    def commit(self) -> str:
        self._nodes.sort(key=lambda node: node[0])
        depth, root = 0, _NO_PAGE
        level = self._level(self._nodes, _LEAF) if self._nodes else []
        while level:
            depth, root = depth + 1, level[0][1]
            level = self._level([(key, _branch_node(key, page)) for key, page in level], _BRANCH) if level[1:] else []
        counts = self._counts
        tree = (0, 0, depth, counts[_BRANCH], counts[_LEAF], counts[_OVERFLOW], len(self._nodes), root)
        self.bytes = self._pages * PAGE_BYTES
        self._file.seek(0)
        self._file.write(self._meta(0, (0, 0, 0, 0, 0, 0, 0, _NO_PAGE), META_PAGES - 1))
        self._file.write(self._meta(1, tree, self._pages - 1))
        super().commit()
        return sha256_of(self.path)

    def _leaf_node(self, key: bytes, value: bytes) -> bytes:
        if not _is_big(len(key), len(value)):
            return _even(_NODE.pack(len(value), 0, len(key)) + key + value)
        pages = -(-(_HEADER.size + len(value)) // PAGE_BYTES)
        number = self._add(pages, _OVERFLOW)
        self._file.write(_OVERFLOW_HEADER.pack(number, 0, _OVERFLOW, pages))
        self._file.write(value)
        self._file.write(bytes(pages * PAGE_BYTES - _HEADER.size - len(value)))
        return _even(_NODE.pack(len(value), _BIG_VALUE, len(key)) + key + struct.pack("<Q", number))

    def _level(self, nodes: Iterable[_Node], kind: int) -> list[tuple[bytes, int]]:
        """Writes the pages of one level of the tree. Returns the first key and the number of each page."""
        pages: list[list[_Node]] = [[]]
        used = _HEADER.size
        for key, node in nodes:
            if used + 2 + len(node) > PAGE_BYTES:
                pages.append([])
                used = _HEADER.size
            pages[-1].append((key, node))
            used += 2 + len(node)
        if kind == _BRANCH and len(pages[-1]) == 1:  # liblmdb requires two nodes in a branch
            pages[-1].insert(0, pages[-2].pop())
        return [(page[0][0], self._write_page(page, kind)) for page in pages]

    def _write_page(self, nodes: list[_Node], kind: int) -> int:
        number, at = self._add(1, kind), PAGE_BYTES
        offsets, stored = bytearray(), bytearray(PAGE_BYTES)
        for i, (_, node) in enumerate(nodes):
            if kind == _BRANCH and i == 0:  # the first key of a branch is empty
                page, upper, _ = _NODE.unpack_from(node)
                node = _NODE.pack(page, upper, 0)
            at -= len(node)
            stored[at : at + len(node)] = node
            offsets += struct.pack("<H", at)
        head = _HEADER.pack(number, 0, kind, _HEADER.size + len(offsets), at) + offsets
        stored[: len(head)] = head
        self._file.write(stored)
        return number

    def _add(self, pages: int, kind: int) -> int:
        number = self._pages
        self._pages += pages
        self._counts[kind] += pages
        return number

    def _meta(self, number: int, tree: tuple[int, ...], last_page: int) -> bytes:
        """Returns a meta page. The page's number is also the transaction's number: the first transaction is empty, and
        the second contains all data.
        """
        free = _DATABASE.pack(PAGE_BYTES, _INTEGER_KEYS, 0, 0, 0, 0, 0, _NO_PAGE)
        page = _HEADER.pack(number, 0, _META, 0, 0) + struct.pack("<IIQQ", _MAGIC, _VERSION, 0, self.bytes)
        page += free + _DATABASE.pack(*tree) + struct.pack("<QQ", last_page, number)
        return page.ljust(PAGE_BYTES, b"\0")


def check(content: Content) -> None:
    """Raises DataError if a key or a value is too large."""
    for name, value in content:
        size = len(_key(name))
        if size > _MOST_KEY_BYTES:
            raise DataError(
                f"pack: the key '{name}' has {size} bytes, but LMDB allows {_MOST_KEY_BYTES}; shorten the name of the "
                "file, or pack into another format",
                key=name,
            )
        if len(value) > _MOST_VALUE_BYTES:
            raise DataError(f"pack: the value of '{name}' has 4 GiB or more, which LMDB does not allow", key=name)


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def entry_bytes(name: str, size: int) -> int:
    """Returns about how many bytes an entry occupies: its node and offset, and the pages of a large value."""
    key = len(_key(name))
    if _is_big(key, size):
        return _NODE.size + key + 8 + 2 + -(-(_HEADER.size + size) // PAGE_BYTES) * PAGE_BYTES
    return _NODE.size + key + size + 2


def _is_big(key: int, value: int) -> bool:
    return _NODE.size + key + value > _MOST_NODE_BYTES


def _branch_node(key: bytes, page: int) -> bytes:
    return _even(_NODE.pack(page & 0xFFFFFFFF, page >> 32, len(key)) + key)


def _even(node: bytes) -> bytes:
    return node + b"\0" * (len(node) % 2)
