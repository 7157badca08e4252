# SPDX-License-Identifier: Apache-2.0
"""Tensors with more than their bytes are passed by value, without a descriptor that only a living worker could send."""

from __future__ import annotations

import os
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from loader_datasets import Numbers

from feedline import DataLoader
from feedline.torch_loader.workers.serialization import INLINE, LARGE

SIZES = [3, INLINE // 4 + 100, LARGE]  # in the frame, in the pack, in a separate block; times 4 bytes


class Meta(torch.Tensor):
    """Like MONAI's MetaTensor: created by as_subclass, with attributes besides the pixels."""

    def __new__(cls, data, affine=None):
        made = torch.as_tensor(data).as_subclass(cls)
        made.affine, made.meta = affine, {"spacing": 2}
        return made


class Boxes(torch.Tensor):
    """Like torchvision's tv_tensors: operations return plain tensors, and it has its own __torch_function__."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Slots(torch.Tensor):
    __slots__ = ("scale",)


class Own(torch.Tensor):
    """Defines how it is pickled."""

    def __reduce_ex__(self, protocol):
        return _own, (self.as_subclass(torch.Tensor), "said")


def _own(data, word):
    made = data.as_subclass(Own)
    made.word = word
    return made


class Wrapper(torch.Tensor):
    """Has no bytes of its own: another tensor in an attribute has them."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].inner)
        raise NotImplementedError(f"{func}")


def boxes(size):
    made = torch.arange(size, dtype=torch.float32).as_subclass(Boxes)
    made.format, made.canvas_size = "xyxy", (4, 5)
    return made


def slots(size):
    made = torch.ones(size).as_subclass(Slots)
    made.scale = 0.5
    return made


def with_attributes(size):
    made = torch.ones(size)
    made.note = "mine"
    return made


MADE = {
    "meta": lambda n: Meta(torch.arange(n, dtype=torch.float32), torch.eye(4)),
    "boxes": boxes,
    "slots": slots,
    "own": lambda n: torch.arange(n).as_subclass(Own),
    "wrapper": lambda n: Wrapper(torch.arange(n)),
    "parameter": lambda n: torch.nn.Parameter(torch.ones(n)),
    "fixed parameter": lambda n: torch.nn.Parameter(torch.ones(n), requires_grad=False),
    "buffer": lambda n: torch.nn.Buffer(torch.ones(n)),
    "gradient": lambda n: torch.ones(n, requires_grad=True),
    "gradient of a subclass": lambda n: Meta(torch.ones(n)).requires_grad_(),
    "attributes": with_attributes,
    "view of a subclass": lambda n: Meta(torch.arange(9 * n).reshape(3, 3 * n))[1, ::3],
    "coo": lambda n: torch.sparse_coo_tensor([[0, n - 1]], [1.0, 2.0], (n,)),
    "csr": lambda n: torch.eye(n if n < 10 else 300).to_sparse_csr(),
    "quantised": lambda n: torch.quantize_per_tensor(torch.rand(n), 0.1, 3, torch.quint8),
    "quantised by channel": lambda n: torch.quantize_per_channel(
        torch.rand(2, n), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "nested": lambda n: torch.nested.nested_tensor([torch.ones(n), torch.zeros(2 * n)]),
    "jagged": lambda n: torch.nested.nested_tensor([torch.ones(n), torch.zeros(2 * n)], layout=torch.jagged),
    "conjugate": lambda n: torch.conj(torch.full((n,), 1 + 2j)),
    "negative": lambda n: torch.conj(torch.full((n,), 1 + 2j)).imag,
    "storage": lambda n: torch.arange(n, dtype=torch.uint8).untyped_storage(),
    "typed storage": lambda n: torch.arange(n)._typed_storage(),
    "module": lambda n: torch.nn.Linear(n, 2),
    "empty": lambda n: Meta(torch.empty(0, n)),
    "meta device": lambda n: torch.empty(n, device="meta"),
}


class Made(Numbers):
    def __init__(self, name, size) -> None:
        super().__init__(4)
        self.name, self.size = name, size

    def __getitem__(self, index):
        return {"thing": MADE[self.name](self.size), "pid": os.getpid(), "plain": torch.full((self.size,), index)}


def first(batch):
    return batch[0]


@pytest.fixture
def no_descriptors(monkeypatch):
    """Workers are forked from here, and torch's sharing fails in them."""

    def refuse(thing):
        raise AssertionError(f"{type(thing).__name__} is sent by a descriptor of shared memory")

    for kind, reducer in list(ForkingPickler._extra_reducers.items()):
        of_torch = getattr(reducer, "__module__", "") == "torch.multiprocessing.reductions"
        if of_torch and kind is not torch.storage.TypedStorage:
            monkeypatch.setitem(ForkingPickler._extra_reducers, kind, refuse)
    monkeypatch.setattr("torch.multiprocessing.reductions.reduce_tensor", refuse)
    monkeypatch.setattr("torch.multiprocessing.reductions.reduce_storage", refuse)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MADE)
def test_every_kind_of_tensor_crosses_by_value(name, size, no_descriptors):
    torch.manual_seed(1)
    batches = list(DataLoader(Made(name, size), num_workers=1, collate_fn=first))
    torch.manual_seed(1)
    expected = MADE[name](size)
    for i, batch in enumerate(batches):
        thing = batch["thing"]
        assert type(thing) is type(expected) and batch["pid"] != os.getpid()
        assert batch["plain"].tolist() == [i] * size
        if isinstance(expected, torch.Tensor):
            assert thing.requires_grad == expected.requires_grad and thing.layout == expected.layout
            assert thing.dtype == expected.dtype and (expected.is_nested or thing.shape == expected.shape)
        if name not in ("module", "quantised", "quantised by channel", "meta device", "wrapper"):
            assert_same_values(thing, expected)


def assert_same_values(thing, expected):
    if isinstance(thing, torch.storage.TypedStorage):
        assert thing.dtype == expected.dtype
        thing, expected = thing._untyped_storage, expected._untyped_storage
    if isinstance(thing, torch.UntypedStorage):  # whose own tolist() takes seconds
        thing, expected = (torch.empty(0, dtype=torch.uint8).set_(one) for one in (thing, expected))
    if thing.is_nested:
        thing, expected = torch.cat(thing.unbind()), torch.cat(expected.unbind())
    if thing.layout is torch.sparse_coo:
        thing, expected = thing.to_dense(), expected.to_dense()
    if thing.layout is torch.sparse_csr:
        thing, expected = thing.values(), expected.values()
    assert thing.detach().as_subclass(torch.Tensor).tolist() == expected.detach().as_subclass(torch.Tensor).tolist()


def test_attributes_come_along(no_descriptors):
    got = {name: next(iter(DataLoader(Made(name, 5), num_workers=1, collate_fn=first)))["thing"] for name in MADE}
    assert got["meta"].affine.tolist() == torch.eye(4).tolist() and got["meta"].meta == {"spacing": 2}
    assert (got["boxes"].format, got["boxes"].canvas_size) == ("xyxy", (4, 5))
    assert got["slots"].scale == 0.5 and got["attributes"].note == "mine" and got["own"].word == "said"
    assert got["wrapper"].inner.tolist() == [0, 1, 2, 3, 4]
    assert isinstance(got["parameter"], torch.nn.Parameter) and isinstance(got["buffer"], torch.nn.Buffer)
    assert got["conjugate"].is_conj() and got["gradient of a subclass"].requires_grad
    assert got["quantised"].q_scale() == pytest.approx(0.1)


@pytest.mark.parametrize("size", SIZES)
def test_subclasses_are_in_the_ring_as_plain_tensors_do(size, no_descriptors):
    loader = DataLoader(Made("meta", size), num_workers=1, collate_fn=first)
    iterator = iter(loader)
    held = [next(iterator)["thing"] for _ in range(2)]
    in_blocks = loader.stats()["bytes_held"]
    assert in_blocks >= 2 * 4 * size if 4 * size > INLINE else in_blocks == 0
    held[0] += 1  # and is writable
    del held, iterator


def test_a_view_brings_its_own_bytes_and_not_those_it_looks_at(no_descriptors):
    loader = DataLoader(Views(), num_workers=1, collate_fn=first)
    iterator = iter(loader)
    view = next(iterator)
    assert type(view) is Meta and view.tolist() == [1.0] * 100
    assert loader.stats()["bytes_held"] == 0, "it is small enough for the message"
    del iterator


class Views(Numbers):
    def __getitem__(self, index):
        return Meta(torch.ones(1 << 22))[:100]


def test_collating_subclasses_makes_no_shared_memory_of_torchs(monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("a file in /dev/shm")

    monkeypatch.setattr(torch.UntypedStorage, "_new_shared", refuse)
    batch = next(iter(DataLoader(Only("meta", 50_000), batch_size=4, num_workers=1)))
    expected = next(iter(DataLoader(Only("meta", 50_000), batch_size=4)))
    assert type(batch) is type(expected) is Meta and torch.equal(batch, expected)


class Only(Made):
    def __getitem__(self, index):
        return super().__getitem__(index)["thing"]


def test_a_tensor_inside_a_graph_is_refused_as_torch_does():
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader(Graph(), num_workers=1, collate_fn=first))


class Graph(Numbers):
    def __getitem__(self, index):
        return torch.ones(2, requires_grad=True) * 2


def test_a_batch_is_whole_when_its_worker_is_long_gone():
    loader = DataLoader(Made("meta", 100), num_workers=1, collate_fn=first, prefetch_factor=4)
    iterator = iter(loader)
    next(iterator)
    while len(iterator._worker_group._ready) < 3:
        event = iterator._worker_group.receive(1.0)
        iterator._worker_group._ready.appendleft(event) if event is not None else None
        iterator._worker_group._drain(0)
    for process in iterator._workers:
        process.kill()
        process.join()
    assert [next(iterator)["thing"].affine.shape for _ in range(3)] == [(4, 4)] * 3
    del iterator
