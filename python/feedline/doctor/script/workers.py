# SPDX-License-Identifier: Apache-2.0
"""The code in a script that workers would run, and the objects that would be sent to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .facts import CodeLocation
from .loaders import Functions, call_of, is_loader
from .values import Names, calls_in, keyword

_POOLS = (
    *("multiprocessing.Pool", "multiprocessing.Process", "multiprocessing.pool.Pool", "torch.multiprocessing.Pool"),
    *("torch.multiprocessing.Process", "torch.multiprocessing.spawn", "concurrent.futures.ProcessPoolExecutor"),
    *("concurrent.futures.process.ProcessPoolExecutor", "multiprocessing.Manager"),
)
_NETWORK = (
    *("requests.get", "requests.post", "requests.request", "urllib.request.urlopen", "urllib.request.urlretrieve"),
    *("httpx.get", "httpx.post", "socket.create_connection"),
)
_VIDEO = (
    *("cv2.VideoCapture", "decord.VideoReader", "decord.VideoLoader", "av.open", "torchvision.io.read_video"),
    *("torchvision.io.VideoReader", "torchcodec.decoders.VideoDecoder", "imageio.get_reader", "imageio.mimread"),
    *("moviepy.editor.VideoFileClip", "moviepy.VideoFileClip", "skvideo.io.vread", "mediapy.read_video"),
)
_HELD = {
    **dict.fromkeys(("sqlite3.connect", "psycopg2.connect", "psycopg.connect", "pymysql.connect"), "a connection"),
    **dict.fromkeys(("redis.Redis", "redis.StrictRedis", "pymongo.MongoClient", "boto3.client"), "a connection"),
    **dict.fromkeys(("mysql.connector.connect", "requests.Session", "socket.socket", "boto3.resource"), "a connection"),
    **dict.fromkeys(("threading.Lock", "threading.RLock", "threading.Thread", "queue.Queue"), "a lock"),
    **dict.fromkeys(("open", "io.open", "h5py.File", "lmdb.open", "tarfile.open", "zipfile.ZipFile"), "an open file"),
}
_RUN = ("__getitem__", "__getitems__", "__iter__", "__next__")
_GIVEN = ("collate_fn", "worker_init_fn")
Held = list[CodeLocation]
_TRANSFORMS = ("transform", "target_transform", "transforms", *_GIVEN)


def datasets_of(tree: ast.Module, names: Names) -> list[ast.ClassDef]:
    """Returns classes that are datasets, by their bases or methods."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and (
            any(names.dotted(base).endswith(("Dataset", "Folder")) for base in node.bases)
            or any(isinstance(part, ast.FunctionDef) and part.name == "__getitem__" for part in node.body)
        )
    ]


def given_to_loaders(tree: ast.Module, names: Names) -> list[ast.expr]:
    """Returns other functions that workers call: collate and init functions."""
    given = [keyword(call, name) for call in calls_in(tree) if is_loader(names, call) for name in _GIVEN]
    return [one for one in given if one is not None]


def run_by_workers(
    datasets: list[ast.ClassDef], given: list[ast.AST], names: Names, functions: Functions
) -> list[ast.AST]:
    """Returns the datasets' methods that workers run, functions passed to a loader (`given`), and all functions that
    these call.
    """
    waiting: list[ast.AST] = [*given]
    for dataset in datasets:
        waiting += [part for part in dataset.body if isinstance(part, ast.FunctionDef) and part.name in _RUN]
    found: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.append(node)
        for call in calls_in(node):
            called = call.func.attr if _is_of_self(call.func) else names.dotted(call.func)  # type: ignore[attr-defined]
            if called in functions:
                waiting.append(functions[called])
    return found


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def pools_in(bodies: list[ast.AST], names: Names) -> Iterator[CodeLocation]:
    for call in _calls(bodies):
        name = names.dotted(call.func)
        if name in _POOLS or (name.endswith(".Pool") and "get_context" in ast.unparse(call.func)):
            yield CodeLocation(call.lineno, name)
        elif is_loader(names, call) and (call_of(names, call).workers or 0) > 0:
            yield CodeLocation(call.lineno, "DataLoader")


def network_in(bodies: list[ast.AST], names: Names) -> Iterator[CodeLocation]:
    return (
        CodeLocation(call.lineno, names.dotted(call.func))
        for call in _calls(bodies)
        if names.dotted(call.func) in _NETWORK
    )


def video_in(bodies: list[ast.AST], names: Names) -> Iterator[CodeLocation]:
    return (
        CodeLocation(call.lineno, names.dotted(call.func))
        for call in _calls(bodies)
        if names.dotted(call.func) in _VIDEO
    )


def cuda_in(bodies: list[ast.AST], names: Names) -> Iterator[CodeLocation]:
    for call in _calls(bodies):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        target = keyword(call, "device") or (call.args[0] if method == "to" and call.args else None)
        if (method == "cuda" and not names.dotted(call.func).startswith("torch.")) or names.is_cuda(target):
            yield CodeLocation(call.lineno, f".{method}()" if method in ("cuda", "to") else names.dotted(call.func))


def held_by(datasets: list[ast.ClassDef], names: Names) -> Iterator[CodeLocation]:
    """Yields objects that ``__init__`` stores in ``self``; skips classes that define their own pickling."""
    for dataset in datasets:
        methods = {part.name: part for part in dataset.body if isinstance(part, ast.FunctionDef)}
        if "__getstate__" in methods or "__reduce__" in methods or "__init__" not in methods:
            continue
        for node in ast.walk(methods["__init__"]):
            if isinstance(node, ast.Assign) and any(_is_of_self(target) for target in node.targets):
                name = names.dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
                if name in _HELD:
                    yield CodeLocation(node.lineno, f"{_HELD[name]} ({name})")


def unpicklable_in(tree: ast.Module, names: Names) -> Iterator[CodeLocation]:
    """Yields lambdas and local functions that are passed to loaders and datasets and that workers call."""
    local = {
        inner.name
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(outer)
        if inner is not outer and isinstance(inner, ast.FunctionDef | ast.ClassDef)
    }
    for call in calls_in(tree):
        if names.dotted(call.func).endswith("transforms.Lambda"):
            yield from (CodeLocation(one.lineno, "a lambda") for one in call.args if isinstance(one, ast.Lambda))
        for given in call.keywords:
            if given.arg not in _TRANSFORMS:
                continue
            value = names.bound(given.value)
            if isinstance(value, ast.Lambda):
                yield CodeLocation(given.value.lineno, f"{given.arg}=lambda")
            elif isinstance(value, ast.Name) and value.id in local:
                yield CodeLocation(given.value.lineno, f"{given.arg}={value.id}, which is defined in a function")


def _calls(bodies: list[ast.AST]) -> Iterator[ast.Call]:
    return (call for body in bodies for call in calls_in(body))
