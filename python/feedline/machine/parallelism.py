# SPDX-License-Identifier: Apache-2.0
"""Determines the data-parallel ranks of a DeviceMesh, and parallelism that other libraries have set up in this process.

All tensor, context and pipeline parallel peers of a data-parallel rank need the same rows. This module does not import
any of these libraries.
"""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ConfigError

# Names of a DeviceMesh's dimensions in torchtitan, Accelerate, DeepSpeed and torch's tutorials.
_DATA = frozenset(
    ("dp", "data", "data_parallel", "ddp", "fsdp", "hsdp", "batch", "dp_replicate", "dp_shard", "replicate", "shard")
)
_MODEL = frozenset(
    ("tp", "cp", "pp", "sp", "mp", "tensor", "context", "pipeline", "sequence", "model")
    + tuple(f"{kind}_parallel" for kind in ("tensor", "context", "pipeline", "sequence", "model"))
)


def coordinate(where: str, mesh: Any, dp: Any = None) -> tuple[int, int]:
    """Returns this process's data-parallel rank and world size in a ``DeviceMesh``.

    Args:
        where: the caller's name, for error messages.
        mesh: a ``torch.distributed.device_mesh.DeviceMesh`` that includes this process.
        dp: name or index of a dimension, or several; None for the dimensions with usual names for data parallelism.

    Raises:
        ConfigError: `mesh` is not a mesh, the dimension does not exist, or the data-parallel dimensions are ambiguous.
    """
    kind = _mesh_type()
    if kind is None or not isinstance(mesh, kind):
        raise ConfigError(f"{where}: mesh must be a torch.distributed DeviceMesh, not {type(mesh).__name__}")
    names = tuple(mesh.mesh_dim_names or ())
    if isinstance(dp, str) and names and dp not in names:
        mesh, names, dp = _flattened(where, mesh, dp), (dp,), None
        chosen: list[int] = [0]
    else:
        chosen = _default_dimensions(where, mesh, names) if dp is None else _dimensions(where, mesh, names, dp)
    coordinates = mesh.get_coordinate()
    if coordinates is None:
        raise ConfigError(f"{where}: this process is not part of the mesh {_shown(mesh)}; pass rank= and world_size=")
    rank, size = 0, 1
    for dimension in chosen:
        length = mesh.size(dimension)
        rank, size = rank * length + coordinates[dimension], size * length
    return rank, size


def unstated() -> str | None:
    """Describes parallelism in this process other than data parallelism, and the argument to pass; None if there is
    none.
    """
    return _accelerate() or _megatron() or _deepspeed() or _meshes()


def _mesh_type() -> Any:
    return getattr(sys.modules.get("torch.distributed.device_mesh"), "DeviceMesh", None)


def _shown(mesh: Any) -> str:
    shape = tuple(mesh.size(i) for i in range(mesh.ndim))
    return f"{shape} with the dimensions {tuple(mesh.mesh_dim_names)}" if mesh.mesh_dim_names else f"{shape}"


def _flattened(where: str, mesh: Any, name: str) -> Any:
    try:
        return mesh[name]  # made by _flatten()
    except (KeyError, RuntimeError, ValueError):
        raise ConfigError(f"{where}: dp={name!r} is not a dimension of the mesh {_shown(mesh)}") from None


def _default_dimensions(where: str, mesh: Any, names: Sequence[str]) -> list[int]:
    if mesh.ndim == 1 and (not names or names[0] not in _MODEL):
        return [0]
    if not names or not all(name in _DATA or name in _MODEL for name in names) or not _DATA.intersection(names):
        raise ConfigError(
            f"{where}: it is unclear which dimensions of the mesh {_shown(mesh)} are data parallel; name them, as in "
            'dp=("dp_replicate", "dp_shard")'
        )
    return [i for i, name in enumerate(names) if name in _DATA]


def _dimensions(where: str, mesh: Any, names: Sequence[str], dp: Any) -> list[int]:
    """Returns the dimensions in the mesh's order, independent of the order in `dp`."""
    wanted = [dp] if isinstance(dp, (str, int)) else list(dp) if isinstance(dp, (tuple, list)) else []
    found = set()
    for one in wanted:
        if isinstance(one, str) and one in names:
            found.add(names.index(one))
        elif isinstance(one, int) and not isinstance(one, bool) and 0 <= one < mesh.ndim:
            found.add(one)
        else:
            raise ConfigError(f"{where}: dp={one!r} is not a dimension of the mesh {_shown(mesh)}")
    if not wanted or len(found) != len(wanted):
        raise ConfigError(f"{where}: dp must be different dimensions of the mesh {_shown(mesh)}, not {dp!r}")
    return sorted(found)


def _accelerate() -> str | None:
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    shared = getattr(state, "_shared_state", None) or {}
    config = shared.get("parallelism_config")
    if config is None or getattr(config, "non_data_parallel_size", 1) == 1:
        return None
    sizes = ", ".join(f"{n}={getattr(config, n, 1)}" for n in ("tp_size", "cp_size", "sp_size"))
    if shared.get("device_mesh") is None:  # DeepSpeed's sequence parallelism makes its own groups
        return f"Accelerate's ParallelismConfig has {sizes}: pass rank= and world_size= of the data-parallel group"
    names = [n for n in shared["device_mesh"].mesh_dim_names if n in _DATA]
    line = f"mesh=accelerator.torch_device_mesh, dp={tuple(names)!r}" if names else "rank=0, world_size=1"
    return f"Accelerate's ParallelismConfig has {sizes}: pass {line}"


def _megatron() -> str | None:
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.is_initialized():
        return None
    size, world = state.get_data_parallel_world_size(), _world_size()
    if world in (None, size):
        return None
    return (
        f"megatron.core.parallel_state has {size} data-parallel ranks among {world} processes: pass "
        "rank=parallel_state.get_data_parallel_rank(), world_size=parallel_state.get_data_parallel_world_size()"
    )


def _deepspeed() -> str | None:
    groups = sys.modules.get("deepspeed.utils.groups")
    if groups is None or _world_size() is None:
        return None
    if getattr(groups, "mesh_device", None) is not None:
        if groups.mesh_device.size() == _along(groups.mesh_device, "data_parallel"):
            return None
        return 'DeepSpeed has a mesh: pass mesh=deepspeed.utils.groups.mesh_device, dp="data_parallel"'
    mpu = getattr(groups, "mpu", None)
    if mpu is not None and hasattr(mpu, "get_sequence_parallel_world_size"):
        peers, names = mpu.get_sequence_parallel_world_size(), "mpu.get_data_parallel_"
    elif mpu is not None and hasattr(mpu, "get_data_parallel_world_size"):
        peers, names = (_world_size() or 1) // mpu.get_data_parallel_world_size(), "mpu.get_data_parallel_"
    elif getattr(groups, "_TENSOR_MODEL_PARALLEL_GROUP", None) is not None:
        peers, names = groups.get_tensor_model_parallel_world_size(), "groups.get_data_parallel_"
    else:
        return None
    if peers == 1:
        return None
    prefix = f"deepspeed.utils.groups.{names.removeprefix('groups.')}"
    return (
        f"DeepSpeed's groups have {peers} ranks for each data-parallel rank: pass "
        f"rank={prefix}rank(), world_size={prefix}world_size()"
    )


def _along(mesh: Any, name: str) -> int:
    return int(mesh.size(list(mesh.mesh_dim_names).index(name)))


def _meshes() -> str | None:
    """Describes a DeviceMesh in this process that may have parallelism other than data parallelism; None if there is
    none. torch has no list of meshes, so the objects that the garbage collector tracks are searched.
    """
    if _world_size() in (None, 1):
        return None
    for mesh in _all_meshes():
        names = tuple(mesh.mesh_dim_names or ())
        lengths = [mesh.size(i) for i in range(mesh.ndim)]
        others = [i for i, n in enumerate(lengths) if n > 1 and (not names or names[i] not in _DATA)]
        if mesh.ndim == 1:  # another name: a flattened part of a mesh, which is itself among the objects
            others = [i for i in others if names and names[i] in _MODEL]
        elif not names and len(others) < 2:
            others = []
        if others and math.prod(lengths) > 1:
            data = tuple(name for name in names if name in _DATA)
            line = f"mesh=mesh, dp={data!r}" if data else "mesh=mesh, dp=NAMES of its data-parallel dimensions"
            if mesh.ndim == 1:
                line = "mesh= and dp= of the whole mesh, or rank=0, world_size=1 if it has no data-parallel dimension"
            return f"this process has a DeviceMesh {_shown(mesh)}: pass {line}"
    return None


def _all_meshes() -> Iterator[Any]:
    kind = _mesh_type()
    found = [mesh for mesh in gc.get_referrers(kind) if type(mesh) is kind] if kind is not None else []
    yield from sorted(found, key=lambda mesh: -mesh.ndim)  # a whole mesh before its parts


def _world_size() -> int | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_world_size())
