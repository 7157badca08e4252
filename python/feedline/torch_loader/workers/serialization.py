# SPDX-License-Identifier: Apache-2.0
"""Batches as messages. The structure is pickled; the data of tensors and arrays is packed once, separately.

    frame:  | length u64 | task i64 | kind u32 | blocks u32 | buffers u32 | meta u32 |
            | (start u64, size u64) per block | (part u64, offset u64, size u64) per buffer | meta | pad | pack |

A message of at most INLINE bytes consists of only the frame: a batch of a few scalars uses no shared memory, so it
needs no block that must be freed. In a larger message, the pack is in a block of the ring, and every tensor of at least
LARGE bytes has its own block, which is freed with the tensor. Part 0 is the pack, and part k the k-th block.
"""

from __future__ import annotations

import copyreg
import ctypes
import io
import pickle
import struct
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch.multiprocessing import reductions

from .ring import HEADER, Block
from .ring_writer import RingWriter

HEAD = struct.Struct("<QqIIII")
_BLOCK = struct.Struct("<QQ")
_BUFFER = struct.Struct("<QQQ")
_ALIGN = 64  # a cache line
INLINE = 32 << 10  # half of the smallest usual pipe: a worker never blocks when it writes one
LARGE = 64 << 10

_DTYPES: list[torch.dtype] = [
    getattr(torch, name)
    for name in [
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "bool",
        "uint16",
        "uint32",
        "uint64",
        "float8_e4m3fn",
        "float8_e5m2",
    ]
    if hasattr(torch, name)
]
_DTYPE_INDEX = {dtype: i for i, dtype in enumerate(_DTYPES)}

_decoding = threading.local()


def _tensor(
    part: int, offset: int, dtype: int, shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> torch.Tensor:
    count = 1
    for extent in shape:
        count *= extent
    if count == 0:
        return torch.empty(shape, dtype=_DTYPES[dtype])
    tensor = torch.frombuffer(_decoding.parts[part], dtype=_DTYPES[dtype], count=count, offset=offset)
    return tensor.view(shape) if strides is None else tensor.as_strided(shape, strides)


def _storage(part: int, offset: int, size: int) -> torch.UntypedStorage:
    raw = torch.frombuffer(_decoding.parts[part], dtype=torch.uint8, count=size, offset=offset)
    return raw.untyped_storage()


def _retyped(tensor: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    return tensor.requires_grad_() if requires_grad else tensor


def is_plain(tensor: torch.Tensor) -> bool:
    """Returns whether data, dtype and shape describe the tensor completely."""
    return (
        type(tensor) is torch.Tensor
        and not tensor.is_nested
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.requires_grad
        and tensor.dtype in _DTYPE_INDEX
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.is_quantized
        and not getattr(tensor, "__dict__", None)
    )


def ring_tensor(block: Block, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(block, dtype=dtype).view(shape)


class Encoder:
    """Encodes batches as frames. Without a ring, all data is inline: this is used for indices, errors, and tests with
    threads.
    """

    def __init__(self, writer: RingWriter | None = None) -> None:
        self._writer = writer

    def encode(self, task: int, kind: int, value: Any) -> list[bytes]:
        """Returns the parts of a frame, to be written one after the other."""
        message = _Message(self._writer)
        meta = message.pickled(value)
        return message.frame(task, kind, meta)


class _Message:
    def __init__(self, writer: RingWriter | None) -> None:
        self._writer = writer
        self._pieces: list[tuple[int, int, int, Any]] = []  # (offset, address, size, owner) of data for the pack
        self._size = 0
        self._buffers: list[tuple[int, int, int]] = []
        self._blocks: list[Block | int] = []  # a block, or the start of one that was allocated by collating
        self._starts: dict[int, int] = {}

    def pickled(self, value: Any) -> bytes:
        stream = io.BytesIO()
        pickler = pickle.Pickler(stream, protocol=5, buffer_callback=self._add_buffer)
        pickler.dispatch_table = _Dispatch(self)
        pickler.dump(value)
        return stream.getvalue()

    def frame(self, task: int, kind: int, meta: bytes) -> list[bytes]:
        pack_in_frame = self._writer is None or (self._size + len(meta) <= INLINE)
        if not pack_in_frame and len(meta) > INLINE:
            # Too much structure for the pipe: it becomes the first buffer of the pack.
            self._buffers.append((0, self._place(_address(meta), len(meta), meta), len(meta)))
            meta = b""
        pack = None
        if self._size and not pack_in_frame:
            assert self._writer is not None
            pack = self._writer.allocate(self._size)
            address = pack.ctypes.data
            for offset, source, size, _ in self._pieces:
                ctypes.memmove(address + offset, source, size)
        table = [] if self._writer is None else self._send(self._writer, pack)
        lists = b"".join(_BLOCK.pack(*entry) for entry in table) + b"".join(_BUFFER.pack(*b) for b in self._buffers)
        body = [lists, meta]
        if pack_in_frame and self._size:
            body.append(bytes(-(HEAD.size + len(lists) + len(meta)) % _ALIGN))
            at = 0
            for offset, source, size, _ in self._pieces:
                if offset > at:
                    body.append(bytes(offset - at))
                body.append(ctypes.string_at(source, size))
                at = offset + size
        length = sum(map(len, body))
        return [HEAD.pack(length, task, kind, len(table), len(self._buffers), len(meta)), *body]

    def _send(self, writer: RingWriter, pack: Block | None) -> list[tuple[int, int]]:
        """Returns (start, size) of the pack, or zeros if there is no pack, and of every block."""
        pack_start = None if pack is None else writer.start_of(pack)
        table = [(0, 0) if pack_start is None else (pack_start, writer.send(pack_start))]
        for block in self._blocks:
            start = writer.start_of(block) if isinstance(block, Block) else block
            table.append((start, writer.send(start)))
        return table

    def _place(self, address: int, size: int, owner: Any) -> int:
        offset = -(-self._size // _ALIGN) * _ALIGN
        self._pieces.append((offset, address, size, owner))
        self._size = offset + size
        return offset

    def reduce_tensor(self, tensor: torch.Tensor) -> Any:
        if not is_plain(tensor):
            return _reduce_special(tensor)
        strides = None
        if not tensor.is_contiguous():
            strides = tensor.stride()
            if not _is_dense(tensor):
                tensor, strides = tensor.contiguous(), None
        size = tensor.numel() * tensor.element_size()
        dtype = _DTYPE_INDEX[tensor.dtype]
        if size == 0:
            return _tensor, (0, 0, dtype, tuple(tensor.shape), None)
        address = tensor.data_ptr()
        part, offset = self._part_of(address, size, tensor)
        return _tensor, (part, offset, dtype, tuple(tensor.shape), strides)

    def reduce_storage(self, storage: torch.UntypedStorage) -> Any:
        size = storage.nbytes()
        if storage.device.type != "cpu":
            return _reduce_as_torch(storage)
        if size == 0:
            return torch.UntypedStorage, (0,)
        return _storage, (*self._part_of(storage.data_ptr(), size, storage), size)

    def _part_of(self, address: int, size: int, owner: Any) -> tuple[int, int]:
        writer = self._writer
        if writer is None:
            return 0, self._place(address, size, owner)
        start = writer.find(address, size)
        if start is not None:
            part = self._starts.get(start)
            if part is None:
                self._blocks.append(start)
                part = self._starts[start] = len(self._blocks)
                self._pieces.append((0, 0, 0, owner))  # keeps the block's tensor alive until it is sent
            return part, address - writer.address - start - HEADER
        if size < LARGE:
            return 0, self._place(address, size, owner)
        block = writer.allocate(size)
        ctypes.memmove(block.ctypes.data, address, size)
        self._blocks.append(block)
        return len(self._blocks), 0

    def _add_buffer(self, buffer: pickle.PickleBuffer) -> Any:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous: stays in the pickle
            return True
        if raw.readonly or raw.nbytes == 0:
            return True  # read-only arrays stay read-only
        part, offset = self._part_of(_address(raw), raw.nbytes, raw)
        self._buffers.append((part, offset, raw.nbytes))
        return False


class _Dispatch(dict):  # type: ignore[type-arg]
    """The reducers of the standard library's and torch's multiprocessing, with Feedline's own reducers for tensors and
    storages.

    torch's reducers send descriptors of shared memory, which only a living worker can pass on.
    """

    def __init__(self, message: _Message) -> None:
        super().__init__()
        self[torch.Tensor] = message.reduce_tensor
        self[torch.UntypedStorage] = message.reduce_storage

    def __missing__(self, key: type) -> Any:
        reducer = ForkingPickler._extra_reducers.get(key)  # type: ignore[attr-defined]
        if issubclass(key, torch.Tensor) and reducer in (None, reductions.reduce_tensor):
            reducer = _reduce_special
        if reducer is None:
            reducer = copyreg.dispatch_table[key]
        self[key] = reducer
        return reducer


def _reduce_special(tensor: torch.Tensor) -> Any:
    """Reduces a tensor subclass or view to an ordinary tensor and a function that restores the original."""
    kind = type(tensor)
    if tensor.device.type not in ("cpu", "meta") and kind in ForkingPickler._extra_reducers:  # type: ignore[attr-defined]
        return _reduce_as_torch(tensor)
    if kind in (torch.Tensor, torch.nn.Parameter) and tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    # Subclasses with their own rules for pickling or for tensor functions use these.
    usual = kind.__reduce_ex__ is torch.Tensor.__reduce_ex__
    if usual and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        with torch._C.DisableTorchFunctionSubclass():
            is_dense = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
            plain = tensor.detach().as_subclass(torch.Tensor) if is_dense else None
        if plain is not None and is_plain(plain):
            state = torch._utils._get_obj_state(tensor)
            return _rebuild_from_type, (_retyped, kind, (plain, tensor.requires_grad), state)
    return tensor.__reduce_ex__(5)


_rebuild_from_type: Any = torch._tensor._rebuild_from_type_v2  # type: ignore[attr-defined]


def _reduce_as_torch(thing: Any) -> Any:
    return ForkingPickler._extra_reducers[type(thing)](thing)  # type: ignore[attr-defined]


def _address(buffer: Any) -> int:
    return np.frombuffer(buffer, dtype=np.uint8, count=1).ctypes.data


def _is_dense(tensor: torch.Tensor) -> bool:
    expected = 1
    for stride, extent in sorted((s, e) for s, e in zip(tensor.stride(), tensor.shape, strict=True) if e != 1):
        if stride != expected:
            return False
        expected *= extent
    return True


class Frame:
    """A received message. The process that decodes a frame owns its blocks. A frame that is not decoded must be
    dropped.
    """

    __slots__ = ("_body", "_buffers", "_meta", "_offsets", "_reader", "_worker", "kind", "task")

    def __init__(self, head: bytes | bytearray, body: bytearray, worker: int, reader: Any) -> None:
        _, self.task, self.kind, blocks, buffers, self._meta = HEAD.unpack(head)
        self._body, self._worker, self._reader = body, worker, reader
        self._offsets = [_BLOCK.unpack_from(body, i * _BLOCK.size) for i in range(blocks)]
        at = blocks * _BLOCK.size
        self._buffers = [_BUFFER.unpack_from(body, at + i * _BUFFER.size) for i in range(buffers)]

    def nbytes(self) -> int:
        """The size in bytes of the memory that the message uses until it is decoded."""
        return len(self._body) + sum(size for _, size in self._offsets)

    def decode(self) -> Any:
        at = len(self._offsets) * _BLOCK.size + len(self._buffers) * _BUFFER.size
        end = at + self._meta
        pack: Any = None
        blocks, self._offsets = self._offsets, []
        if not blocks or blocks[0][1] == 0:
            pack = memoryview(self._body)[end + (-(HEAD.size + end)) % _ALIGN :]
        parts = [pack if size == 0 else self._reader.open(self._worker, start, size) for start, size in blocks] or [
            pack
        ]
        buffers = [memoryview(parts[part])[offset : offset + size] for part, offset, size in self._buffers]
        meta: Any = memoryview(self._body)[at:end] if self._meta else buffers.pop()
        outer = getattr(_decoding, "parts", None)
        _decoding.parts = parts
        try:
            return pickle.loads(meta, buffers=buffers)
        finally:
            _decoding.parts = outer

    def occupied(self) -> list[tuple[int, int]]:
        return [(start, size) for start, size in self._offsets if size]

    def drop(self) -> None:
        for start, size in self.occupied():
            self._reader.release(self._worker, start, size)
        self._offsets = []
