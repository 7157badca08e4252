# SPDX-License-Identifier: Apache-2.0
"""Reads a script into facts."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from .facts import UNKNOWN, CodeLocation, LoaderCall, Script
from .growing_caches import growing_in
from .loaders import Functions, Named, call_of, functions_of, is_loader, loaders_behind, loops_of, names_of_loaders
from .local_imports import read_local_imports
from .values import Names, calls_in, keyword
from .workers import (
    cuda_in,
    datasets_of,
    given_to_loaders,
    held_by,
    network_in,
    pools_in,
    run_by_workers,
    unpicklable_in,
    video_in,
)

_MOST_BYTES = 4 << 20
_RANKS = ("torch.distributed.init_process_group", "torch.nn.parallel.DistributedDataParallel")
_SHARDERS = ("DistributedSampler", "split_by_node", "split_dataset_by_node", "get_rank", "RandomSamplerWithRank")
_FRAMEWORKS = ("accelerate", "lightning", "pytorch_lightning", "transformers", "ignite", "webdataset", "composer")
_CROPS = ("RandomResizedCrop", "CenterCrop", "RandomCrop")
_FLOAT_RGB = 3 * 4


def read(path: str, arguments: Sequence[str] = (), cpus: int = 1) -> Script:
    """Returns the facts about a file. If the file cannot be read, only `problem` is set.

    Args:
        arguments: the script's command-line arguments.
        cpus: the machine's number of CPUs, for scripts that count the CPUs.
    """
    try:
        data = Path(path).read_bytes()
        if len(data) > _MOST_BYTES:
            return Script(path, problem=f"{path} is larger than {_MOST_BYTES >> 20} MiB")
        with warnings.catch_warnings():  # the run itself will print these
            warnings.simplefilter("ignore")
            tree = ast.parse(data, path)
        return _facts(path, tree, arguments, cpus)
    except OSError as error:
        return Script(path, problem=f"{path}: {error.strerror}")
    except SyntaxError as error:
        return Script(path, problem=f"{path}, line {error.lineno or 0}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Script(path, problem=f"{path} cannot be parsed as Python: {type(error).__name__}")


def _facts(path: str, tree: ast.Module, arguments: Sequence[str], cpus: int) -> Script:
    names, functions = Names(tree, arguments, cpus), functions_of(tree)
    named = names_of_loaders(tree, names, functions)
    datasets, local_imports = datasets_of(tree, names), read_local_imports(path, tree, names, cpus)
    given = [
        functions[one.id] for one in given_to_loaders(tree, names) if isinstance(one, ast.Name) and one.id in functions
    ]
    bodies = run_by_workers(datasets, list(given), names, functions)
    calls = [call_of(names, call) for call in calls_in(tree) if is_loader(names, call)]
    unknown = [call.line for call in calls if call.workers is None]
    lines = ", ".join(map(str, unknown))
    return Script(
        path,
        loaders=tuple(sorted(calls, key=lambda call: call.line)),
        loops=tuple(loops_of(tree, names, named)),
        has_guard=any(_is_guard(node) for node in tree.body),
        unguarded=_unguarded(tree, names, functions, named),
        start_method=_start_method(tree, names),
        pools=_in_order(pools_in(bodies, names)) + local_imports.pools,
        cuda_in_workers=_in_order(cuda_in(bodies, names)) + local_imports.cuda,
        network_in_workers=_in_order(network_in(bodies, names)) + local_imports.network,
        video_in_workers=_in_order(video_in(bodies, names)) + local_imports.video,
        held=_in_order(held_by(datasets, names)) + local_imports.held,
        growing=_in_order(growing_in(datasets, names)) + local_imports.growing,
        unpicklable=_in_order(unpicklable_in(tree, names)),
        iterators_in_loops=_in_order(_iterators_in_loops(tree, names, named)),
        old_amp=_in_order(_old_amp(tree, names)),
        renamed=_in_order(_renamed(tree)),
        distributed=_distributed(tree, names),
        shards_itself=_shards_itself(tree, names),
        sampler_line=_sampler_line(tree, names, calls),
        sample_bytes=_sample_bytes(tree, names),
        notes=(
            *([f"num_workers of the DataLoader in line {lines} of {path}: known only at run time"] if unknown else []),
            *(
                f"the DataLoader in {location.at}: only loaders created by the script itself are examined"
                for location in local_imports.loaders
            ),
            *local_imports.unread,
        ),
    )


def _in_order(places: Iterator[CodeLocation]) -> tuple[CodeLocation, ...]:
    return tuple(sorted(set(places), key=lambda one: (one.line, one.what)))


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def _unguarded(tree: ast.Module, names: Names, functions: Functions, named: Named) -> int | None:
    """Returns the first module-level statement that starts loading, directly or through functions it calls."""
    loading = {name for name, node in functions.items() if _loads(node, names, named)}
    for _ in functions:
        more = {
            name
            for name, node in functions.items()
            if any(names.dotted(call.func).rpartition(".")[2] in loading for call in calls_in(node))
        }
        if more <= loading:
            break
        loading |= more
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or _is_guard(node):
            continue
        called = any(names.dotted(call.func).rpartition(".")[2] in loading for call in calls_in(node))
        if called or _loads(node, names, named):
            return node.lineno
    return None


def _loads(node: ast.AST, names: Names, named: Named) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.For) and loaders_behind(one.iter, names, named):
            return True
        if isinstance(one, ast.Call) and names.dotted(one.func) == "iter" and loaders_behind(one, names, named):
            return True
    return False


def _start_method(tree: ast.Module, names: Names) -> str | None:
    for call in calls_in(tree):
        name = names.dotted(call.func)
        node = keyword(call, "multiprocessing_context") if is_loader(names, call) else None
        if name.endswith(("set_start_method", "get_context")):
            node = call.args[0] if call.args else keyword(call, "method")
        value = names.value(node)
        if value in ("spawn", "forkserver", "fork"):
            return str(value)
    return None


def _iterators_in_loops(tree: ast.Module, names: Names, named: Named) -> Iterator[CodeLocation]:
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        for call in (call for part in loop.body for call in calls_in(part)):
            inner = call.args[0] if names.dotted(call.func) == "next" and call.args else None
            if not (isinstance(inner, ast.Call) and names.dotted(inner.func) == "iter"):
                continue
            if any(one.workers != 0 for one in loaders_behind(inner, names, named)):
                yield CodeLocation(call.lineno, ast.unparse(call))


def _old_amp(tree: ast.Module, names: Names) -> Iterator[CodeLocation]:
    for call in calls_in(tree):
        name = names.dotted(call.func)
        if name.startswith("torch.cuda.amp."):
            yield CodeLocation(call.lineno, name)


def _renamed(tree: ast.Module) -> Iterator[CodeLocation]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("experimental_optimization.autotune"):
            yield CodeLocation(node.lineno, "experimental_optimization.autotune")


def _distributed(tree: ast.Module, names: Names) -> CodeLocation | None:
    for call in calls_in(tree):
        name = names.dotted(call.func)
        if name in _RANKS or name in (
            "DistributedDataParallel",
            "torch.nn.parallel.distributed.DistributedDataParallel",
        ):
            return CodeLocation(call.lineno, name.rpartition(".")[2])
    return None


def _shards_itself(tree: ast.Module, names: Names) -> bool:
    """Whether any part of the script may shard samples across ranks; if so, nothing is reported."""
    used = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    streams = any(
        names.dotted(base).endswith("IterableDataset")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    )
    return bool(_uses_framework(names) or used & {*_SHARDERS, "rank", "RANK"} or streams)


def _uses_framework(names: Names) -> bool:
    return not {name.partition(".")[0] for name in names.modules.values()}.isdisjoint(_FRAMEWORKS)


def _sampler_line(tree: ast.Module, names: Names, calls: list[LoaderCall]) -> int | None:
    """Returns the line of a shuffling DistributedSampler in a script that never calls set_epoch. Ignores scripts that
    use a framework or only Feedline's loaders, because both call set_epoch.
    """
    if _uses_framework(names) or all(call.is_feedline for call in calls):
        return None
    if any(isinstance(node, ast.Attribute) and node.attr == "set_epoch" for node in ast.walk(tree)):
        return None
    for call in calls_in(tree):
        if (
            names.dotted(call.func).endswith("DistributedSampler")
            and names.value(keyword(call, "shuffle")) is not False
        ):
            return call.lineno
    return None


def _sample_bytes(tree: ast.Module, names: Names) -> int | None:
    """Returns the size in bytes of an RGB float image in the largest crop, or None if there is no known crop."""
    sides = []
    for call in calls_in(tree):
        if names.dotted(call.func).rpartition(".")[2] in _CROPS:
            node = call.args[0] if call.args else keyword(call, "size")
            parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node, node]
            values = [names.value(part) for part in parts]
            if len(values) != 2 or any(value is UNKNOWN or not isinstance(value, int) for value in values):
                return None
            sides.append(values[0] * values[1])
    return max(sides) * _FLOAT_RGB if sides else None
