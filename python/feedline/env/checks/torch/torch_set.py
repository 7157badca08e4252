# SPDX-License-Identifier: Apache-2.0
"""torch, torchvision and torchaudio are incompatible."""

from ...reading.elf import linking_of
from ...reading.torch_build import built_version
from ...reading.wheels import Installed
from ...rules import NEEDS, Analysis, Check, Problems, page, problem
from ...torch_indexes import label_of, torch_index

_SET = ("torchvision", "torchaudio")
_GPU_LIBRARIES = {"libtorch_cuda.so": "CUDA", "libc10_cuda.so": "CUDA", "libtorch_hip.so": "ROCm"}


def _evaluate(analysis: Analysis) -> Problems:
    first = analysis.seen.first
    torch = first.get("torch")
    if torch is None:
        return
    build = analysis.seen.torch
    device = build.device if build else label_of(torch.version)
    needs = {need.owner.partition(" ")[0]: need for need in analysis.needs if need.of_torch_set}
    here = [name for name in _SET if name in first]
    for name in here:
        other = first[name]
        why = ""
        theirs = _device(other)
        if name in needs:
            why = f"needs {needs[name].wants}, but torch {torch.version} is installed"
        elif theirs and device and theirs != device and not device.startswith(_LABELS.get(theirs, "no label")):
            why = f"was built for {theirs}, but torch {torch.version} was built for {device}"
        if why:
            index = torch_index(torch.version)
            yield problem(
                "torch_set", "error", f"{name} {other.version} {why}",
                fix="Install these packages in one command, from one index: pip install --force-reinstall "
                    f"torch=={torch.version} {' '.join(here)}{f' --index-url {index}' if index else ''}",
                package=name,
            )  # fmt: skip


_LABELS = {"CUDA": "cu", "ROCm": "rocm"}  # prefixes of the labels of such builds


def _device(one: Installed) -> str:
    """Returns the device that a package was built for: its version label, or else "CUDA" or "ROCm" according to its
    libraries; "" if unknown.
    """
    label = label_of(one.version) or label_of(built_version(one.site / one.name))
    if label:
        return label
    libraries = [file.path for file in one.files if file.path.endswith(".so")]
    needed = {name for path in libraries if (link := linking_of(path)) for name in link.needed}
    return next((device for name, device in _GPU_LIBRARIES.items() if name in needed), "")


CHECK = Check(
    page(
        code="torch_set",
        title="torch, torchvision and torchaudio are incompatible",
        means="Each build of torchvision and torchaudio works with one version of torch and one type of device. With a "
        "different torch, imports fail with undefined symbols or missing libraries, or operators are missing.",
        recognised="torchvision or torchaudio require a different torch than the installed version, or were built "
        "for another device, according to their version's label, version.py, or linked libraries.",
        to_do="Install torch, torchvision and torchaudio in one command from one index.",
        example="torchvision 0.28.0 was built for cu130, but torch 2.13.0+cpu was built for cpu",
    ),
    NEEDS,
    _evaluate,
)
