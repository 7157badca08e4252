# SPDX-License-Identifier: Apache-2.0
"""LD_LIBRARY_PATH puts another copy of a CUDA library before the environment's own."""

import os
from collections.abc import Iterator
from pathlib import Path

from ...reading.elf import linking_of
from ...rules import LOADED, Analysis, Check, Problems, page, problem

_STEMS = ("libcudnn", "libcublas", "libcublasLt", "libcudart", "libnccl", "libnvrtc", "libcusolver", "libcusparse")


def _evaluate(analysis: Analysis) -> Problems:
    own = dict(_own(analysis))
    searched = analysis.seen.variables.get("LD_LIBRARY_PATH", "").split(":")
    shadowed: dict[str, list[str]] = {}
    for folder in filter(None, searched):
        for name in sorted(own):
            other = os.path.join(folder, name)
            if os.path.exists(other) and not os.path.samefile(other, own[name]):
                shadowed.setdefault(folder, []).append(name)
    user = linking_of(analysis.seen.torch.folder / "lib/libtorch_cuda.so") if analysis.seen.torch else None
    if user is not None and user.rpath and not user.runpath:
        return  # DT_RPATH precedes LD_LIBRARY_PATH
    for folder, found in shadowed.items():
        where = os.path.dirname(own[found[0]])
        yield problem(
            "shadowed_library", "error",
            f"LD_LIBRARY_PATH has {folder}, whose {', '.join(found)} would be loaded instead of those in {where}",
            fix=f"Remove {folder} from LD_LIBRARY_PATH: the environment has its own libraries", folder=folder,
        )  # fmt: skip


def _own(analysis: Analysis) -> Iterator[tuple[str, Path]]:
    """Returns the environment's copies of CUDA libraries, by the name that the dynamic linker searches for."""
    folders = [path for site in analysis.seen.place.site for path in site.glob("nvidia/*/lib")]
    folders += [site / "torch/lib" for site in analysis.seen.place.site]
    if analysis.seen.packages:
        folders.append(analysis.seen.place.prefix / "lib")
    for folder in folders:
        for path in folder.glob("lib*.so.*") if folder.is_dir() else ():
            if path.name.partition(".so")[0].partition("_")[0] in _STEMS:
                yield path.name, path


CHECK = Check(
    page(
        code="shadowed_library",
        title="LD_LIBRARY_PATH hides the environment's own CUDA libraries",
        means="The dynamic linker searches this path first, so torch runs with a cuDNN or cuBLAS that it was not "
        "built for: kernels are slower, symbols are missing, programs crash, or pip's wheels seem to have no "
        "cuDNN.",
        recognised="A folder on LD_LIBRARY_PATH outside the environment has a library with the same name as a "
        "library of the environment.",
        to_do="Remove the folder from LD_LIBRARY_PATH.",
        abstains="torch's library has a DT_RPATH, which is searched first.",
        example="LD_LIBRARY_PATH has /usr/local/cuda/lib64, whose libcudnn.so.9 would be loaded instead of those "
        "in .../lib",
    ),
    LOADED + 20,
    _evaluate,
)
