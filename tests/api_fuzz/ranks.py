# SPDX-License-Identifier: Apache-2.0
"""Ways to use a native loader on several data-parallel ranks, one after another in this process."""

from __future__ import annotations

import collections
import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

import feedline

from .consumers import Setting, Wrong, flat, rows

REPEATING = "repeat", "buckets", "max_tokens", "drop_last"  # options under which rows are lost or repeated
MESHES = (((2, 2), ("dp", "tp")), ((2, 3), ("pp", "dp")), ((2, 2, 2), ("replicate", "shard", "cp")), ((3,), ("dp",)))
DATA_PARALLEL = ("dp", "replicate", "shard")


def ranks(setting: Setting) -> None:
    """The rows of all ranks together."""
    world = setting.rng.choice((2, 3, 5, 30))
    found: list[list[int]] = []
    for rank in range(world):
        try:
            loader = setting.loader(rank=rank, world_size=world, epochs=1)
        except feedline.ConfigError:
            return  # more ranks than samples
        with loader:
            found.append(flat(rows(setting, loader, iter(loader))))
    check_rows(setting, found)


def check_rows(setting: Setting, found: list[list[int]]) -> None:
    """`found`: the rows of each rank."""
    if not every_row_once(setting):
        return
    world, got, uneven = len(found), collections.Counter(itertools.chain(*found)), setting.options.get("uneven", "pad")
    if uneven == "exact" and got != collections.Counter(setting.ids):
        raise Wrong(f"{world} ranks, exact: {got}")
    if uneven != "exact" and len({len(one) for one in found}) > 1:
        raise Wrong(f"{world} ranks, {uneven}: {[len(one) for one in found]} rows")
    if uneven == "pad" and set(got) != set(setting.ids):
        raise Wrong(f"{world} ranks, pad: lost {set(setting.ids) - set(got)}")
    if uneven == "drop" and any(count > 1 for count in got.values()):
        raise Wrong(f"{world} ranks, drop: rows twice {got}")


def every_row_once(setting: Setting) -> bool:
    special = set(REPEATING) & set(setting.options) or setting.options.get("mix_mode") == "half"
    return not special and not setting.source.damaged and setting.source.every


@contextmanager
def rank_of_mesh(rank: int, shape: tuple[int, ...], names: tuple[str, ...]) -> Iterator[Any]:
    """A DeviceMesh as rank `rank` has it, in a process group without other processes."""
    world = 1
    for length in shape:
        world *= length
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        yield init_device_mesh("cpu", shape, mesh_dim_names=names)
    finally:
        torch.distributed.destroy_process_group()
        gc.collect()  # a mesh that still exists is an error for loaders without one


def meshes(setting: Setting) -> None:
    """Peers of one data-parallel rank get the same rows, and all ranks together every row."""
    shape, names = setting.rng.choice(MESHES)
    dims = tuple(name for name in names if name in DATA_PARALLEL)
    given = dims if len(dims) > 1 else setting.rng.choice((dims, dims[0]))
    found: dict[tuple[int, ...], list[int]] = {}
    for rank, coordinates in enumerate(itertools.product(*map(range, shape))):
        own = tuple(one for one, name in zip(coordinates, names, strict=True) if name in dims)
        with rank_of_mesh(rank, shape, names) as mesh:
            got = _rows_on(setting, mesh, given)
            del mesh
        if got is None:
            return  # refused
        if found.setdefault(own, got) != got and setting.options.get("in_order", True):
            raise Wrong(f"mesh {shape} {names}: rank {rank} has {got}, and its peer {found[own]}")
    check_rows(setting, list(found.values()))


def _rows_on(setting: Setting, mesh: Any, dp: Any) -> list[int] | None:
    try:
        loader = setting.loader(mesh=mesh, dp=dp, epochs=1)
    except feedline.ConfigError:
        return None
    with loader:
        return flat(rows(setting, loader, iter(loader)))


def moved_state(setting: Setting) -> None:
    """Other ranks continue from one rank's state; together they deliver the remaining rows."""
    before, after = setting.rng.choice(((1, 2), (2, 1), (2, 3), (3, 2), (2, 2), (4, 1)))
    steps = setting.rng.randrange(5)
    taken: list[list[int]] = []
    states: list[dict[str, Any]] = []
    for rank in range(before):
        made = _rank(setting, rank, before)
        if made is None:
            return
        with made as loader:
            taken.append(flat(rows(setting, loader, iter(loader), steps)))
            states.append(loader.state_dict())
    in_order = setting.options.get("in_order", True)
    if in_order and not setting.source.damaged and states[1:] != states[:-1]:
        raise Wrong(f"states of ranks that have each delivered {steps} batches: {states}")
    rest: list[list[int]] = []
    for rank in range(after):
        made = _rank(setting, rank, after)
        if made is None:
            return
        with made as loader:
            try:
                loader.load_state_dict(setting.rng.choice(states))
            except feedline.ConfigError:
                return  # other buckets, or a position inside a batch that only as many ranks can have
            rest.append(flat(rows(setting, loader, iter(loader))))
    check_moved(setting, taken, rest, in_order)


def check_moved(setting: Setting, taken: list[list[int]], rest: list[list[int]], in_order: bool) -> None:
    if not every_row_once(setting) or not in_order:
        return
    seen = collections.Counter(itertools.chain(*taken))
    got = seen + collections.Counter(itertools.chain(*rest))
    uneven = setting.options.get("uneven", "pad")
    dropped = len(setting.ids) % len(taken) if uneven == "drop" else 0
    if seen.total() >= len(setting.ids) - dropped:
        return  # the state is that of the next epoch
    where = f"{len(taken)} ranks, then {len(rest)}, {uneven}: {taken}, {rest}"
    lost, twice = set(setting.ids) - set(got), (got - collections.Counter(setting.ids)).total()
    most_twice = len(taken) + len(rest) - 2 if uneven == "pad" else 0
    most_lost = len(taken) + len(rest) - 2 if uneven == "drop" else 0
    if len(lost) > most_lost or twice > most_twice:
        raise Wrong(f"lost {lost}, {twice} repeated: {where}")


def _rank(setting: Setting, rank: int, world: int) -> feedline.Loader | None:
    try:
        return setting.loader(rank=rank, world_size=world, epochs=1)
    except feedline.ConfigError:
        return None


WAYS: dict[str, Callable[[Setting], None]] = {way.__name__: way for way in (ranks, meshes, moved_state)}
