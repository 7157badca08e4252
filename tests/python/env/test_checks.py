# SPDX-License-Identifier: Apache-2.0
"""Environments with one problem: its code is reported first, and nothing is reported for environments without
problems.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from made_environments import Environment, elf, write

from feedline.env.checks import registered
from feedline.env.labels import parts_of
from feedline.env.load import listing_at
from feedline.env.reading.graphics import Graphics, graphics_of
from feedline.env.reading.place import platform_name
from feedline.env.rules import Analysis, Verdict, check
from feedline.env.scan import read_environment
from feedline.env.snapshot import snapshot_of

TODAY = date(2026, 6, 1)
NO_GPU = Graphics()
H100 = Graphics("580.65.06", ("NVIDIA H100 80GB HBM3",) * 2)
Planted = dict[str, Any]  # additional arguments of `verdict`


def verdict(
    prefix: Path,
    *,
    graphics: Graphics = NO_GPU,
    variables: dict[str, str] | None = None,
    maps: tuple[str, ...] | None = None,
    lock: Path | None = None,
    **case: Any,
) -> Verdict:
    root = prefix.parent / "root"
    if maps is not None:
        lines = [f"7f00{i:08x}-7f01{i:08x} r-xp 00000000 fd:00 {i}    {path}" for i, path in enumerate(maps)]
        write(root / "proc/4711/maps", "\n".join([*lines, "7fff0000-7fff1000 rw-p 0 00:00 0 [stack]"]).encode())
        write(root / "proc/4711/environ", b"")
    pid = None if maps is None else 4711
    seen = read_environment(prefix, pid=pid, root=root, variables=variables or {}, graphics=graphics)
    listing = None if lock is None else listing_at(lock, seen.place.python)
    return check(Analysis(seen, listing, today=TODAY, **case))


def a_venv(folder: Path) -> Environment:
    """Without problems."""
    made = Environment(folder / "venv")
    made.project("numpy", "2.1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    made.project("pandas", "2.2.0", requires=("numpy>=1.26", 'tzdata; sys_platform == "win32"', 'lxml; extra == "xml"'))
    return made


def a_conda(folder: Path) -> Environment:
    """Without problems."""
    made = Environment(folder / "conda", "conda")
    made.conda_project("numpy", "2.1.0")
    made.conda_project("pandas", "2.2.0", depends=("numpy >=1.26,<3", "__glibc >=2.17"))
    made.conda_project("click", "8.1.7", noarch=True)
    made.conda_project("pip", "24.0", noarch=True)
    made.project("einops", "0.8.0")
    return made


def with_torch(folder: Path, **torch: Any) -> Environment:
    made = a_venv(folder)
    made.torch(**torch)
    return made


# ---- problems, by the code that must come first


def broken_conda_meta(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("zlib").write_bytes(b'{"name": "zlib", "ver')
    return made, {}


def broken_conda_meta_without_a_name(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("zlib").write_text("[1, 2]")
    return made, {}


def broken_conda_meta_of_a_project(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda_project("rich", "13.9.4", noarch=True).write_bytes(b"")
    return made, {}


def broken_conda_meta_gone(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda_project("rich", "13.9.4", noarch=True).unlink()
    return made, {}


def interpreter_gone(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.prefix / "bin/python3").unlink()
    (made.prefix / "bin/python").symlink_to("/nowhere/python3.11")
    return made, {}


def wrong_python(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("scipy", "1.14.0", tag="cp310-cp310-manylinux_2_17_x86_64")
    return made, {}


def half_installed_without_metadata(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.project("scipy", "1.14.0") / "METADATA").unlink()
    return made, {}


def half_installed_without_record(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.project("scipy", "1.14.0") / "RECORD").unlink()
    return made, {}


def half_installed_by_files(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("scipy", "1.14.0", files={f"scipy/part{i}.py": b"x = 1\n" for i in range(9)})
    shutil.rmtree(made.site / "scipy")
    return made, {}


def half_installed_leftover(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.site / "~umpy").mkdir()
    return made, {}


def half_installed_conda(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("mkl", files={f"lib/libmkl_{i}.so": b"ELF" for i in range(5)})
    for i in range(4):
        (made.prefix / f"lib/libmkl_{i}.so").unlink()
    return made, {}


def half_installed_by_pip_uninstall(folder: Path) -> tuple[Environment, Planted]:
    """`pip uninstall` also removes conda's files, and leaves its conda-meta."""
    made = a_conda(folder)
    shutil.rmtree(made.site / "click")
    (made.site / "click-8.1.7.dist-info/METADATA").unlink()
    (made.site / "click-8.1.7.dist-info/RECORD").unlink()
    return made, {}


def two_versions(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("numpy", "1.26.4")
    return made, {}


def pip_over_conda(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.project("numpy", "2.2.0")
    return made, {}


def pip_over_conda_upgraded(folder: Path) -> tuple[Environment, Planted]:
    """Like `pip install -U`: conda's dist-info is removed, its conda-meta stays."""
    made = a_conda(folder)
    shutil.rmtree(made.site / "numpy-2.1.0.dist-info")
    made.project("numpy", "2.2.0")
    return made, {}


def pip_over_conda_noarch(folder: Path) -> tuple[Environment, Planted]:
    """The remains of conda's dist-info after pip's uninstallation are not a half-installed package."""
    made = a_conda(folder)
    (made.site / "click-8.1.7.dist-info/METADATA").unlink()
    made.project("click", "8.1.8")
    return made, {}


def two_owners(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("opencv_python", "4.10", files={"cv2/__init__.py": b"a = 1\n"})
    made.project("opencv_python_headless", "4.11", files={"cv2/__init__.py": b"a = 22\n"})
    return made, {}


def missing_files(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.site / "numpy/__init__.py").unlink()
    return made, {}


def missing_files_conda(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("libjpeg", files={f"lib/part{i}": b"x" for i in range(3)})
    (made.prefix / "lib/part1").unlink()
    return made, {}


def altered_files(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.site / "numpy/__init__.py").write_bytes(b"# numpy 2.1.1\n")  # with its original length
    return made, {}


def altered_files_conda(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    (made.site / "numpy/__init__.py").write_bytes(b"print('by hand')\n")
    return made, {}


def unreadable(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.site / "pandas/__init__.py").unlink()
    (made.site / "pandas/__init__.py").symlink_to("__init__.py")  # ELOOP, which also affects root
    return made, {}


def unmet_requirement(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("seaborn", "0.13", requires=("matplotlib>=3.4",))
    return made, {}


def unmet_requirement_version(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("oldlib", "0.1", requires=("numpy<2",))
    return made, {}


def unmet_requirement_conda(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda_project("scipy", "1.14.0", depends=("libopenblas >=0.3",))
    return made, {}


def unmet_requirement_conda_version(folder: Path) -> tuple[Environment, Planted]:
    pytest.importorskip("rattler", reason="py-rattler is not installed")
    made = a_conda(folder)
    made.conda_project("scipy", "1.14.0", depends=("numpy <2",))
    return made, {}


def torch_set(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder)
    made.project("torchvision", "0.23.0", requires=("torch==2.8.0", "numpy"))
    return made, {"graphics": H100}


def torch_set_device(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder)
    made.project("torchaudio", "2.9.0+cpu", requires=("torch==2.9.0",))
    return made, {}


def torch_set_by_version_file(folder: Path) -> tuple[Environment, Planted]:
    """PyPI's torchvision has a label only in its version.py, not in its metadata."""
    made = with_torch(folder, version="2.13.0+cpu", cuda=None)
    files = {"torchvision/version.py": b"__version__ = '0.28.0+cu130'\n"}
    made.project("torchvision", "0.28.0", requires=("torch==2.13.0",), files=files)
    return made, {}


def torch_set_by_libraries(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, version="2.9.0", cuda=None)
    files = {"torchaudio/lib/_torchaudio.so": elf(needed=("libtorch_cuda.so", "libc.so.6"))}
    made.project("torchaudio", "2.9.0", requires=("torch==2.9.0",), files=files)
    return made, {}


def torch_set_of_two_cudas(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, version="2.9.0", cuda="12.8")
    files = {"torchvision/version.py": b"__version__ = '0.24.0+cu130'\n"}
    made.project("torchvision", "0.24.0", requires=("torch==2.9.0",), files=files)
    return made, {}


def conda_without_python(folder: Path) -> tuple[Environment, Planted]:
    made = Environment(folder / "conda", "no Python")
    made.conda("ffmpeg", "7.0")
    return made, {}


def conda_without_python_or_packages(folder: Path) -> tuple[Environment, Planted]:
    made = Environment(folder / "conda", "empty")
    write(made.prefix / "conda-meta/history", b"")
    return made, {}


def conda_without_pip(folder: Path) -> tuple[Environment, Planted]:
    made = Environment(folder / "conda", "conda")
    made.project("einops", "0.8.0")
    return made, {}


def torch_cpu_build(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.9.0+cpu", cuda=None), {"graphics": H100}


def driver_outdated(folder: Path) -> tuple[Environment, Planted]:
    library = elf(sass=(80, 90))
    return with_torch(folder, version="2.9.0+cu130", cuda="13.0", library=library), {
        "graphics": Graphics("535.183.01", H100.names)
    }


def driver_minor(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, library=elf(sass=(90,))), {"graphics": Graphics("535.183.01", H100.names)}


def gpu_not_in_build(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, library=elf(sass=(75, 80, 86, 100))), {"graphics": H100}


def gpu_not_in_build_dropped(folder: Path) -> tuple[Environment, Planted]:
    """Only machine code and PTX for newer GPUs."""
    made = with_torch(folder, library=elf(sass=(75, 80, 90), ptx=(90,)))
    return made, {"graphics": Graphics("580.65.06", ("Tesla V100-SXM2-32GB",))}


def openmp_copies(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    return made, {
        "maps": (f"{made.site}/torch/lib/libgomp-a34b3233.so.1", "/usr/lib/libgomp.so.1.0.0", "/lib/libc.so.6")
    }


def openmp_copies_of_two_makers(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    return made, {"maps": ("/env/lib/libiomp5.so", "/usr/lib/libgomp.so.1.0.0 (deleted)")}


def cudnn_copies(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    return made, {"maps": (f"{made.site}/nvidia/cudnn/lib/libcudnn.so.9", "/usr/lib/libcudnn.so.8.9.7")}


def shadowed_library(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, library=elf(sass=(90,), runpath="$ORIGIN/../../nvidia/cudnn/lib"))
    made.project("nvidia_cudnn_cu12", "9.10.2", files={"nvidia/cudnn/lib/libcudnn.so.9": b"own"})
    write(folder / "cuda/lib64/libcudnn.so.9", b"other")
    return made, {"variables": {"LD_LIBRARY_PATH": f":{folder}/cuda/lib64:/usr/lib"}, "graphics": H100}


def shadowed_package(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    other = Environment(folder / "shared")
    other.project("numpy", "1.24.0")
    return made, {"variables": {"PYTHONPATH": str(other.site)}}


def mixed_channels(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("zlib", channel="pkgs/main")
    return made, {}


def ended_channel(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    made.conda("pytorch", "2.5.1", channel="pytorch")
    return made, {}


def python_end_of_life(folder: Path) -> tuple[Environment, Planted]:
    return Environment(folder / "old", python="3.9.18"), {}


def global_python(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (made.prefix / "pyvenv.cfg").unlink()
    return made, {"variables": {"PYTHONNOUSERSITE": "1"}}


def not_rebuildable(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("mine", "0.1", origin={"url": "file:///home/ann/mine", "dir_info": {"editable": True}})
    return made, {}


def stale_lock(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (folder / "requirements.txt").write_text("numpy==2.0.0\npandas==2.2.0\n")
    return made, {"lock": folder / "requirements.txt"}


def stale_lock_added(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    (folder / "requirements.txt").write_text("numpy==2.1.0\n")
    return made, {"lock": folder / "requirements.txt"}


def global_python_of_conda_base(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    (made.prefix / "condabin").mkdir()
    made.conda_project("torch", "2.9.0", noarch=True)
    return made, {}


def numpy_abi(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    files = {"scipy/__init__.py": b"", "scipy/_lib.cpython-311.so": b"\x7fELF numpy.core._multiarray_umath\0"}
    made.project("scipy", "1.11.0", files=files, requires=("numpy>=1.21",))
    return made, {}


def numpy_abi_of_torch(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    files = {"torch/lib/libtorch_python.so": b"numpy.core._multiarray_umath", "torch/__init__.py": b""}
    made.project("torch", "2.2.2", files=files)
    return made, {}


def torch_without_cudnn(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.torch("2.9.0a0+git1234567", headers="#define AT_CUDNN_ENABLED() 0\n#define AT_MAGMA_ENABLED() 1\n")
    return made, {"graphics": H100}


def mkl_conflict(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.9.0"), {"variables": {"MKL_THREADING_LAYER": "INTEL"}}


def library_copies(folder: Path) -> tuple[Environment, Planted]:
    return a_venv(folder), {"maps": ("/usr/lib/libnccl.so.2", "/env/nvidia/nccl/lib/libnccl.so.2")}


def library_copies_of_mkl(folder: Path) -> tuple[Environment, Planted]:
    return a_venv(folder), {"maps": ("/opt/intel/libmkl_core.so.2", "/env/lib/libmkl_core.so.2")}


def label_impossible_of_any_choice(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "PyTorch 2.9 + CUDA 11.8/12.1"}


def label_impossible_removed(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.15.0", cuda="13.2"), {"label": "torch 2.15 CUDA 11.8"}


def label_differs_from_the_name_of_an_image(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.8.0+cu128"), {"label": "PyTorch-CUDA-v2.9"}


def label_differs_from_every_choice(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "torch 2.9 and CUDA 12.6 or 13.0"}


def label_differs_from_a_minimum(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "torch 2.9, CUDA 13+"}


def label_impossible(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "torch 2.9 CUDA 11.8"}


def label_impossible_cudnn(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.7.0"), {"label": "torch 2.7, CUDA 12.1, cuDNN 8.9, Python 3.10, opencv"}


def label_differs(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "pytorch-2.9-cuda12.6"}


def label_differs_missing(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"label": "torch 2.9, tqdm"}


PLANTED: list[tuple[str, Callable[[Path], tuple[Environment, Planted]]]] = [
    (
        next(
            one.page.code
            for one in sorted(registered(), key=lambda c: -len(c.page.code))
            if name.startswith(one.page.code)
        ),
        made,
    )
    for name, made in list(globals().items())
    if callable(made) and any(name.startswith(one.page.code) for one in registered())
]


@pytest.mark.parametrize(("code", "plant"), PLANTED, ids=lambda one: getattr(one, "__name__", ""))
def test_what_is_planted_is_named_first(
    code: str, plant: Callable[[Path], tuple[Environment, Planted]], tmp_path: Path
) -> None:
    made, case = plant(tmp_path)
    found = verdict(made.prefix, **case)
    assert [one.code for one in found.findings[:1]] == [code], found.findings
    assert all(one.evidence and one.fix for one in found.findings)
    assert {one.code for one in found.findings} <= {code, "label_differs"}, "and nothing beside it"


def test_every_check_has_an_environment_that_it_finds() -> None:
    assert {code for code, _ in PLANTED} == {one.page.code for one in registered()}


# ---- sound ones


def sound_torch_without_a_gpu(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.9.0+cpu", cuda=None), {}


def sound_torch(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, library=elf(sass=(50, 80, 90), runpath="$ORIGIN"))
    made.project("torchvision", "0.24.0+cu128", requires=("torch==2.9.0", "numpy"))
    made.project("nvidia_cudnn_cu12", "9.10.2", files={"nvidia/cudnn/lib/libcudnn.so.9": b"own"})
    label = "torch 2.9, cuda 12.8, cudnn 9, python 3.11, numpy"
    return made, {"graphics": H100, "label": label, "variables": {"LD_LIBRARY_PATH": "/usr/lib:/nowhere"}}


def sound_torch_set(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, version="2.9.0", cuda="12.8")
    files = {
        "torchvision/version.py": b"__version__ = '0.24.0+cu128'\n",
        "torchvision/_C.so": elf(needed=("libtorch_cuda.so",)),
    }
    made.project("torchvision", "0.24.0", requires=("torch==2.9.0",), files=files)
    made.project(
        "torchaudio", "2.9.0", requires=("torch==2.9.0",), files={"torchaudio/x.so": elf(needed=("libtorch_cuda.so",))}
    )
    return made, {}


def sound_by_minor_version_of_the_gpu(folder: Path) -> tuple[Environment, Planted]:
    made = with_torch(folder, library=elf(sass=(80, 90), ptx=(90,)))
    return made, {"graphics": Graphics("580.65.06", ("NVIDIA GeForce RTX 4090", "NVIDIA B200"))}


def sound_where_rpath_goes_first(folder: Path) -> tuple[Environment, Planted]:
    made, case = shadowed_library(folder)
    shutil.rmtree(made.site / "torch")
    shutil.rmtree(made.site / "torch-2.9.0+cu128.dist-info")
    made.torch(library=elf(sass=(90,), rpath="$ORIGIN/../../nvidia/cudnn/lib"))
    return made, case


def sound_where_a_shadow_is_the_same_file(folder: Path) -> tuple[Environment, Planted]:
    made, case = shadowed_library(folder)
    case["variables"] = {"LD_LIBRARY_PATH": f"{made.site}/nvidia/cudnn/lib"}
    return made, case


def sound_by_cuda_compat(folder: Path) -> tuple[Environment, Planted]:
    made, case = driver_outdated(folder)
    write(folder / "cuda/compat/libcuda.so.1", b"")
    return made, {**case, "variables": {"LD_LIBRARY_PATH": f"{folder}/cuda/compat"}}


def sound_process(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    return made, {
        "maps": ("/usr/lib/libgomp.so.1.0.0", "/env/libcudnn.so.9", "/env/libcudnn_ops.so.9", "/x/libompd.so")
    }


def sound_lock(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("pip", "24.0")
    (folder / "requirements.txt").write_text("numpy==2.1\npandas == 2.2.0  # as it is\nwin; sys_platform == 'win32'\n")
    return made, {"lock": folder / "requirements.txt"}


def sound_abi3(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project("cryptography", "50.0", tag="cp39-abi3-manylinux_2_28_x86_64")
    made.project("six", "1.17", tag="py2-none-any")
    (made.site / "six-1.17.dist-info/WHEEL").write_text("Tag: py2-none-any\nTag: py3-none-any\n")
    (made.site / "six-1.17.dist-info/RECORD").write_text("six/__init__.py,,\n")
    return made, {}


def sound_namespace(folder: Path) -> tuple[Environment, Planted]:
    """Two projects that install identical copies of a file, and one by Debian without RECORD."""
    made = a_venv(folder)
    made.project("google_a", files={"google/__init__.py": b"pass\n", "google/a.py": b""})
    made.project("google_b", files={"google/__init__.py": b"pass\n", "google/b.py": b""})
    info = made.project("apt_thing", installer="debian")
    (info / "RECORD").unlink()
    return made, {}


def sound_debian(folder: Path) -> tuple[Environment, Planted]:
    """apt patches files without updating RECORD, splits packages, and keeps an egg-info next to a dist-info."""
    made = Environment(folder / "usr")
    (made.prefix / "pyvenv.cfg").unlink()
    (made.prefix / "bin/python3.11").write_bytes(b"")
    made.site.rmdir()
    made.site = made.prefix / "lib/python3/dist-packages"
    made.site.mkdir(parents=True)
    made.project("blinker", "1.5", installer="")
    made.project("cryptography", "38.0", installer="", files={"cryptography/a.py": b"a", "cryptography/b.py": b"b"})
    (made.site / "blinker/__init__.py").write_bytes(b"# patched\n")
    (made.site / "cryptography/a.py").unlink()
    write(made.site / "cryptography.egg-info/PKG-INFO", b"Name: cryptography\nVersion: 38.0\n")
    write(made.site / "half.dist-info/WHEEL", b"")
    return made, {}


def sound_editable_of_a_commit(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.project(
        "mine", origin={"url": "https://github.com/x/mine", "vcs_info": {"vcs": "git", "commit_id": "ab" * 20}}
    )
    return made, {}


def sound_torch_of_conda(folder: Path) -> tuple[Environment, Planted]:
    """conda-forge's CUDA build, whose version has no local part, with requirements that name builds."""
    made = a_conda(folder)
    version = b"__version__ = '2.9.0'\ncuda: Optional[str] = '12.9'\nhip: Optional[str] = None\n"
    site = str(made.site.relative_to(made.prefix))
    files = {f"{site}/torch/version.py": version, f"{site}/torch/lib/libtorch_cuda.so": elf(sass=(80, 90), ptx=(90,))}
    needs = ("python >=3.11,<3.12.0a0", "libblas * *openblas", "__cuda >=12", "cuda-version >=12.9,<13")
    made.conda("pytorch", "2.9.0", build="cuda129_py311_0", files=files, depends=needs)
    made.conda("libblas", "3.9.0", build="34_h59b9bed_openblas")
    made.conda("cuda-version", "12.9")
    return made, {"graphics": H100}


def sound_conda_with_torch_by_pip(folder: Path) -> tuple[Environment, Planted]:
    """A common mixture: conda's packages, and torch with NVIDIA's packages by pip, without shared files."""
    made = a_conda(folder)
    made.torch(library=elf(sass=(80, 90), ptx=(90,)))
    made.project("torchvision", "0.24.0+cu128", requires=("torch==2.9.0", "numpy", "pillow!=8.3.*,>=5.3.0"))
    made.conda_project("pillow", "12.0.0")
    made.project("nvidia_cudnn_cu12", "9.10.2.21", files={"nvidia/cudnn/lib/libcudnn.so.9": b"own"})
    return made, {"graphics": H100}


def sound_by_uv(folder: Path) -> tuple[Environment, Planted]:
    """uv does not install pip, and records its own name as the installer; projects' names keep their spelling."""
    made = a_venv(folder)
    made.project("ruamel.yaml", "0.18.0", installer="uv", files={"ruamel/yaml/__init__.py": b""})
    made.project("Flask_Cors", "6.0", installer="uv", requires=("Ruamel-YAML>=0.17,<1", "Numpy"))
    return made, {}


def sound_pre_releases(folder: Path) -> tuple[Environment, Planted]:
    """An installed version satisfies requirements that name only an earlier release."""
    made = Environment(folder / "venv")
    made.project("numpy", "2.5.0rc1")
    made.project("scipy", "1.20.0.dev0", requires=("numpy>=2.0", "numpy<3"))
    return made, {}


def sound_explicit_lock(folder: Path) -> tuple[Environment, Planted]:
    """conda's own list of archives, for an environment that also has projects installed by pip."""
    made = a_conda(folder)
    lines = [json.loads(file.read_text()) for file in sorted((made.prefix / "conda-meta").glob("*.json"))]
    text = "".join(f"{one['url']}#{one['sha256']}\n" for one in lines)
    (folder / "explicit.txt").write_text(f"# platform: {platform_name()}\n@EXPLICIT\n{text}")
    return made, {"lock": folder / "explicit.txt"}


def sound_process_of_torch(folder: Path) -> tuple[Environment, Planted]:
    """torch's renamed OpenMP runtime is mapped four times, like any library, but counts as one."""
    made = with_torch(folder, version="2.9.0+cpu", cuda=None)
    library = f"{made.site}/torch.libs/libgomp-a34b3233.so.1.0.0"
    return made, {"maps": (*(library,) * 4, f"{made.site}/torch/lib/libtorch_cpu.so", "/usr/lib/libcudart.so.12")}


def sound_other_python(folder: Path) -> tuple[Environment, Planted]:
    made = Environment(folder / "venv", python="3.14.0")
    made.project("numpy", "2.4.0", tag="cp314-cp314-manylinux_2_27_x86_64")
    made.project("mypackage", "1.0", requires=('tomli; python_version < "3.11"', 'numpy>=2; python_version >= "3.12"'))
    return made, {}


def sound_choices(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {
        "label": "torch 2.9 with CUDA 12.6/12.8 or 13.0, numpy and pandas, Python 3.10+, CUDA 11+"
    }


def sound_name_of_an_image(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder, version="2.9.1+cu128"), {"label": "PyTorch-CUDA-v2.9"}


def sound_for_both_numpys(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    both = b"numpy._core._multiarray_umath\0numpy.core._multiarray_umath"
    made.project("scipy", "1.14.0", files={"scipy/_lib.so": both}, requires=("numpy",))
    made.project("old", "1.0", files={"old/data.so": b"numpy.core._multiarray_umath"})  # does not require NumPy
    return made, {}


def sound_for_numpy_1(folder: Path) -> tuple[Environment, Planted]:
    made = Environment(folder / "venv")
    made.project("numpy", "1.26.4")
    made.project("scipy", "1.11.0", files={"scipy/_lib.so": b"numpy.core._multiarray_umath"}, requires=("numpy",))
    return made, {}


def sound_torch_with_cudnn(folder: Path) -> tuple[Environment, Planted]:
    made = a_venv(folder)
    made.torch("2.9.0", headers="#define AT_CUDNN_ENABLED() 1\n")
    return made, {}


def sound_conda_base(folder: Path) -> tuple[Environment, Planted]:
    made = a_conda(folder)
    (made.prefix / "condabin").mkdir()
    return made, {}


def sound_mkl_of_gnu(folder: Path) -> tuple[Environment, Planted]:
    return with_torch(folder), {"variables": {"MKL_THREADING_LAYER": "GNU"}}


def sound_unknown_to_the_tables(folder: Path) -> tuple[Environment, Planted]:
    """Versions that no table contains are not judged."""
    made = with_torch(folder, version="3.1.0", cuda="15.2")
    return made, {"graphics": Graphics("999.1", ("NVIDIA Z9000",)), "label": "torch 3.1 cuda 15.2"}


SOUND = [a_venv, a_conda, *(made for name, made in list(globals().items()) if name.startswith("sound_"))]


@pytest.mark.parametrize("plant", SOUND, ids=lambda one: one.__name__)
def test_nothing_is_reported_for_a_sound_environment(plant: Callable[[Path], Any], tmp_path: Path) -> None:
    made = plant(tmp_path)
    made, case = made if isinstance(made, tuple) else (made, {})
    found = verdict(made.prefix, **case)
    assert found.findings == () and found.sound


def test_what_no_table_knows_is_reported_to_be_unknown(tmp_path: Path) -> None:
    made, case = sound_unknown_to_the_tables(tmp_path)
    abstained = {one.code: one.missing for one in verdict(made.prefix, **case).abstained}
    assert "not in the table" in abstained["driver_outdated"] and "does not list" in abstained["gpu_not_in_build"]
    made.torch("2.9.0", library=elf(sass=(90,)))
    abstained = {one.code: one.missing for one in verdict(made.prefix, **case).abstained}
    assert "Z9000 is not in the table" in abstained["gpu_not_in_build"]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("torch 2.16, CUDA 13.2", "torch 2.16 is not in the table of PyTorch's releases"),
        ("torch 3.0, CUDA 13.2", "torch 3.0 is not in the table"),
        ("torch 2.15, CUDA 13.4", "torch 2.15 for CUDA 13.4 is neither in the table"),
        ("torch 2.12, CUDA 12.9", "torch 2.12 for CUDA 12.9 is neither in the table"),
    ],
)
def test_labels_that_no_table_knows_are_not_judged(label: str, said: str, tmp_path: Path) -> None:
    found = verdict(a_venv(tmp_path).prefix, label=label)
    assert "label_impossible" not in {one.code for one in found.findings}
    assert any(said in one.missing for one in found.abstained if one.code == "label_impossible")


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("PyTorch-CUDA-v2.9", {"torch": "2.9", "cuda": ""}),
        ("pytorch-2.9-cuda12.6", {"torch": "2.9", "cuda": "12.6"}),
        ("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", {"torch": "2.9.1", "cuda": "12.8", "cudnn": "9"}),
        ("vision_torch2.9_cu128", {"torch": "2.9", "cuda": "12.8"}),
        ("my-vision_2_torch2.9_cpu, numpy", {"torch": "2.9", "numpy": ""}),
        ("torch 2.9.0+cu126 py3.10", {"torch": "2.9.0", "cuda": "12.6", "python": "3.10"}),
        (
            "torch 2.9 + CUDA 11.8/12.1 + NumPy/Pandas/tqdm",
            {"torch": "2.9", "cuda": "11.8 or 12.1", "numpy": "", "pandas": "", "tqdm": ""},
        ),
        (
            "torch 2.7 with CUDA 11.8 or 12.6 or 12.8 and OpenCV",
            {
                "torch": "2.7",
                "cuda": "11.8 or 12.6 or 12.8",
                "opencv-python": "",
            },
        ),
        ("pytorch-cuda=11.8, python>=3.9, CUDA 11+", {"cuda": "11+", "python": "3.9+"}),
        ("torch>=2.9, nvidia-cudnn-cu12 9.1", {"torch": "2.9+", "cudnn": "9.1"}),
        ("::: /// 1.2 or", {}),
    ],
)
def test_labels_as_guides_and_images_write_them(label: str, parts: dict[str, str]) -> None:
    assert {name: wanted.text for name, wanted in parts_of(label).items()} == parts


def test_conda_builds_of_torch_and_mkl_that_do_not_run_together(tmp_path: Path) -> None:
    made = a_conda(tmp_path)
    made.conda("mkl", "2024.1.0")
    made.conda("pytorch", "2.2.2", channel="pytorch")
    found = {one.code: one for one in verdict(made.prefix).findings}
    assert "does not run with mkl 2024.1.0" in found["mkl_conflict"].text
    for package in (made.prefix / "conda-meta").glob("mkl-*"):
        package.unlink()
    made.conda("mkl", "2023.2.0")
    assert "mkl_conflict" not in {one.code for one in verdict(made.prefix).findings}


def test_a_snapshot_has_torchs_build_settings(tmp_path: Path) -> None:
    made = a_venv(tmp_path)
    made.torch(
        "2.9.0", headers="#define AT_CUDNN_ENABLED() 1\n#define AT_ROCM_ENABLED() 0\n#define AT_PARALLEL_OPENMP 1\n"
    )
    variables = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "HOME": "/root"}
    value = snapshot_of(read_environment(made.prefix, variables=variables, graphics=NO_GPU))
    assert value["torch"]["settings"] == {"cudnn": True, "parallel_openmp": True}
    assert value["variables"] == {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}


def test_gpus_are_known_where_nvml_fails(tmp_path: Path) -> None:
    """As in a container whose devices systemd has removed: /proc still lists them, and the note reports the failure."""
    made = with_torch(tmp_path, version="2.9.0+cpu", cuda=None)
    root = tmp_path / "root"
    write(root / "proc/driver/nvidia/gpus/0000:01:00.0/information", b"Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ: 1\n")
    version = b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    write(root / "proc/driver/nvidia/version", version)
    graphics = graphics_of(root, "libnowhere-nvml.so")
    assert (graphics.driver, graphics.names) == ("580.65.06", ("NVIDIA A100-SXM4-80GB",)) and graphics.note
    assert [one.code for one in verdict(made.prefix, graphics=graphics).findings] == ["torch_cpu_build"]
    assert graphics_of(tmp_path / "empty", "libnowhere-nvml.so") == Graphics()


def test_conda_is_asked_to_repair_what_is_condas(tmp_path: Path) -> None:
    made = a_conda(tmp_path)
    made.conda("libjpeg", "9.5", files={f"lib/part{i}": b"x" for i in range(3)})
    (made.prefix / "lib/part1").unlink()
    write(made.prefix / "lib/part2", b"by hand")
    (made.site / "einops/__init__.py").unlink()
    fixes = {one.about["package"]: one.fix for one in verdict(made.prefix).findings if one.severity == "error"}
    assert "conda install --force-reinstall libjpeg=9.5" in fixes["libjpeg"]
    assert "pip install --force-reinstall --no-deps einops" in fixes["einops"]
    shutil.rmtree(made.site / "click")
    for name in ("METADATA", "RECORD"):
        (made.site / "click-8.1.7.dist-info" / name).unlink()
    half = [one for one in verdict(made.prefix).findings if one.code == "half_installed"]
    assert [one.fix for one in half] == ["Complete it: conda install --force-reinstall click=8.1.7"]


def test_a_broken_file_of_conda_meta_is_reported_once(tmp_path: Path) -> None:
    made, _ = broken_conda_meta_of_a_project(tmp_path)
    assert [one.about for one in verdict(made.prefix).findings] == [
        {"file": str(made.prefix / "conda-meta/rich-13.9.4-py311_0.json")}
    ]


def test_what_a_package_of_conda_lacks_is_reported_once(tmp_path: Path) -> None:
    made = a_conda(tmp_path)
    made.conda_project("rich", "13.9.4", depends=("mdurl >=0.1,<1",), requires="Requires-Dist: mdurl~=0.1\n")
    assert [one.fix for one in verdict(made.prefix).findings] == ['conda install "mdurl >=0.1,<1"']


def test_large_files_are_compared_by_size_but_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feedline.env.ownership.LARGE_BYTES", 100)
    made = a_venv(tmp_path)
    made.project("large", files={"large/lib.so": b"a" * 200})
    (made.site / "large/lib.so").write_bytes(b"b" * 200)
    by_size = verdict(made.prefix)
    assert by_size.findings == () and by_size.facts["compared_by_size"] >= 1
    assert [one.code for one in verdict(made.prefix, deep=True).findings] == ["altered_files"]


def test_what_conda_recorded_and_may_not_be_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who may read everything, such as root in CI, is refused here by the calls, not by the file system."""
    made = a_conda(tmp_path)
    folder = made.prefix / "conda-meta"

    def refused(path: object, *_: object) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("feedline.env.reading.conda.os.listdir", lambda path: refused(path))
    found = read_environment(made.prefix)
    monkeypatch.undo()
    said = [
        one for one in check(Analysis(found, today=TODAY)).findings if one.code in ("unreadable", "broken_conda_meta")
    ]
    assert [(one.code, str(folder) in one.text) for one in said] == [("unreadable", True)]
    monkeypatch.setattr("pathlib.Path.read_bytes", refused)
    found = read_environment(made.prefix)
    monkeypatch.undo()
    said = [
        one for one in check(Analysis(found, today=TODAY)).findings if one.code in ("unreadable", "broken_conda_meta")
    ]
    assert [(one.code, "numpy-2.1.0" in one.text) for one in said] == [("unreadable", True)]


def test_a_folder_without_permission_is_a_finding(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    made = a_venv(tmp_path)
    (made.site / "numpy").chmod(0)
    try:
        assert [one.code for one in verdict(made.prefix).findings] == ["unreadable"]
    finally:
        (made.site / "numpy").chmod(0o755)


@pytest.mark.parametrize("name", ["METADATA", "RECORD", "WHEEL", "INSTALLER", "direct_url.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"]", b'a,b,c,d\n,,,\n"', b"[1]", b"Name:\nVersion:\n"])
def test_damaged_metadata_never_raise(name: str, content: bytes, tmp_path: Path) -> None:
    made = a_venv(tmp_path)
    (made.site / "numpy-2.1.0.dist-info" / name).write_bytes(content)
    for one in verdict(made.prefix).findings:
        assert "numpy" in one.text or "numpy" in json.dumps(dict(one.about))
